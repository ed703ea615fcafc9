package apply_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/ownership"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

// A mover is a story with a kind, Move, whose two versions have other field names, and the webhook between them.
type mover struct {
	*story
	up atomic.Bool // whether the webhook answers
}

// beginMove makes the definition of Move, of which one version is stored.
func beginMove(t *testing.T, stored string) *mover {
	t.Helper()
	m := &mover{story: begin(t)}
	m.up.Store(true)
	cert, ca := localCertificate(t)
	server := kubetest.Converter(t, cert, m.up.Load, convertMove)
	m.define(stored, server.URL, ca)
	crds := m.client("apiextensions.k8s.io/v1", "CustomResourceDefinition")
	t.Cleanup(func() { crds.Delete(bg, "moves."+m.ns+".example.com", deleteNow) })
	m.eventually("both versions to be served", func() error {
		for _, version := range []string{"v1", "v1beta1"} {
			moves := schema.GroupVersionResource{Group: m.ns + ".example.com", Version: version, Resource: "moves"}
			if _, err := m.c.Dynamic().Resource(moves).List(bg, metav1.ListOptions{}); err != nil {
				return err
			}
			m.cluster = kube.New(m.c.Config(), m.ns) // which has asked nothing yet
			if _, err := m.cluster.Mapping(bg, moves.GroupVersion().WithKind("Move"), false); err != nil {
				return err
			}
		}
		return nil
	})
	return m
}

// define makes the definition as it is to be, by somebody else.
func (m *mover) define(stored, url, ca string) {
	m.t.Helper()
	crd := m.manifests(moveDefinition(stored, url, ca))[0].Object
	m.patch(crd.GetAPIVersion(), crd.GetKind(), crd.GetName(), types.ApplyPatchType, string(marshal(m.t, crd)), "somebody")
}

func moveDefinition(stored, url, ca string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: moves.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {plural: moves, kind: Move, singular: move, listKind: MoveList}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: '%s', caBundle: %s}}}
  versions:
  - {name: v1beta1, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {host: {type: string}, port: {type: integer}, backends: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}}}}}
  - {name: v1, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {address: {type: string}, endpoints: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, weight: {type: integer}}}}}}}}}}
