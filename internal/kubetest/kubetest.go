// Package kubetest gives tests a real Kubernetes API server, shared by all
// packages of a test run.
//
// It is the cluster of the kubeconfig named by the environment variable
// DEPLOYER_TEST_KUBECONFIG, with its audit log in DEPLOYER_TEST_AUDIT_LOG; "devcluster
// run" sets both for a cluster that it starts. The user's own kubeconfig is never used.
//
// Tests keep apart by namespace (Cluster.Namespace) and by user (Cluster.User);
// what they create outside of namespaces needs unique names.
package kubetest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// requireEnv names the variable that makes a missing cluster a failure.
const requireEnv = "DEPLOYER_TEST_REQUIRE_CLUSTER"

// Cluster is a cluster that tests may use, with the rights of an administrator.
// All methods may be called from several goroutines at once.
type Cluster struct {
	kubeconfig string
	config     *rest.Config
	client     kubernetes.Interface
	dynamic    dynamic.Interface

	auditLog  string // "" if there is none
	auditFrom int64  // where the log ended when this process came

	auditing     sync.Mutex
	auditReaders map[string]*AuditReader // by client; guarded by auditing
}

// shared is the cluster of this process. A test process has one, for as long as
// it lives; it is package state because tests share nothing else.
var shared = sync.OnceValues(open)

// Alone skips a test that disturbs all others in the cluster unless it has one for
// itself: make test-alone.
func Alone(t testing.TB) {
	t.Helper()
	if os.Getenv("DEPLOYER_TEST_ALONE") == "" {
		t.Skip("set DEPLOYER_TEST_ALONE to let this disturb the cluster")
	}
}

// Main is a TestMain for packages whose tests mostly wait for a cluster: so many of them run in parallel unless -parallel
// says otherwise.
func Main(m *testing.M, parallel int) {
	Parallel(parallel)
	os.Exit(m.Run())
}

// Parallel is what Main does first, for a TestMain that does more.
func Parallel(tests int) {
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err) // the flag is the testing package's own
	}
}

// noCluster says how to get one.
const noCluster = "no cluster for tests; after make devcluster: bin/devcluster run --nodes 10 -- go test …"

// Start gives the cluster. Without one it skips the test, or fails it if the environment
// variable DEPLOYER_TEST_REQUIRE_CLUSTER is set.
//
// Under -short it skips the test: see make unit.
func Start(t testing.TB) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a cluster, which -short leaves out")
	}
	c, err := shared()
	if err != nil {
		t.Fatalf("no cluster for tests: %v", err)
	}
	if c == nil {
		if os.Getenv(requireEnv) != "" {
			t.Fatal(noCluster)
		}
		t.Skip(noCluster)
	}
	return c
}

// open connects to the cluster of this process; nil if there is none.
func open() (*Cluster, error) {
	c := &Cluster{kubeconfig: os.Getenv("DEPLOYER_TEST_KUBECONFIG"), auditLog: os.Getenv("DEPLOYER_TEST_AUDIT_LOG"), auditReaders: map[string]*AuditReader{}}
	if c.kubeconfig == "" {
		return nil, nil
	}
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", c.kubeconfig, err)
	}
	c.config.UserAgent = "kubetest"
	c.config.QPS = -1 // the API server protects itself; a test that waits for a client doesn't test
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return nil, fmt.Errorf("the kubeconfig %s: %w", c.kubeconfig, err)
	}
	if c.dynamic, err = dynamic.NewForConfig(c.config); err != nil {
		return nil, fmt.Errorf("the kubeconfig %s: %w", c.kubeconfig, err)
	}
	if info, err := os.Stat(c.auditLog); err == nil {
		c.auditFrom = info.Size()
	}
	return c, nil
}

// Since skips a test of what API servers can do only since a version, such as "1.30"
// (make test-skew).
func (c *Cluster) Since(t testing.TB, minimum, what string) {
	t.Helper()
	server, err := c.client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.MustParseGeneric(server.GitVersion).LessThan(version.MustParseGeneric(minimum)) {
		t.Skipf("Kubernetes has %s since %s, this is %s", what, minimum, server.GitVersion)
	}
}

// Config gives a copy of the administrator's configuration, without client-side
// rate limits. Tests that look at the audit log set a UserAgent of their own.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client gives a typed client with an administrator's rights; its user agent is
// "kubetest".
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Dynamic gives a dynamic client with an administrator's rights; its user agent
// is "kubetest".
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Kubeconfig writes a kubeconfig of the administrator with the given namespace
// and gives its path; "" leaves the namespace to the client. The file is removed
// with the test.
func (c *Cluster) Kubeconfig(t testing.TB, namespace string) string {
	t.Helper()
	return c.writeKubeconfig(t, namespace, nil)
}

// writeKubeconfig writes the cluster's kubeconfig with another namespace and, if
// auth isn't nil, another user.
func (c *Cluster) writeKubeconfig(t testing.TB, namespace string, auth *api.AuthInfo) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		t.Fatalf("reading the kubeconfig %s: %v", c.kubeconfig, err)
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		t.Fatalf("the kubeconfig %s has no context %q", c.kubeconfig, config.CurrentContext)
	}
	current.Namespace = namespace
	if auth != nil {
		config.AuthInfos[current.AuthInfo] = auth
	}
	// A certificate may be named relative to the file it came from.
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		t.Fatalf("reading the kubeconfig %s: %v", c.kubeconfig, err)
	}
	file, err := os.CreateTemp(t.TempDir(), "kubeconfig-")
	if err != nil {
		t.Fatalf("writing a kubeconfig: %v", err)
	}
	file.Close()
	if err := clientcmd.WriteToFile(*config, file.Name()); err != nil {
		t.Fatalf("writing a kubeconfig: %v", err)
	}
	return file.Name()
}

// pollPause is the pause between two looks of Eventually.
const pollPause = 25 * time.Millisecond

// Eventually waits until met returns nil. What it returns before says what is
// still missing; when that lasts longer than timeout, the test fails with what
// and the last answer. The context ends with the timeout.
func (c *Cluster) Eventually(t testing.TB, timeout time.Duration, what string, met func(context.Context) error) {
	t.Helper()
	if err := eventually(t.Context(), timeout, met); err != nil {
		t.Fatalf("waiting for %s: not after %s: %v", what, timeout, err)
	}
}

func eventually(ctx context.Context, timeout time.Duration, met func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	var last error
	for {
		err := met(ctx)
		if err == nil {
			return nil
		}
		// An answer that only says that time is up tells less than the one before.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}
