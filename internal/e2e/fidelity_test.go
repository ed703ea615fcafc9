package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/view/diff"
	"deployer/testcharts"
)

// A fidelityCase is a chart, and values that change much of it.
type fidelityCase struct {
	chartCase
	change []string
	public bool
}

// fidelityChanges are values that change each chart: images, replicas, and where
// the chart has them, ports, arguments, annotations, objects that come and go.
var fidelityChanges = map[string][]string{
	"hello-world": {"replicaCount=2", "image.tag=other", "service.port=81", "serviceAccount.create=false"},
	// Not replicaCount: it is the autoscaler's minimum, which its controller sees to
	// sooner or later.
	"podinfo":        {"image.tag=other", "ui.color=red", "hpa.maxReplicas=7", "service.externalPort=99", "ingress.enabled=false", "redis.enabled=false"},
	"metrics-server": {"replicas=2", "args={--v=4}", "podAnnotations.a=b", "podDisruptionBudget.enabled=true", "podDisruptionBudget.minAvailable=1"},
	"reloader":       {"reloader.logLevel=debug", "reloader.deployment.env.open.A=b", "reloader.service.port=99"},
	"sealed-secrets": {"args={--update-status}", "podAnnotations.a=b", "service.port=99", "metrics.dashboards.create=true"},
	"ingress-nginx":  {"controller.replicaCount=2", "controller.config.use-gzip=true", "controller.service.enableHttps=false", "controller.podAnnotations.a=b"},
	"cert-manager":   {"replicaCount=2", "podLabels.a=b", "extraArgs={--v=4}", "cainjector.enabled=false"},
	"velero":         {"image.tag=v1.18.0", "podAnnotations.a=b", "configuration.backupStorageLocation[0].bucket=other", "configuration.logLevel=debug"},
	"redis":          {"replica.replicaCount=2", "master.podAnnotations.a=b", "commonConfiguration=maxmemory 1mb", "metrics.enabled=true"},
	"prometheus":     {"server.replicaCount=2", "server.podAnnotations.a=b", "server.global.scrape_interval=7s", "prometheus-pushgateway.enabled=false"},
	"nats":           {"config.cluster.enabled=true", "config.monitor.port=8333", "natsBox.enabled=false"},
	"sonarqube":      {"replicaCount=2", "image.tag=8.0-community", "service.externalPort=99", "resources.limits.memory=4Gi"},
	"everything":     {"image=busybox:1.36", "data.colour=red", "data.more=1"},
	"rename":         {"containers={backend,frontend}"},
	"web":            {"replicas=3", "greeting=Bye", "podAnnotations.a=b"},
	"subcharts":      {"sessions.enabled=true", "database.storage=2Gi", "global.region=south"},
	"library":        {"replicas=3", "tier=gold"},
	"crds":           {"size=2"},
	"hooks":          {"data.colour=red"},
	"schema":         {"replicas=2"},
}

func fidelityCases(t *testing.T) []fidelityCase {
	var out []fidelityCase
	for _, name := range testcharts.Names() {
		if change, ok := fidelityChanges[name]; ok {
			out = append(out, fidelityCase{chartCase: chartCase{name: name}, change: change})
		}
	}
	for _, c := range chartsOf(storyOfPlans) {
		if c.random {
			c.set = append(slices.Clone(c.set), "auth.password=not-random")
		}
		change, ok := fidelityChanges[c.name]
		if !ok {
			t.Errorf("chart %s has no values that change it", c.name)
		}
		out = append(out, fidelityCase{chartCase: c, change: change, public: true})
	}
	return out
}

// TestPlansComeTrue plans and carries out each chart: from nothing, from what
// Helm 3 has installed with other values, from edits by hand, from a release of
// Helm 3 that failed halfway, back to an earlier revision, and away. What the
// plan has predicted is then what the cluster has.
func TestPlansComeTrue(t *testing.T) {
	t.Parallel()
	for _, c := range fidelityCases(t) {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p := &prophecy{world: w, name: w.unique(), c: c}
			if c.public {
				p.chart = publicChart(t, c.name)
			} else {
				p.chart = p.ownKinds(testcharts.Dir(t, c.name))
			}
			w.sole(c.name, p.name)
			p.told()
		})
	}
}

// A prophecy is one chart whose plans are to come true.
type prophecy struct {
	*world
	name, chart string
	c           fidelityCase
}

func (p *prophecy) told() {
	before, after := p.c.set, append(slices.Clone(p.c.set), p.c.change...)
	p.upgrade("from nothing", before)
	p.uninstall("what was deployed")
	if p.c.name == "crds" {
		return // Helm can't install what is of a kind that a template defines
	}

	p.helm(append([]string{"install", p.name, p.chart}, p.flags(before)...)...)
	p.upgrade("from Helm 3", after)
	p.edit()
	p.upgrade("edited by hand", before)
	p.helmExits(1, append([]string{"upgrade", p.name, p.failing(), "--reset-values"}, p.flags(after)...)...)
	p.upgrade("after a failure", before)
	p.check("rolled back", func(d *deploy.Deployer) (*deploy.Operation, error) {
		return d.Rollback(p.Context(), deploy.RollbackRequest{Name: p.name, Revision: 2})
	}, "rollback", p.name, "2", "--wait=false", "--allow-stored-hooks")
	p.uninstall("what was rolled back")
}

