package kubetest

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Parallel says how many tests run in parallel unless -parallel does: those of a cluster mostly wait. A TestMain
// calls it before it parses flags.
func Parallel(tests int) {
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err) // the flag is the testing package's own
	}
}

// Main is a TestMain for packages whose tests and examples need a cluster. Examples can't skip
// themselves, so it leaves them out where Start would skip a test.
func Main(m *testing.M, parallel int) {
	Parallel(parallel)
	flag.Parse()
	if !hasClusterForExamples() {
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err) // the flag is the testing package's own
		}
	}
	os.Exit(m.Run())
}

func hasClusterForExamples() bool {
	if testing.Short() {
		return false
	}
	c, err := shared()
	return c != nil || err != nil || os.Getenv(requireEnv) != ""
}

// Example gives an example a connection to the cluster and a namespace of its own.
// remove deletes the namespace. It panics where a test would fail.
func Example() (config *rest.Config, namespace string, remove func()) {
	c, err := shared()
	if err != nil || c == nil {
		panic(fmt.Sprintf("no cluster for the example: %v", err))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	name := "example-" + strings.ToLower(rand.Text()[:8])
	namespaces := c.client.CoreV1().Namespaces()
	if _, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		panic(fmt.Sprintf("creating Namespace/%s: %v", name, err))
	}
	return c.Config(), name, func() {
		defer cancel()
		if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			panic(fmt.Sprintf("deleting Namespace/%s: %v", name, err))
		}
	}
}
