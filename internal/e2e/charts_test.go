package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/helmtest"
)

// publicCharts is the directory of the twelve public charts; without them the
// test is skipped.
func publicCharts(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("DEPLOYER_TEST_CHARTS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "charts")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the public charts aren't in %s; name their directory in DEPLOYER_TEST_CHARTS", dir)
	}
	return dir
}

// A chartCase is how a public chart is deployed on a cluster without volumes that
// other tests use too.
type chartCase struct {
	name string
	set  []string // NAMESPACE and NAME stand for the test's own
	left []string // what stays after an uninstall, as with Helm
	// random says that each installation differs.
	random bool
	// unwaited says that something of it never gets ready without its own program,
	// which simulated pods don't run.
	unwaited bool
}

// chartCases are the twelve. Values keep them from taking part in what other
// tests do: admission webhooks see only the test's namespace, no API is added.
var chartCases = []chartCase{
	{name: "hello-world"},
	{name: "podinfo", set: []string{
		"hooks.preInstall.job.enabled=true", "hooks.postInstall.job.enabled=true", "hooks.preUpgrade.job.enabled=true",
		"hooks.postUpgrade.job.enabled=true", "hooks.preRollback.job.enabled=true", "hooks.postRollback.job.enabled=true",
		"hooks.preDelete.job.enabled=true", "hooks.postDelete.job.enabled=true", "hpa.enabled=true", "ingress.enabled=true", "redis.enabled=true",
	}},
	{name: "metrics-server", set: []string{"apiService.create=false", "fullnameOverride=NAME"}},
	{name: "reloader", set: []string{"fullnameOverride=NAME"}},
	{name: "sealed-secrets"},
	{name: "ingress-nginx", set: []string{
		"controller.service.type=NodePort", // nobody gives load balancers addresses
		"controller.ingressClassResource.name=NAME", "controller.ingressClassResource.controllerValue=example.com/NAME",
		`controller.admissionWebhooks.namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=NAMESPACE`,
		"controller.admissionWebhooks.failurePolicy=Ignore",
	}},
	{name: "cert-manager", unwaited: true, set: []string{"crds.enabled=true", "global.leaderElection.namespace=NAMESPACE"}},
	{name: "velero", set: []string{
		"configuration.backupStorageLocation[0].name=default", "configuration.backupStorageLocation[0].provider=aws",
		"configuration.backupStorageLocation[0].bucket=backups", "configuration.volumeSnapshotLocation[0].name=default",
		"configuration.volumeSnapshotLocation[0].provider=aws", "credentials.useSecret=false",
	}},
	{name: "redis", random: true, set: []string{"master.persistence.enabled=false", "replica.persistence.enabled=false"}},
	{name: "prometheus", set: []string{"server.persistentVolume.enabled=false", "alertmanager.persistence.enabled=false"}},
	{name: "nats"},
	{name: "sonarqube", set: []string{"postgresql.persistence.enabled=false"}},
}

// Stories that are told of public charts: in make test each of a third of the charts, so that each chart is
// deployed; in make test-long each of all.
const (
	storyOfHelm3 = iota
	storyOfHelm4
	storyOfPlans
	stories
)

// chartsOf are the public charts that a story is told of.
func chartsOf(story int) []chartCase {
	if os.Getenv(longEnv) != "" {
		return chartCases
	}
	var out []chartCase
	for i := story; i < len(chartCases); i += stories {
		out = append(out, chartCases[i])
	}
	return out
}

// flags are the values of the case as flags.
func (c chartCase) flags(w *world, name string) []string {
	var out []string
	for _, s := range c.set {
		out = append(out, "--set", strings.NewReplacer("NAMESPACE", w.ns, "NAME", name).Replace(s))
	}
	return out
}

// TestPublicCharts takes each public chart through its life: once from nothing,
// once from what Helm 3 has installed, and has then changed. Back at the first
// values, all is as the first installation made it.
func TestPublicCharts(t *testing.T) {
	t.Parallel()
	for _, c := range chartsOf(storyOfHelm3) {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			name, chart := w.unique(), publicChart(t, c.name)
			flags := c.flags(w, name)
			ours := append([]string{fmt.Sprint("--wait=", !c.unwaited)}, flags...)
			w.sole(c.name, name)

			w.ok(append([]string{"install", name, chart}, ours...)...)
			fresh := w.stateOf(name)
			w.noOpUpgrade(name, chart, ours)
			w.ok("uninstall", name)
			w.nothingLeft(c.left...)
			w.nothingLeftOutside(name)

			w.helm(append([]string{"install", name, chart}, flags...)...)
			before := generations(withoutHooks(w.everything()))
			w.ok(append([]string{"upgrade", name, chart}, ours...)...)
			w.unchanged("the first release of deployer", before, generations(withoutHooks(w.everything())))
			other := slices.Clone(flags)
			for _, set := range fidelityChanges[c.name] {
				other = append(other, "--set", set)
			}
			// It may fail: at a field that can't be changed, say.
			changed := w.try(helmtest.Helm3(t), append([]string{"upgrade", name, chart}, other...)...)
			w.ok(append([]string{"upgrade", name, chart, "--reset-values"}, ours...)...)
			if !c.random {
				w.same("after other values and back", w.stateOf(name), fresh)
			}
			w.noOpUpgrade(name, chart, ours)
			w.ok("uninstall", name)
			if t.Failed() {
				t.Log(changed)
			}
			w.nothingLeft(c.left...)
			w.nothingLeftOutside(name)
		})
	}
}