// ownKinds gives the custom kinds of a test chart an API group that no other test
// uses.
func (p *prophecy) ownKinds(dir string) string {
	p.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, bytes.ReplaceAll(data, []byte("testcharts.deployer.io"), []byte(p.name+".example.com")), 0o644)
	})
	if err != nil {
		p.Fatal(err)
	}
	return dir
}

func (p *prophecy) flags(set []string) []string {
	return chartCase{set: set}.flags(p.world, p.name)
}

func (p *prophecy) upgrade(when string, set []string) {
	p.Helper()
	args := append([]string{"upgrade", p.name, p.chart, "--install", "--reset-values", "--wait=false"}, p.flags(set)...)
	p.check(when, func(d *deploy.Deployer) (*deploy.Operation, error) {
		loaded, err := chart.Load(p.Context(), p.chart, chart.LoadOptions{})
		if err != nil {
			return nil, err
		}
		values, err := chart.Values(p.Context(), p.sources(set), chart.ValuesOptions{})
		if err != nil {
			return nil, err
		}
		return d.Upgrade(p.Context(), deploy.UpgradeRequest{
			Name: p.name, Chart: loaded, Values: values, Install: deploy.InstallIfMissing, Reuse: chart.ResetValues,
		})
	}, args...)
}

func (p *prophecy) sources(set []string) []chart.ValuesSource {
	var out []chart.ValuesSource
	flags := p.flags(set)
	for i := 1; i < len(flags); i += 2 {
		out = append(out, chart.ValuesSource{Kind: chart.Set, Value: flags[i]})
	}
	return out
}

func (p *prophecy) uninstall(when string) {
	p.Helper()
	p.check(when, func(d *deploy.Deployer) (*deploy.Operation, error) {
		return d.Uninstall(p.Context(), deploy.UninstallRequest{Name: p.name})
	}, "uninstall", p.name, "--allow-stored-hooks")
}

// check plans, runs deployer, and compares.
func (p *prophecy) check(when string, decide func(*deploy.Deployer) (*deploy.Operation, error), args ...string) {
	p.Helper()
	cluster := kube.New(p.user.Config(), p.ns)
	op, err := decide(deploy.New(cluster, p.ns, deploy.Settings{Policies: deploy.Policies{AllowStoredHooks: true}}))
	if err != nil {
		p.Fatalf("%s: planning: %v", when, err)
	}
	p.ok(args...)
	cluster = kube.New(p.user.Config(), p.ns) // one that doesn't remember which kinds there were
	for c := range op.Plan.Changes() {
		p.cameTrue(cluster, when, c)
	}
}

// cameTrue compares one object with what was planned for it.
func (p *prophecy) cameTrue(cluster *kube.Cluster, when string, c apply.Change) {
	p.Helper()
	if c.Action == decide.Delete {
		p.cluster.Eventually(p.T, waitTimeout, when+": "+c.ID.String()+" is gone", func(ctx context.Context) error {
			if live := p.find(ctx, cluster, c); live != nil && live.GetUID() == c.Live.GetUID() {
				return fmt.Errorf("it is still there")
			}
			return nil
		})
		return
	}
	live := p.find(p.Context(), cluster, c)
	if live == nil {
		p.Errorf("%s: %s is not there, though planned: %s", when, c.ID, c.Action)
		return
	}
	switch want := c.Predicted; {
	case c.Action == decide.Keep || c.WasNotCompared():
		if live.GetGeneration() != c.Live.GetGeneration() || live.GetUID() != c.Live.GetUID() {
			p.Errorf("%s: %s has changed, though planned: %s", when, c.ID, c.Action)
		}
	case want == nil || c.ID.Kind == "Pod" && c.Action == decide.Create:
		// Of Pods much depends on what else there is by then: a node, limits.
		p.differ(when, c, p.compare(cluster, apply.Change{Live: live, Desired: c.Desired}))
	default:
		p.same(cluster, when, c, generated(want), generated(live))
	}
}

func (p *prophecy) same(cluster *kube.Cluster, when string, c apply.Change, want, got *unstructured.Unstructured) {
	p.Helper()
	if reflect.DeepEqual(want.Object, got.Object) {
		return
	}
	if changes := p.compare(cluster, apply.Change{Live: want, Predicted: got}); len(changes) > 0 {
		p.differ(when, c, changes)
		return
	}
	a, _ := json.Marshal(want.Object)
	b, _ := json.Marshal(got.Object)
	p.Errorf("%s: %s (%s)\nplanned %s\nis      %s", when, c.ID, c.Action, a, b)
}

