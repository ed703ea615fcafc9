package deploy_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

// site is a release in a namespace of its own.
type site struct {
	*testing.T
	cluster *kubetest.Cluster
	ns      string
	d       *deploy.Deployer
}

func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	c := kubetest.Start(t)
	ns := c.Namespace(t)
	return &site{T: t, cluster: c, ns: ns, d: deploy.New(kube.New(c.Config(), ns), ns, deploy.Settings{
		// Other tests may have APIServices without a server.
		Policies: deploy.Policies{Policies: apply.Policies{PartialDiscovery: true}},
	})}
}

// chart makes a chart of ConfigMaps with these names.
func (s *site) chart(names ...string) *chart.Chart {
	s.Helper()
	dir := s.TempDir()
	files := map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n"}
	for _, name := range names {
		files["templates/"+name+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	if err := os.MkdirAll(filepath.Join(dir, "templates"), 0o755); err != nil {
		s.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	c, err := chart.Load(s.Context(), dir, chart.LoadOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return c
}

func (s *site) upgrade(names ...string) error {
	s.Helper()
	op, err := s.d.Upgrade(s.Context(), deploy.UpgradeRequest{Name: "web", Chart: s.chart(names...), Install: deploy.InstallIfMissing})
	if err != nil {
		s.Fatalf("Upgrade: %v", err)
	}
	return s.carryOut(op)
}

func (s *site) carryOut(op *deploy.Operation) error {
	s.Helper()
	return s.observed(op, func(deploy.Event) {})
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) annotate(name, patch string) {
	s.Helper()
	_, err := s.cluster.Client().CoreV1().ConfigMaps(s.ns).Patch(s.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
}

func (s *site) exists(name string) bool {
	s.Helper()
	_, err := s.cluster.Client().CoreV1().ConfigMaps(s.ns).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
	return err == nil
}

// An object that was kept for a temporary reason is deleted by the first release after the reason has gone,
// however many releases, also failed ones, were in between.
func TestLeftoversAreRemembered(t *testing.T) {
	s := newSite(t)
	s.must(s.upgrade("a", "b"))
	b, err := s.cluster.Client().CoreV1().ConfigMaps(s.ns).Get(t.Context(), "b", metav1.GetOptions{})
	s.must(err)
	s.annotate("b", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"`+string(b.UID)+`","controller":true}]}}`)
	s.must(s.upgrade("a")) // keeps b
	s.must(s.upgrade("a", "c"))
	history, err := s.d.Releases.History(t.Context(), "web")
	s.must(err)
	latest, err := history.Load(t.Context(), 3)
	s.must(err)
	if want := []string{"/ConfigMap/" + s.ns + "/b"}; !slices.Equal(latest.Journal.Revisit, want) {
		t.Errorf("Leftover: %v, want %v", latest.Journal.Revisit, want)
	}
	s.fail("a", "d")
	s.annotate("b", `{"metadata":{"ownerReferences":null}}`)
	s.must(s.upgrade("a"))
	if s.exists("b") || s.exists("c") || s.exists("d") || !s.exists("a") {
		t.Errorf("a %v, b %v, c %v, d %v", s.exists("a"), s.exists("b"), s.exists("c"), s.exists("d"))
	}
}

// fail runs an upgrade that fails: somebody else makes an object of the same
// name between decision and action.
func (s *site) fail(names ...string) {
	s.Helper()
	op, err := s.d.Upgrade(s.Context(), deploy.UpgradeRequest{Name: "web", Chart: s.chart(names...), Install: deploy.InstallIfMissing})
	s.must(err)
	taken := names[len(names)-1]
	maps := s.cluster.Client().CoreV1().ConfigMaps(s.ns)
	_, err = maps.Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: taken}}, metav1.CreateOptions{})
	s.must(err)
	if err := s.carryOut(op); err == nil {
		s.Fatal("the run was to fail")
	}
	s.must(maps.Delete(s.Context(), taken, metav1.DeleteOptions{}))
}

// A run without the permissions that its plan needs leaves neither a lock nor a record.
func TestRefusedBeforeTheLock(t *testing.T) {
	s := newSite(t)
	s.must(s.upgrade("a"))
	u := s.cluster.User(t, s.ns, kubetest.Rule("", "get,list", "configmaps", "secrets", "namespaces"),
		kubetest.Rule("coordination.k8s.io", "*", "leases"))
	s.d = deploy.New(kube.New(u.Config(), s.ns), s.ns, s.d.Settings)
	err := s.upgrade("b")
	var rejected *apply.RejectedError
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "no permission to patch configmaps in namespace "+s.ns) ||
		!strings.Contains(err.Error(), "no permission to delete configmaps") {
		t.Errorf("got %v", err)
	}
	for _, e := range kubetest.Writes(s.cluster.Audit(t, u.Name)) {
		t.Errorf("written: %s", e)
	}
}
