package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

// definition is a CRD of a group of its own for each story.
func definition(n int, extra string) string {
	return strings.NewReplacer("N#", fmt.Sprint(n), "EXTRA", extra).Replace(`
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foosN#.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {plural: foosN#, singular: fooN#, kind: FooN#, listKind: FooN#List}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 100}
              replicas: {type: integer}
              maybe: {type: string, nullable: true}
              deflt: {type: string, default: abc}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
              things:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, v: {type: string}}}
              EXTRA
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`)
}

func foo(n int, spec string) string {
	return fmt.Sprintf("\n---\napiVersion: NS.example.com/v1\nkind: Foo%d\nmetadata: {name: f}\nspec: {%s}\n", n, spec)
}

func (s *story) dropCRDs(n int) {
	definitions := s.client("apiextensions.k8s.io/v1", "CustomResourceDefinition")
	s.t.Cleanup(func() {
		for i := range n {
			definitions.Delete(bg, fmt.Sprintf("foos%d.%s.example.com", i, s.ns), deleteNow)
		}
	})
}

// Prevents that the ownership of a custom resource is written once more with each change, because the schema that is
// made of the release's definition has other fields in metadata than the API server's.
func TestOwnershipInAKindOfTheRelease(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	labelled := strings.Replace(foo(0, "size: 1"), "{name: f}", "{name: f, labels: {a: b}, annotations: {c: d}, finalizers: [example.com/f], ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: o, uid: u1}]}", 1)
	s.deploy(definition(0, "") + labelled)
	defer s.patch(s.ns+".example.com/v1", "Foo0", "f", types.MergePatchType, `{"metadata":{"finalizers":null}}`, "kubectl-edit")
	s.marks = nil // so that the fields are compared
	for c := range s.plan(definition(0, "") + labelled).Changes() {
		if c.Action != decide.Unchanged || c.MayWrite() {
			t.Errorf("%s %s, and writes: %t", c.Action, c.ID, c.MayWrite())
		}
	}
}

// Kinds and objects of them in one release, from crds/ and from templates.
func TestKindsComeWithTheRelease(t *testing.T) {
	s := begin(t)
	s.dropCRDs(6)
	var chart string
	for i := range 6 {
		if i%2 == 0 {
			s.crds += definition(i, "")
		} else {
			chart += definition(i, "")
		}
		chart += foo(i, "size: 5, typo: 1, things: [{name: a, v: x}, {name: a, v: x}]")
	}
	p := s.plan(chart)
	verified := 0
	for c := range p.Changes() {
		if strings.HasPrefix(c.ID.Kind, "Foo") {
			if c.Unverified == "" {
				t.Errorf("%s is verified", c.ID)
			}
			verified++
		}
	}
	if verified != 6 || !strings.Contains(warnings(p), "spec.typo: is a field this kind doesn't have: not sent") {
		t.Errorf("%d unverified, warnings %s", verified, warnings(p))
	}
	done := s.run(p)
	for _, c := range done {
		if c.Applied == nil {
			t.Errorf("%s has no result", c.ID)
		}
	}
	s.record("deployed", chart)
	if got := fmt.Sprint(at(s.get(s.ns+".example.com/v1", "Foo1", "f"), "spec")); got != "map[deflt:abc size:5 things:[map[name:a v:x]]]" {
		t.Errorf("spec: %s", got)
	}
	s.expect(s.deploy(chart))
	from := len(s.c.Audit(t, s.agent))
	s.expect(s.deploy(chart))
	if asked := s.c.Audit(t, s.agent)[from:]; len(asked) > 30 {
		t.Errorf("%d requests: %v", len(asked), asked)
	}

	// Drift of a custom resource is reverted, and null means something where the schema says so.
	s.patch(s.ns+".example.com/v1", "Foo1", "f", "application/merge-patch+json", `{"spec":{"size":7,"any":{"x":1}}}`, "kubectl-edit")
	chart = strings.Replace(chart, foo(2, "size: 5, typo: 1, things: [{name: a, v: x}, {name: a, v: x}]"), foo(2, "size: 5, maybe: null, deflt: null, any: {x: null}"), 1)
	s.deploy(chart)
	if got := fmt.Sprint(at(s.get(s.ns+".example.com/v1", "Foo1", "f"), "spec")); got != "map[any:map[x:1] deflt:abc size:5 things:[map[name:a v:x]]]" {
		t.Errorf("spec: %s", got)
	}
	if got := fmt.Sprint(at(s.get(s.ns+".example.com/v1", "Foo2", "f"), "spec")); got != "map[any:map[x:<nil>] deflt:abc maybe:<nil> size:5]" {
		t.Errorf("spec: %s", got)
	}

	// The kind and an object of it change together.
	before := definition(1, "")
	after := definition(1, "later: {type: string}")
	chart = strings.Replace(chart, before, after, 1)
	chart = strings.Replace(chart, foo(1, "size: 5, typo: 1,"), foo(1, "size: 5, later: x,"), 1)
	chart = strings.Replace(chart, "kind: Foo1\nmetadata: {name: f}\nspec: {size: 5, typo: 1", "kind: Foo1\nmetadata: {name: f}\nspec: {size: 5, later: x", 1)
	s.deploy(chart)
	if got := at(s.get(s.ns+".example.com/v1", "Foo1", "f"), "spec.later"); got != "x" {
		t.Errorf("later: %v", got)
	}
	// A rejection by the kind's own rules comes before anything changes.
	err := s.refuse(strings.Replace(chart, "size: 5, later: x", "size: 500, later: x", 1))
	t.Log(err)
}