`, url, ca, stored == "v1beta1", stored == "v1")
}

// convertMove converts between v1beta1, which has host, port and names, and v1, which has an address and endpoints.
func convertMove(obj *unstructured.Unstructured) {
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	if strings.HasSuffix(obj.GetAPIVersion(), "/v1") {
		if spec["host"] != nil || spec["port"] != nil {
			spec["address"] = fmt.Sprint(spec["host"], ":", spec["port"])
		}
		names, _ := spec["backends"].([]any)
		for _, name := range names {
			endpoints, _ := spec["endpoints"].([]any)
			spec["endpoints"] = append(endpoints, map[string]any{"name": name, "weight": int64(1)})
		}
	} else {
		if address, ok := spec["address"].(string); ok {
			host, port, _ := strings.Cut(address, ":")
			spec["host"] = host
			if n, err := strconv.ParseInt(port, 10, 64); err == nil {
				spec["port"] = n
			}
		}
		endpoints, _ := spec["endpoints"].([]any)
		for _, e := range endpoints {
			names, _ := spec["backends"].([]any)
			spec["backends"] = append(names, e.(map[string]any)["name"])
		}
	}
	others := []string{"host", "port", "backends"}
	if strings.HasSuffix(obj.GetAPIVersion(), "beta1") {
		others = []string{"address", "endpoints"}
	}
	for _, name := range others {
		delete(spec, name)
	}
	obj.Object["spec"] = spec
}

func move(version, spec string) string {
	return "apiVersion: NS.example.com/" + version + "\nkind: Move\nmetadata: {name: m}\nspec: {" + spec + "}\n"
}

// spec writes what Move m is in v1.
func (m *mover) spec() string {
	m.t.Helper()
	spec, _, _ := unstructured.NestedMap(m.get(m.ns+".example.com/v1", "Move", "m").Object, "spec")
	return fmt.Sprint(spec)
}

const (
	oldMove     = `host: a, port: 80, backends: [bx, by]`
	newMove     = `address: "a:80", endpoints: [{name: bx, weight: 1}, {name: by, weight: 1}]`
	smallerMove = `address: "a:80", endpoints: [{name: bx, weight: 1}]`
)

// TestDropsAcrossVersions fails if a plan says "no changes" of a custom resource that moves to a version with other
// field names and drops something, or if what Helm 3 has set in the old version stays for ever.
func TestDropsAcrossVersions(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{"v1", "v1beta1"} {
		for _, legacy := range []bool{false, true} {
			t.Run(fmt.Sprint(stored, " stored, legacy ", legacy), func(t *testing.T) {
				m := beginMove(t, stored)
				m.install(move("v1beta1", oldMove), legacy)
				p := m.plan(move("v1", smallerMove))
				m.expect(p, "update Move/m")
				for c := range p.Changes() {
					switch {
					case legacy && c.Unverified == "":
						t.Error("the plan doesn't say that it doesn't know yet what is dropped")
					case !legacy && !strings.Contains(fmt.Sprint(c.Fields), `endpoints[name="by"]`):
						t.Errorf("the plan says only: %v", c.Fields)
					}
				}
				m.deploy(move("v1", smallerMove))
				if got, want := m.spec(), "map[address:a:80 endpoints:[map[name:bx weight:1]]]"; got != want {
					t.Errorf("it is %s, want %s", got, want)
				}
				m.expect(m.deploy(move("v1", smallerMove)))
			})
		}
	}
}

// TestMovesWithoutChange fails if a custom resource is changed, or said to be, because it only moves to another version.
func TestMovesWithoutChange(t *testing.T) {
	m := beginMove(t, "v1beta1")
	m.deploy(move("v1beta1", oldMove))
	before := m.generation(m.ns+".example.com/v1", "Move", "m")
	m.expect(m.deploy(move("v1", newMove)))
	m.expect(m.deploy(move("v1", newMove)))
	if after := m.generation(m.ns+".example.com/v1", "Move", "m"); after != before {
		t.Errorf("generation %d, was %d", after, before)
	}
	m.expect(m.deploy(move("v1", smallerMove)), "update Move/m")
	m.expect(m.deploy(move("v1beta1", `host: a, port: 80`)), "update Move/m") // back
	if got, want := m.spec(), "map[address:a:80]"; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

// TestConflictsAcrossVersions fails if what somebody has set in another version is overwritten in silence.
func TestConflictsAcrossVersions(t *testing.T) {
	m := beginMove(t, "v1")
	m.deploy(move("v1", newMove))
	m.patch(m.ns+".example.com/v1beta1", "Move", "m", types.MergePatchType, `{"spec":{"host":"theirs"}}`, "kubectl-edit")
	for _, policy := range []decide.ConflictPolicy{decide.FailOnConflict, decide.YieldConflicts} {
		m.opts.Conflicts = policy
		if err := m.refuse(move("v1", newMove)); !strings.Contains(err.Error(), "kubectl-edit") || !strings.Contains(err.Error(), "spec.host of "+m.ns) {
			t.Errorf("%s: %v", policy, err)
		}
	}
	m.opts.Conflicts = decide.TakeConflicts
	p := m.deploy(move("v1", newMove))
	for c := range p.Changes() {
		if !strings.Contains(fmt.Sprint(c.Conflicts), "kubectl-edit") {
			t.Errorf("the plan doesn't say from whom it takes something: %v", c.Conflicts)
		}
	}
	if got, want := m.spec(), "map[address:a:80 endpoints:[map[name:bx weight:1] map[name:by weight:1]]]"; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

// TestOwnersAcrossVersions fails if an object can't move to another version because others own fields of it in the old
// one, where the API server fails, or if what they own goes.
func TestOwnersAcrossVersions(t *testing.T) {
	m := beginMove(t, "v1")
	m.deploy(move("v1beta1", oldMove))
	m.patch(m.ns+".example.com/v1beta1", "Move", "m", types.MergePatchType, `{"spec":{"host":"theirs"}}`, "kubectl-edit")
	m.patch(m.ns+".example.com/v1beta1", "Move", "m", types.ApplyPatchType, strings.ReplaceAll(move("v1beta1", `backends: [by]`), "NS", m.ns), "operator")
	// What others own of it goes to the webhook without metadata, and the API server refuses what comes back: seen on Kubernetes 1.37.2.
	force := true
	_, err := m.client(m.ns+".example.com/v1", "Move").Patch(bg, "m", types.ApplyPatchType, []byte(strings.ReplaceAll(move("v1", smallerMove), "NS", m.ns)),
		metav1.PatchOptions{FieldManager: ownership.Manager, Force: &force, DryRun: []string{metav1.DryRunAll}})
	if err == nil || !strings.Contains(err.Error(), "failed to prune fields") || !strings.Contains(err.Error(), "missing metadata in converted object") {
		t.Errorf("an apply as it is says: %v", err)
	}
	m.opts.Conflicts = decide.FailOnConflict
	if _, err := m.tryRun(m.plan(move("v1", smallerMove))); err == nil || !strings.Contains(err.Error(), "kubectl-edit") {
		t.Errorf("it says: %v", err)
	}
	m.opts.Conflicts = decide.TakeConflicts
	m.deploy(move("v1", smallerMove))
	if got, want := m.spec(), "map[address:a:80 endpoints:[map[name:bx weight:1] map[name:by weight:1]]]"; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
	m.deploy(move("v1", smallerMove))
	m.expect(m.deploy(move("v1", smallerMove)))
}

// TestDeadConverter fails if an object which doesn't change can't be deployed, or another one is changed by half a
// view, while nobody converts between the versions of a kind.
func TestDeadConverter(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{"v1", "v1beta1"} {
		t.Run(stored+" stored", func(t *testing.T) {
			m := beginMove(t, stored)
			m.deploy(move("v1beta1", oldMove))
			m.up.Store(false)
			m.opts.RetryTimeout = 2 * time.Second
			m.expect(m.deploy(move("v1beta1", oldMove)+"\n---\n"+config("beside")), "create ConfigMap/beside")
			err := m.refuse(move("v1", smallerMove) + "\n---\n" + config("beside"))
			if !strings.Contains(err.Error(), "conversion webhook for "+m.ns+".example.com/v1") || !strings.Contains(err.Error(), "Move/"+m.ns+"/m") {
				t.Errorf("it says: %v", err)
			}
		})
	}
}

// TestConverterThatTheReleaseMends fails if a release can't be planned that brings the converter of its custom resources back.
func TestConverterThatTheReleaseMends(t *testing.T) {
	m := beginMove(t, "v1")
	m.deploy(move("v1beta1", oldMove))
	m.up.Store(false)
	m.opts.RetryTimeout, m.opts.TakeOwnership = 2*time.Second, true
	crd := m.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "moves."+m.ns+".example.com")
	service := map[string]any{"service": map[string]any{"namespace": m.ns, "name": "converter"}}
	if err := unstructured.SetNestedMap(crd.Object, service, "spec", "conversion", "webhook", "clientConfig"); err != nil {
		t.Fatal(err)
	}
	text := marshal(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crd.GetAPIVersion(), "kind": crd.GetKind(), "metadata": map[string]any{"name": crd.GetName()}, "spec": crd.Object["spec"],
	}})
	p := m.plan(string(text) + "\n---\n" + move("v1", smallerMove) + `
