package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"deployer/apply"
	"deployer/apply/decide"
	definitions "deployer/apply/definition"
	"deployer/apply/provenance"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

// story is one release in one namespace, and the other people in it.
type story struct {
	t       *testing.T
	c       *kubetest.Cluster
	ns      string
	agent   string
	cluster *kube.Cluster
	owner   provenance.Owner
	opts    apply.Options
	past    []apply.Revision
	marks   map[string]apply.Fingerprint
	left    []string
	space   []string // NewNamespaces
	brought map[string]definitions.Contribution
	// provenance is that of the objects of the revision that is recorded next.
	provenance map[string]provenance.Provenance
	crds       string
	backTo     int
	moved      []kube.ID // MovedToCRDs
	hooks      string
	resting    string
	planners   *sync.Map // the applier of each plan, by *apply.Plan
}

var agents atomic.Int64

func begin(t *testing.T) *story {
	t.Helper()
	t.Parallel()
	return newStory(t)
}

func newStory(t *testing.T) *story {
	t.Helper()
	c := kubetest.Start(t)
	ns := c.Namespace(t)
	s := &story{t: t, c: c, ns: ns, owner: provenance.Owner{Release: "web", Namespace: ns}, planners: &sync.Map{}}
	// Other tests may have APIServices without a server in the same cluster.
	s.opts.PartialDiscovery = true
	s.agent = fmt.Sprintf("apply-test-%d-%s", agents.Add(1), ns)
	config := c.Config()
	config.UserAgent = s.agent
	s.cluster = kube.New(config, ns)
	return s
}