// TestUnusedDefinitionsHoldNothingUp fails if objects wait for kinds that none of them is of: a busy API server takes
// many seconds to serve them. A Job may use any kind.
func TestUnusedDefinitionsHoldNothingUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		chart string
		waits bool
	}{
		"no object of the kind": {config("a"), false},
		"an object of the kind": {config("a") + foo(0, "size: 5"), true},
		"a Job": {config("a") + `
---
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
`, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.dropCRDs(1)
			p := s.plan(definition(0, "") + tt.chart)
			a := s.planner(p)
			asked := s.requests("customresourcedefinitions", func() {
				if err := a.Run(bg, p.Waves[0].Changes, func(*apply.Change) {}); err != nil {
					t.Fatal(err)
				}
			})
			isWatch := func(e kubetest.AuditEvent) bool { return e.Verb == "watch" }
			if waited := slices.ContainsFunc(asked, isWatch); waited != tt.waits {
				t.Errorf("waited %v, want %v: %v", waited, tt.waits, asked)
			}
			if err := a.AwaitKinds(bg, true); err != nil {
				t.Fatal(err)
			}
			s.plan(definition(0, "") + foo(0, "size: 5"))
		})
	}
}

// TestNobodyWaitsForDefinitionsUnasked fails if --wait=false waits for definitions in templates, for which Helm doesn't.
func TestNobodyWaitsForDefinitionsUnasked(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	p := s.plan(definition(0, "") + config("a"))
	a := s.planner(p)
	asked := s.requests("customresourcedefinitions", func() {
		if err := a.Run(bg, p.Waves[0].Changes, func(*apply.Change) {}); err != nil {
			t.Fatal(err)
		}
		if err := a.AwaitKinds(bg, false); err != nil {
			t.Fatal(err)
		}
	})
	if slices.ContainsFunc(asked, func(e kubetest.AuditEvent) bool { return e.Verb == "watch" || e.Verb == "get" }) {
		t.Errorf("waited: %v", asked)
	}
}