// stateOf is what a release has decided of its objects, wherever they are.
func (w *world) stateOf(name string) map[string]any {
	w.Helper()
	objects := withoutHooks(w.everything())
	for _, obj := range w.ofRelease(name) {
		objects[obj.GetKind()+"/"+obj.GetName()] = &obj
	}
	return decided(objects, w.ns)
}

// noOpUpgrade upgrades without a change, which writes nothing but hooks.
func (w *world) noOpUpgrade(name, chart string, flags []string) {
	w.Helper()
	mark := w.mark()
	w.ok(append([]string{"upgrade", name, chart}, flags...)...)
	hooks := w.helm("get", "hooks", name).out
	for _, e := range w.writes(mark) {
		if e.Verb == "patch" || e.Object.Name != "" && !strings.Contains(hooks, "name: "+e.Object.Name) && !strings.Contains(hooks, "name: \""+e.Object.Name+"\"") {
			w.Errorf("an upgrade without changes has written: %v", e)
		}
	}
}

// outside are the kinds outside of namespaces that the charts use, and those in
// other namespaces.
var outside = []schema.GroupVersionResource{
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"},
}

// ofRelease lists what a release has outside of its namespace.
func (w *world) ofRelease(name string) []unstructured.Unstructured {
	w.Helper()
	var out []unstructured.Unstructured
	for _, gvr := range append([]schema.GroupVersionResource{resource(w.T, "customresourcedefinitions")}, outside...) {
		list, err := w.cluster.Dynamic().Resource(gvr).List(context.WithoutCancel(w.Context()), metav1.ListOptions{})
		if err != nil {
			w.Errorf("listing %s: %v", gvr.Resource, err)
			continue
		}
		for _, obj := range list.Items {
			if obj.GetAnnotations()["meta.helm.sh/release-name"] == name && obj.GetNamespace() != w.ns {
				out = append(out, obj)
			}
		}
	}
	return out
}

// nothingLeftOutside checks that a release has left nothing outside of its
// namespace but definitions, which are kept.
func (w *world) nothingLeftOutside(name string) {
	w.Helper()
	for _, obj := range w.ofRelease(name) {
		if obj.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			w.Errorf("left outside of the namespace: %s/%s", obj.GetKind(), obj.GetName())
		}
	}
}

// kindsOf are the API groups in which charts define kinds.
var kindsOf = map[string]string{"cert-manager": "cert-manager.io", "sealed-secrets": "bitnami.com", "velero": "velero.io"}

// chartLocks are held by the test that has a chart for itself.
var chartLocks sync.Map

// sole gives the test a chart for itself: two releases of one would share the
// kinds it defines, or the ports of nodes. What its release has outside of its
// namespace goes with the test.
func (w *world) sole(chart, name string) {
	w.Helper()
	lock, _ := chartLocks.LoadOrStore(chart, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	w.Cleanup(lock.(*sync.Mutex).Unlock)
	w.cluster.Eventually(w.T, waitTimeout, "kinds of "+chart+" gone", func(ctx context.Context) error {
		if left := w.definitions(ctx, chart); len(left) > 0 {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
	w.Cleanup(func() {
		ctx := context.WithoutCancel(w.Context())
		for _, crd := range w.definitions(ctx, chart) {
			err := w.in("customresourcedefinitions").Delete(ctx, crd, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				w.Errorf("removing CustomResourceDefinition/%s: %v", crd, err)
			}
		}
		for _, obj := range w.ofRelease(name) {
			for _, gvr := range outside {
				if strings.EqualFold(strings.TrimSuffix(gvr.Resource, "s"), obj.GetKind()) || strings.EqualFold(strings.TrimSuffix(gvr.Resource, "es"), obj.GetKind()) {
					_ = w.cluster.Dynamic().Resource(gvr).Namespace(obj.GetNamespace()).Delete(ctx, obj.GetName(), metav1.DeleteOptions{})
				}
			}
		}
	})
}

// definitions are the kinds there are of those that a chart defines.
func (w *world) definitions(ctx context.Context, chart string) []string {
	w.Helper()
	group, ok := kindsOf[chart]
	if !ok {
		return nil
	}
	all, err := w.in("customresourcedefinitions").List(ctx, metav1.ListOptions{})
	if err != nil {
		w.Errorf("listing definitions: %v", err)
		return nil
	}
	var found []string
	for _, crd := range all.Items {
		if strings.HasSuffix(crd.GetName(), group) {
			found = append(found, crd.GetName())
		}
	}
	return found
}