// manifests reads YAML documents. NS is replaced by the story's namespace.
func (s *story) manifests(text string) []kube.Manifest {
	s.t.Helper()
	var out []kube.Manifest
	for i, doc := range strings.Split(text, "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(doc, "NS", s.ns)))
		if err != nil {
			s.t.Fatalf("document %d: %v\n%s", i, err, doc)
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(data); err != nil {
			s.t.Fatalf("document %d: %v\n%s", i, err, doc)
		}
		out = append(out, kube.Manifest{Source: fmt.Sprintf("web/templates/%d.yaml", i), Object: obj})
	}
	return out
}

func (s *story) request(chart string) apply.Request {
	return apply.Request{
		CRDs:          s.manifests(s.crds),
		Objects:       s.manifests(chart),
		Uninstall:     chart == "",
		Hooks:         s.manifests(s.hooks),
		OtherHooks:    s.manifests(s.resting),
		Revisions:     s.past,
		Fingerprints:  s.marks,
		Revisit:       s.left,
		NewNamespaces: s.space,
		Contributions: s.brought,
		BackTo:        s.backTo,
		MovedToCRDs:   s.moved,
	}
}

func (s *story) applier() *apply.Applier { return apply.New(s.cluster, s.owner, s.opts) }

func (s *story) plan(chart string) *apply.Plan {
	s.t.Helper()
	p, err := s.tryPlan(s.request(chart))
	if err != nil {
		s.t.Fatalf("Plan: %v", err)
	}
	return p
}

func (s *story) tryPlan(req apply.Request) (*apply.Plan, error) {
	a := s.applier()
	p, err := a.Plan(s.t.Context(), req)
	if err == nil {
		s.planners.Store(p, a)
	}
	return p, err
}

// planner is the applier that made a plan.
func (s *story) planner(p *apply.Plan) *apply.Applier {
	a, _ := s.planners.Load(p)
	return a.(*apply.Applier)
}

func (s *story) refuse(chart string) error {
	s.t.Helper()
	_, err := s.tryPlan(s.request(chart))
	if err == nil {
		s.t.Fatalf("Plan succeeded, want a rejection")
	}
	return err
}

// deploy plans and carries out, and remembers it as a deployed revision.
func (s *story) deploy(chart string) *apply.Plan {
	s.t.Helper()
	p := s.plan(chart)
	planned := slices.Collect(p.Changes())
	s.noteProvenance(planned, s.run(p), true)
	s.record("deployed", chart)
	return p
}

func (s *story) run(p *apply.Plan) []apply.Change {
	s.t.Helper()
	done, err := s.tryRun(p)
	if err != nil {
		s.t.Fatalf("Run: %v", err)
	}
	return done
}

// fingerprintsOf are the fingerprints that a release records of its changes, by Key.
func fingerprintsOf(done []apply.Change) map[string]apply.Fingerprint {
	out := map[string]apply.Fingerprint{}
	for _, c := range done {
		if fingerprint := c.RecordedFingerprint(); fingerprint.Hash != "" {
			out[apply.Key(c.ID)] = fingerprint
		}
	}
	return out
}

func (s *story) tryRun(p *apply.Plan) ([]apply.Change, error) {
	var done []apply.Change
	if err := s.carryOut(s.t.Context(), p, func(c *apply.Change) { done = append(done, *c) }); err != nil {
		return done, err
	}
	s.marks = fingerprintsOf(done)
	s.left = nil
	for _, c := range done {
		if c.Contribution != nil {
			s.brought = maps.Clone(s.brought)
			if s.brought == nil {
				s.brought = map[string]definitions.Contribution{}
			}
			s.brought[apply.Key(c.ID)] = *c.Contribution
		}
		if c.RevisitNextRelease {
			s.left = append(s.left, apply.Key(c.ID))
		}
	}
	return done, nil
}

// carryOut makes the changes of a plan, in its order, until one fails.
func (s *story) carryOut(ctx context.Context, p *apply.Plan, onDone func(*apply.Change)) error {
	a := s.planner(p)
	if err := a.Run(ctx, p.CRDs, onDone); err != nil {
		return err
	}
	for _, w := range p.Waves {
		if err := a.Run(ctx, w.Changes, onDone); err != nil {
			return err
		}
	}
	if err := a.AwaitKinds(ctx, true); err != nil {
		return err
	}
	return a.Prune(ctx, p.Prune, apply.UntilNotBack, onDone)
}

// record remembers a revision; a deployed one makes those before it history.
func (s *story) record(status, chart string) {
	n := s.next()
	if status == "deployed" {
		s.past = nil
	}
	s.past = append(s.past, apply.Revision{Revision: n, Status: status, Succeeded: status == "deployed" || status == "superseded", Objects: s.manifests(chart), Hooks: s.manifests(s.hooks), Provenance: s.provenance})
	s.provenance = nil
}

func (s *story) client(apiVersion, kind string) dynamic.ResourceInterface {
	s.t.Helper()
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	m, err := s.cluster.Mapping(s.t.Context(), gvk, true)
	if err != nil {
		s.t.Fatal(err)
	}
	if m.Namespaced {
		return s.c.Dynamic().Resource(m.Resource).Namespace(s.ns)
	}
	return s.c.Dynamic().Resource(m.Resource)
}

func (s *story) get(apiVersion, kind, name string) *unstructured.Unstructured {
	s.t.Helper()
	obj, err := s.client(apiVersion, kind).Get(s.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return obj
}

// helm3Install does what Helm 3 does to create objects: POST, with ownership.
func (s *story) helm3Install(chart string) {
	s.t.Helper()
	for _, m := range s.manifests(chart) {
		s.post(s.owned(m.Object), "helm")
	}
}

// install makes the first release of a chart, with deployer or as Helm 3 does it.
func (s *story) install(chart string, legacy bool) {
	s.t.Helper()
	if !legacy {
		s.deploy(chart)
		return
	}
	s.helm3Install(chart)
	s.record("deployed", chart)
}

func (s *story) owned(obj *unstructured.Unstructured) *unstructured.Unstructured {
	o := obj.DeepCopy()
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"] = s.owner.Release
	annotations["meta.helm.sh/release-namespace"] = s.owner.Namespace
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	return o
}

func (s *story) post(obj *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	s.t.Helper()
	out, err := s.client(obj.GetAPIVersion(), obj.GetKind()).Create(s.t.Context(), obj, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		s.t.Fatalf("POST %s: %v", kube.IDOf(obj), err)
	}
	return out
}

// helm3Upgrade does what Helm 3 does to update built-in kinds: a three-way
// strategic merge patch from the last deployed revision.
func (s *story) helm3Upgrade(from, to string) {
	s.t.Helper()
	old := map[kube.ID]*unstructured.Unstructured{}
	for _, m := range s.manifests(from) {
		old[kube.IDOf(m.Object)] = s.owned(m.Object)
	}
	for _, m := range s.manifests(to) {
		want := s.owned(m.Object)
		live := s.get(want.GetAPIVersion(), want.GetKind(), want.GetName())
		if live == nil {
			s.post(want, "helm")
			continue
		}
		original, modified, current := marshal(s.t, old[kube.IDOf(m.Object)]), marshal(s.t, want), marshal(s.t, live)
		typed, err := scheme.Scheme.New(want.GroupVersionKind())
		if err != nil {
			s.t.Fatal(err)
		}
		meta, err := strategicpatch.NewPatchMetaFromStruct(typed)
		if err != nil {
			s.t.Fatal(err)
		}
		patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, meta, true)
		if err != nil {
			s.t.Fatal(err)
		}
		s.patch(want.GetAPIVersion(), want.GetKind(), want.GetName(), types.StrategicMergePatchType, string(patch), "helm")
	}
}

func marshal(t *testing.T, obj *unstructured.Unstructured) []byte {
	t.Helper()
	if obj == nil {
		return []byte("{}")
	}
	data, err := json.Marshal(obj.Object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (s *story) patch(apiVersion, kind, name string, how types.PatchType, patch, manager string, sub ...string) *unstructured.Unstructured {
	s.t.Helper()
	opts := metav1.PatchOptions{FieldManager: manager}
	if how == types.ApplyPatchType {
		force := true
		opts.Force = &force
	}
	out, err := s.client(apiVersion, kind).Patch(s.t.Context(), name, how, []byte(patch), opts, sub...)
	if err != nil {
		s.t.Fatalf("PATCH %s/%s: %v", kind, name, err)
	}
	return out
}

// settle waits until nobody writes the objects any more.
func (s *story) generation(apiVersion, kind, name string) int64 {
	s.t.Helper()
	return s.get(apiVersion, kind, name).GetGeneration()
}

// summary writes what a plan does, one line per change that isn't nothing.
func summary(p *apply.Plan) string {
	var lines []string
	for c := range p.Changes() {
		if c.Action != decide.Unchanged {
			lines = append(lines, fmt.Sprintf("%s %s/%s", c.Action, c.ID.Kind, c.ID.Name))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func (s *story) expect(p *apply.Plan, want ...string) {
	s.t.Helper()
	sort.Strings(want)
	if got := summary(p); got != strings.Join(want, "\n") {
		s.t.Errorf("the plan is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func (s *story) eventually(what string, met func() error) {
	s.t.Helper()
	s.c.Eventually(s.t, 2*time.Minute, what, func(context.Context) error { return met() })
}

// at reads a value of an object by dots; items of lists by their name.
func at(obj *unstructured.Unstructured, path string) any {
	if obj == nil {
		return nil
	}
	var v any = obj.Object
	for _, key := range strings.Split(path, ".") {
		key = strings.ReplaceAll(key, "\\", ".")
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			v = nil
			for _, item := range in {
				if m, ok := item.(map[string]any); ok && m["name"] == key {
					v = m
				}
			}
		default:
			return nil
		}
	}
	return v
}

func names(v any) string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		out = append(out, fmt.Sprint(m["name"]))
	}
	return strings.Join(out, " ")
}

// managers writes who has an entry in managedFields.
func managers(obj *unstructured.Unstructured) string {
	var out []string
	for _, e := range obj.GetManagedFields() {
		if e.Subresource == "" {
			out = append(out, e.Manager+"/"+string(e.Operation))
		}
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}

var deleteNow = metav1.DeleteOptions{}