// A custom resource that its own new CRD rejects is found before its wave.
func TestGateTwo(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	p := s.plan(definition(0, "") + config("a") + foo(0, "size: 500"))
	a := s.planner(p)
	err := a.Run(bg, p.Waves[0].Changes, func(*apply.Change) {})
	if err == nil || !strings.Contains(err.Error(), "should be less than or equal to 100") {
		t.Errorf("after the definition: %v", err)
	}
	if rejected := (*apply.RejectedError)(nil); !errors.As(err, &rejected) || rejected.When != apply.AfterChanges || strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("after the definition: %v, want it to own up to what was made before", err)
	}
}

// TestModesOfCRDs: definitions in crds/ are skipped, only created, or applied.
func TestModesOfCRDs(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.crds = definition(0, "")
	s.opts.CRDs = apply.SkipCRDs
	if err := s.refuse(config("a") + foo(0, "size: 5")); !strings.Contains(err.Error(), "has no kind Foo0") {
		t.Errorf("an object whose definition is skipped: %v", err)
	}
	s.opts.CRDs = apply.UpgradeCRDs
	s.deploy(config("a"))
	s.crds = definition(0, "later: {type: string}")
	s.opts.CRDs = apply.CreateCRDs
	s.expect(s.deploy(config("a")))
	s.opts.CRDs = apply.SkipCRDs
	s.expect(s.deploy(config("a")))
	s.opts.CRDs = apply.AddCRDs
	s.expect(s.deploy(config("a")), "update CustomResourceDefinition/foos0."+s.ns+".example.com")
	s.crds = ""
	s.expect(s.deploy(config("a")))
}

// Prevents that a run fails because it deletes an object in a version that a definition of the same run has
// dropped.
func TestDeletedInADroppedVersion(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	const schema = "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"
	crd := func(versions string) string {
		return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos0.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {plural: foos0, singular: foo0, kind: Foo0, listKind: Foo0List}
  versions:
` + versions
	}
	s.opts.CRDs = apply.UpgradeCRDs
	s.crds = crd("  - {name: v1alpha1, served: true, storage: true, " + schema + "}\n")
	s.deploy(strings.Replace(foo(0, "a: 1"), "/v1\n", "/v1alpha1\n", 1) + config("a"))
	s.crds = crd("  - {name: v1alpha1, served: false, storage: false, " + schema + "}\n  - {name: v1, served: true, storage: true, " + schema + "}\n")
	s.deploy(config("a"))
	if s.get(s.ns+".example.com/v1", "Foo0", "f") != nil {
		t.Error("it is still there")
	}
}

// The server forgets the owners of fields that were applied in a version it
// no longer serves; what the chart drops must go nevertheless.
func TestVersionDropped(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"apply", "helm 3"} {
		t.Run(by, func(t *testing.T) {
			s := begin(t)
			s.dropCRDs(1)
			const schema = "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}"
			crd := func(old string) string {
				return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos0.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {plural: foos0, singular: foo0, kind: Foo0, listKind: Foo0List}
  versions:
  - {name: v1, served: true, storage: true, ` + schema + `}
` + old
			}
			s.crds = crd("  - {name: v1alpha1, served: true, storage: false, " + schema + "}\n")
			before := strings.Replace(foo(0, "a: 1, b: 2"), "/v1\n", "/v1alpha1\n", 1)
			if by == "apply" {
				s.deploy(before)
			} else {
				s.deploy("")
				s.helm3Install(before)
				s.record("deployed", before)
			}
			s.patch(s.ns+".example.com/v1alpha1", "Foo0", "f", "application/merge-patch+json", `{"spec":{"theirs":1}}`, "somebody")
			s.crds = crd("")
			p := s.deploy(foo(0, "a: 1"))
			t.Log(s.reasons(p))
			api := s.ns + ".example.com/v1"
			if got := fmt.Sprint(at(s.get(api, "Foo0", "f"), "spec")); got != "map[a:1 theirs:1]" {
				t.Errorf("spec: %s", got)
			}
			for _, e := range s.get(api, "Foo0", "f").GetManagedFields() {
				if e.APIVersion != api {
					t.Errorf("an entry of version %s is left: %s", e.APIVersion, e.Manager)
				}
			}
			s.expect(s.deploy(foo(0, "a: 1")))
			// The object is of a version that is gone: an error before any change.
			if err := s.refuse(before); !strings.Contains(err.Error(), "the cluster has no kind Foo0 in "+s.ns+".example.com/v1alpha1") {
				t.Errorf("got %v", err)
			}
			// What the past has in it is pruned in the version that there is.
			s.past[0].Objects = s.manifests(before)
			s.expect(s.deploy(config("other")), "create ConfigMap/other", "delete Foo0/f")
		})
	}
}