---
apiVersion: v1
kind: Service
metadata: {name: converter}
spec: {selector: {app: converter}, ports: [{port: 443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: converter}
spec: {selector: {matchLabels: {app: converter}}, template: {metadata: {labels: {app: converter}}, spec: {containers: [{name: c, image: r/x:1}]}}}
`)
	if c := change(t, p, "Move", "m"); c.Deferral == nil || !strings.Contains(c.Unverified, "conversion webhook") {
		t.Errorf("%s %s: %s", c.Action, c.ID, c.Unverified)
	}
}

// TestConverterThatTheDefinitionReplaces fails if custom resources can't be changed because of a dead converter that their definition
// names no more.
func TestConverterThatTheDefinitionReplaces(t *testing.T) {
	m := beginMove(t, "v1")
	m.deploy(move("v1beta1", oldMove))
	m.up.Store(false)
	m.opts.RetryTimeout, m.opts.TakeOwnership = 2*time.Second, true
	cert, ca := localCertificate(t)
	other := kubetest.Converter(t, cert, func() bool { return true }, convertMove)
	chart := moveDefinition("v1", other.URL, ca) + "\n---\n" + move("v1", smallerMove)
	p := m.plan(chart)
	if c := change(t, p, "Move", "m"); c.Deferral == nil || !strings.Contains(c.Unverified, "the release changes its CustomResourceDefinition") {
		t.Errorf("%s %s: %s", c.Action, c.ID, c.Unverified)
	}
	m.opts.RetryTimeout = time.Minute
	m.deploy(chart)
	if got := fmt.Sprint(at(m.get(m.ns+".example.com/v1", "Move", "m"), "spec.address")); !strings.Contains(got, ":") {
		t.Errorf("spec.address is %s", got)
	}
}

// TestVersionThatTheReleaseAdds fails if a plan takes an object in a version that its definition gets with the release for a new
// one, and finds out whose it is when the definition has changed already.
func TestVersionThatTheReleaseAdds(t *testing.T) {
	s := newStory(t)
	s.dropCRDs(1)
	old := definition(0, "")
	s.deploy(old + "---" + foo(0, "size: 1"))
	added := strings.Replace(old, "  versions:", "  versions:\n  - {name: v9, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}", 1)
	next := added + "---" + strings.Replace(foo(0, "size: 2"), "/v1\n", "/v9\n", 1)
	if c := change(t, s.plan(next), "Foo0", "f"); c.Action != decide.Update || c.Deferral == nil {
		t.Errorf("%s %s: %s", c.Action, c.ID, c.Unverified)
	}
	s.patch(s.ns+".example.com/v1", "Foo0", "f", merge, `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`, "somebody")
	var theirs *apply.OwnershipError
	if err := s.refuse(next); !errors.As(err, &theirs) {
		t.Errorf("got %v", err)
	}
}

// TestDropsFromABuiltinVersion is TestDropsAcrossVersions for a kind that the API server converts itself.
func TestDropsFromABuiltinVersion(t *testing.T) {
	s := begin(t)
	hpa := func(version, spec string) string {
		return "apiVersion: autoscaling/" + version + "\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}, " + spec + "}\n"
	}
	for _, legacy := range []bool{false, true} {
		s := s
		if legacy {
			s = newStory(t)
		}
		s.install(hpa("v1", "targetCPUUtilizationPercentage: 70"), legacy)
		s.deploy(hpa("v2", "metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}]"))
		if got := fmt.Sprint(at(s.get("autoscaling/v2", "HorizontalPodAutoscaler", "h"), "spec.metrics")); strings.Contains(got, "cpu") {
			t.Errorf("legacy %t: metrics are %s", legacy, got)
		}
	}
}