// compare lists what differs between two states of an object, or where it isn't
// as it was wanted, by the server's schema.
func (p *prophecy) compare(cluster *kube.Cluster, c apply.Change) []diff.Field {
	p.Helper()
	conv, err := cluster.TypeConverter(p.Context(), c.Live.GroupVersionKind().GroupVersion())
	if err != nil {
		p.Fatal(err)
	}
	if conv == nil {
		conv = managedfields.NewDeducedTypeConverter()
	}
	states := compare.States{Before: c.Live, After: c.Predicted}
	if c.Predicted == nil {
		states.After, states.AfterIsManifest = c.Desired, true
	}
	if c.Fields, err = compare.Fields(conv, states); err != nil {
		p.Fatal(err)
	}
	return diff.Fields(c, nil)
}

func (p *prophecy) differ(when string, c apply.Change, changes []diff.Field) {
	p.Helper()
	for _, f := range changes {
		p.Errorf("%s: %s (%s): %s is %v, planned was %v", when, c.ID, c.Action, f.Path, f.After, f.Before)
	}
}

// find reads an object, in the version it was planned in; nil when it isn't there.
func (p *prophecy) find(ctx context.Context, cluster *kube.Cluster, c apply.Change) *unstructured.Unstructured {
	p.Helper()
	id, gvk := c.ID, c.ID.GroupKind().WithVersion("")
	if c.Desired != nil {
		gvk = c.Desired.GroupVersionKind()
	}
	mapping, err := cluster.Mapping(ctx, gvk, true)
	if unknown := (*kube.NoKindMatchError)(nil); errors.As(err, &unknown) {
		return nil // it went with its kind
	}
	if err != nil {
		p.Fatalf("%s: %v", id, err)
	}
	obj, err := cluster.ResourceClient(mapping, id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		p.Fatalf("reading %s: %v", id, err)
	}
	return obj
}

// generated is an object without what is made up anew each time, or by
// controllers.
func generated(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	for _, path := range []string{
		"status", "metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp", "metadata.managedFields",
		"spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort",
		"spec.selector.matchLabels.batch.kubernetes.io/controller-uid",
	} {
		unstructured.RemoveNestedField(out.Object, strings.Split(path, ".")...)
	}
	annotations := out.GetAnnotations()
	delete(annotations, "deployment.kubernetes.io/revision")
	delete(annotations, "deprecated.daemonset.template.generation")
	out.SetAnnotations(annotations)
	if out.GetKind() == "Job" {
		unstructured.RemoveNestedField(out.Object, "spec", "selector")
		unstructured.RemoveNestedField(out.Object, "spec", "template", "metadata", "labels")
	}
	if ports, ok, _ := unstructured.NestedSlice(out.Object, "spec", "ports"); ok && out.GetKind() == "Service" {
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort")
		}
		_ = unstructured.SetNestedSlice(out.Object, ports, "spec", "ports")
	}
	return out
}

// edit changes all that a release has by hand: values of the chart, and beside
// them. The replicas are within the limits of all autoscalers, whose controller
// would otherwise see to them sooner or later.
func (p *prophecy) edit() {
	p.Helper()
	for _, obj := range p.everything() {
		kind := strings.ToLower(obj.GetKind()) + "s"
		edits := []string{`{"metadata":{"labels":{"edited":"yes"},"annotations":{"edited":"too"}}}`}
		switch obj.GetKind() {
		case "Deployment", "StatefulSet":
			p.patch(kind, obj.GetName(), "kubectl", `{"spec":{"replicas":4}}`, "scale")
			edits = append(edits, `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":77},"metadata":{"annotations":{"edited":"too"}}}}}`)
		case "ConfigMap":
			edits = append(edits, `{"data":{"edited":"yes"}}`)
		case "Service":
			edits = append(edits, `{"spec":{"sessionAffinity":"ClientIP"}}`)
		default:
			continue
		}
		for _, edit := range edits {
			p.patch(kind, obj.GetName(), "kubectl-edit", edit)
		}
		if containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers"); len(containers) > 0 {
			p.setImage(kind, obj.GetName())
		}
	}
}

// setImage changes the image of the first container of a workload.
func (p *prophecy) setImage(kind, name string) {
	p.Helper()
	edit := []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"edited:1"}]`)
	_, err := p.in(kind).Patch(p.Context(), name, types.JSONPatchType, edit, metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		p.Fatalf("changing %s/%s/%s: %v", kind, p.ns, name, err)
	}
}

// failing is the chart with an object more, and a hook that fails after
// everything has been changed.
func (p *prophecy) failing() string {
	p.Helper()
	dir := filepath.Join(p.TempDir(), p.c.name)
	if err := os.CopyFS(dir, os.DirFS(p.chart)); err != nil {
		p.Fatal(err)
	}
	templates := filepath.Join(dir, "templates")
	if err := os.Chmod(templates, 0o755); err != nil {
		p.Fatal(err)
	}
	for file, text := range map[string]string{
		"zz-hook.yaml": hookJob("zz-fails", "post-upgrade", "before-hook-creation,hook-failed", true),
		"zz-more.yaml": configMap("zz-left", "1"),
	} {
		if err := os.WriteFile(filepath.Join(templates, file), []byte(text), 0o644); err != nil {
			p.Fatal(err)
		}
	}
	return dir
}