// A group may list a version that it doesn't serve: between the two answers that discovery takes
// where it is not one document, as before Kubernetes 1.27, a definition drops a version. The later
// answer, that there is no such version, is an answer.
func TestListedVersionThatIsNotServed(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.crds = definition(0, "")
	chart := foo(0, "size: 1")
	s.deploy(chart)
	// An APIService without a server of its own lists a version that nobody serves.
	name := "v1alpha1." + s.ns + ".example.com"
	t.Cleanup(func() { s.client("apiregistration.k8s.io/v1", "APIService").Delete(bg, name, deleteNow) })
	s.post(s.manifests("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1alpha1.NS.example.com}, " +
		"spec: {group: NS.example.com, version: v1alpha1, groupPriorityMinimum: 100, versionPriority: 100}}")[0].Object, "somebody")
	s.discoverByGroup()
	s.opts.PartialDiscovery = false
	s.eventually("the group lists the version", func() error {
		groups, err := s.c.Client().Discovery().RESTClient().Get().AbsPath("/apis/"+s.ns+".example.com").SetHeader("Accept", "application/json").DoRaw(bg)
		if err == nil && !strings.Contains(string(groups), "v1alpha1") {
			err = errors.New(string(groups))
		}
		return err
	})
	old := strings.Replace(chart, "/v1\n", "/v1alpha1\n", 1)
	if err := s.refuse(old); !strings.Contains(err.Error(), "the cluster has no kind Foo0 in "+s.ns+".example.com/v1alpha1") {
		t.Errorf("got %v", err)
	}
	server, err := s.cluster.ServerInfo(bg)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(server.Unavailable, " "); strings.Contains(got, s.ns) {
		t.Errorf("unavailable: %s", got)
	}
	s.past[0].Objects = s.manifests(old)
	s.expect(s.deploy(config("other")), "create ConfigMap/other", "delete Foo0/f")
}

// discoverByGroup makes the next plans ask for the kinds of each version of each group alone.
func (s *story) discoverByGroup() {
	s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
		r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), "apidiscovery.k8s.io", "none.example.com"))
		return nil, nil
	}})
}

// The server that converts a kind's versions comes up while the release is
// under way, and objects of a version that isn't stored wait for it.
func TestConversionComesUp(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	var asked atomic.Int64
	cert, ca := localCertificate(t)
	server := kubetest.Converter(t, cert, func() bool { return asked.Add(1) > 3 })
	crd := definition(0, "")
	v1 := crd[strings.Index(crd, "  - name: v1"):]
	crd += strings.NewReplacer("name: v1", "name: v2", "storage: true", "storage: false").Replace(v1)
	crd += "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: '" + server.URL + "', caBundle: " + ca + "}}}\n"
	cr := strings.Replace(foo(0, "size: 1"), "example.com/v1", "example.com/v2", 1)
	s.deploy(crd + cr)
	if got := at(s.get(s.ns+".example.com/v2", "Foo0", "f"), "spec.size"); fmt.Sprint(got) != "1" {
		t.Errorf("spec.size is %v, want 1", got)
	}
	s.expect(s.deploy(crd + cr))
}

