package kubetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cleanupTimeout is how long a test's cleanup may wait for the API server.
const cleanupTimeout = 10 * time.Second

// thrownAwayEnv names the variable that says that the cluster ends with the tests.
const thrownAwayEnv = "DEPLOYER_TEST_THROWN_AWAY"

// Namespace creates a namespace of its own for the test, ready for pods, and
// gives its name. It is deleted with the test; nobody waits until it is gone. In a
// cluster that is thrown away only its workloads and Secrets are deleted, which would disturb
// others: deleting a namespace takes more than a hundred requests.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	name := uniqueName(t)
	namespaces := c.client.CoreV1().Namespaces()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Annotations: map[string]string{"kubetest/test": t.Name()},
	}}
	if _, err := namespaces.Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating Namespace/%s: %v", name, err)
	}
	c.cleanup(t, "Namespace/"+name, func(ctx context.Context) error {
		if os.Getenv(thrownAwayEnv) != "" {
			return c.deleteContent(ctx, name)
		}
		return namespaces.Delete(ctx, name, metav1.DeleteOptions{})
	})
	// Pods are refused before it exists.
	c.Eventually(t, time.Minute, "ServiceAccount/"+name+"/default", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return name
}

// deleteContent deletes what makes pods in a namespace, the pods, and the Secrets, which are releases to those who list them.
func (c *Cluster) deleteContent(ctx context.Context, namespace string) error {
	background := metav1.DeletePropagationBackground
	opts, all := metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{}
	apps, batch, core := c.client.AppsV1(), c.client.BatchV1(), c.client.CoreV1()
	return errors.Join(
		batch.CronJobs(namespace).DeleteCollection(ctx, opts, all),
		batch.Jobs(namespace).DeleteCollection(ctx, opts, all),
		apps.Deployments(namespace).DeleteCollection(ctx, opts, all),
		apps.StatefulSets(namespace).DeleteCollection(ctx, opts, all),
		apps.DaemonSets(namespace).DeleteCollection(ctx, opts, all),
		core.Pods(namespace).DeleteCollection(ctx, opts, all),
		core.Secrets(namespace).DeleteCollection(ctx, opts, all),
	)
}

// cleanup removes something when the test ends.
func (c *Cluster) cleanup(t testing.TB, what string, remove func(context.Context) error) {
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if err := remove(ctx); err != nil {
			t.Logf("cleaning up %s: %v", what, err)
		}
	})
}

// maxTestName keeps a name with its suffix below what label values may have.
const maxTestName = 40

// uniqueName makes a name for an object from the test's name.
func uniqueName(t testing.TB) string {
	var name strings.Builder
	for _, r := range strings.ToLower(strings.TrimPrefix(t.Name(), "Test")) {
		switch {
		case name.Len() >= maxTestName:
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			name.WriteRune(r)
		case name.Len() > 0 && !strings.HasSuffix(name.String(), "-"):
			name.WriteByte('-')
		}
	}
	random := strings.ToLower(rand.Text()[:8])
	return fmt.Sprintf("t-%s-%s", strings.Trim(name.String(), "-"), random)
}