// What moves from the templates to crds/ isn't deleted with all resources of its kind, also if
// definitions may be pruned: it has changed its place only.
func TestDefinitionMovedToCRDsStays(t *testing.T) {
	t.Parallel()
	for _, policy := range []apply.CRDPolicy{apply.AddCRDs, apply.CreateCRDs, apply.SkipCRDs} {
		t.Run(string(policy), func(t *testing.T) {
			s := begin(t)
			s.dropCRDs(1)
			s.deploy(definition(0, "") + config("a"))
			s.opts.CRDs, s.opts.PruneKinds = policy, []string{"CustomResourceDefinition"}
			s.crds = definition(0, "")
			p := s.plan(config("a"))
			for _, c := range p.Prune {
				t.Errorf("%s %s: %s", c.Action, c.ID, c.Reason)
			}
			s.run(p)
			live := s.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", s.crdName())
			if live == nil || live.GetDeletionTimestamp() != nil {
				t.Fatal("the definition is gone")
			}
			if owned := live.GetLabels()["app.kubernetes.io/managed-by"] != ""; policy == apply.AddCRDs && owned {
				t.Error("it still belongs to the release")
			}
			s.crds, s.backTo, s.moved = "", 1, []kube.ID{kube.IDOf(live)} // a rollback to the revision that has it in its templates
			s.deploy(definition(0, "") + config("a"))
			if live = s.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", s.crdName()); live.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" {
				t.Error("after the rollback it doesn't belong to the release")
			}
		})
	}
}

// Prevents that a release overwrites what another one has, because its chart has an object of that name in crds/ that
// isn't a definition.
func TestObjectOfAnotherReleaseStaysItsInCRDs(t *testing.T) {
	s := begin(t)
	theirs := s.owned(s.manifests(config("shared"))[0].Object)
	annotations := theirs.GetAnnotations()
	annotations["meta.helm.sh/release-name"] = "other"
	theirs.SetAnnotations(annotations)
	before := s.post(theirs, "helm")
	s.crds = strings.Replace(config("shared"), "k: v", "k: ours", 1) + config("new")
	p := s.deploy(config("a"))
	s.expect(p, "create ConfigMap/a", "create ConfigMap/new", "keep ConfigMap/shared")
	if got, want := p.CRDs[1].Reason+p.CRDs[0].Reason, "stays as it is: it belongs to release "+s.ns+"/other"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	if now := s.get("v1", "ConfigMap", "shared"); now.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("it was written: %v", now)
	}
	s.crds = strings.Replace(s.crds, "{k: v}", "{k: w}", 1)
	s.expect(s.deploy(config("a")), "keep ConfigMap/new", "keep ConfigMap/shared") // it belongs to nobody, as in Helm
}

// Prevents a panic, and a record that stays pending, when a run is interrupted before its definitions are written.
func TestInterruptedBeforeDefinitions(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.crds = definition(0, "")
	p := s.plan(config("a"))
	ctx, cancel := context.WithCancelCause(bg)
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	if err := s.planner(p).Run(ctx, p.CRDs, func(*apply.Change) {}); !errors.Is(err, interrupted) {
		t.Errorf("error %v, want the cause of the interruption", err)
	}
	if s.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "foos0."+s.ns+".example.com") != nil {
		t.Error("the definition was written")
	}
}

// Prevents that --crds create takes a definition that is being deleted for one that is there, so that the run
// ends without its kind.
func TestCreatedDefinitionIsBeingDeleted(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.crds = definition(0, "")
	s.deploy(config("a"))
	name := "foos0." + s.ns + ".example.com"
	hold := func(finalizers string) {
		s.patch("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, types.MergePatchType, `{"metadata":{"finalizers":`+finalizers+`}}`, "x")
	}
	hold(`["example.com/hold"]`)
	if err := s.client("apiextensions.k8s.io/v1", "CustomResourceDefinition").Delete(bg, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.opts.CRDs = apply.CreateCRDs
	p := s.plan(config("a"))
	s.expect(p, "create CustomResourceDefinition/"+name)
	hold(`[]`)
	s.run(p)
	if live := s.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("the definition is gone")
	}
}
