package apply_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/apply/decide"
)

const crdAPI = "apiextensions.k8s.io/v1"

func (s *story) crdName() string { return "foos0." + s.ns + ".example.com" }

// hasField reports whether spec has a field in the definition that is live.
func (s *story) hasField(name string) bool {
	s.t.Helper()
	crd := s.get(crdAPI, "CustomResourceDefinition", s.crdName())
	return at(crd, "spec.versions.v1.schema.openAPIV3Schema.properties.spec.properties."+name) != nil
}

func (s *story) wantFields(want map[string]bool) {
	s.t.Helper()
	for name, there := range want {
		if got := s.hasField(name); got != there {
			s.t.Errorf("the definition has spec.%s: %v, want %v", name, got, there)
		}
	}
}

const text = ": {type: string}\n              "

// A definition that somebody else has made newer isn't made older: nobody is to
// lose fields of objects because a chart was deployed.
func TestNewerDefinitionsOfOthersStay(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.post(s.manifests(definition(0, "newer"+text))[0].Object, "somebody")
	s.eventually("the kind is served", func() error {
		if ok, err := s.serves("Foo0"); !ok {
			return fmt.Errorf("not yet: %v", err)
		}
		return nil
	})
	s.post(s.manifests(foo(0, "size: 1, newer: x"))[0].Object, "somebody")
	s.crds = definition(0, "")
	p := s.deploy(config("a"))
	s.expect(p, "create ConfigMap/a", "keep CustomResourceDefinition/"+s.crdName())
	if got := warnings(p); !strings.Contains(got, "v1 spec.newer") || !strings.Contains(got, "to replace it anyway: --crds upgrade") {
		t.Errorf("warnings: %s", got)
	}
	s.wantFields(map[string]bool{"newer": true})
	// Not with the next release either, and what it adds can't be had with it.
	s.crds = definition(0, "added"+text)
	s.expect(s.deploy(config("a")), "keep CustomResourceDefinition/"+s.crdName())
	// What is there decides about objects of the kind.
	if got := warnings(s.plan(config("a") + strings.Replace(foo(0, "size: 1, newer: z, added: x"), "name: f", "name: g", 1))); !strings.Contains(got, "spec.added: is a field this kind doesn't have") || strings.Contains(got, "spec.newer: is") {
		t.Errorf("warnings: %s", got)
	}
	// A version that only the chart's has is not there.
	only := strings.NewReplacer("name: v1", "name: v2")
	s.crds = only.Replace(definition(0, ""))
	if err := s.refuse(strings.Replace(foo(0, "size: 1"), "/v1\n", "/v2\n", 1)); !strings.Contains(err.Error(), "is not used: ") || !strings.Contains(err.Error(), "v1 (no longer served)") {
		t.Errorf("got %v", err)
	}
	s.crds = only.Replace(definition(0, ""))
	if got := warnings(s.plan("")); !strings.Contains(got, "objects may be stored as v1, so even --crds upgrade can't") {
		t.Errorf("warnings: %s", got)
	}
	s.opts.CRDs = apply.UpgradeCRDs
	if err := s.refuse(config("a")); !strings.Contains(err.Error(), "spec.versions") {
		t.Errorf("got %v", err)
	}
	s.opts.CRDs = apply.AddCRDs
	// A chart that has it all is no loss.
	s.crds = definition(0, "newer"+text+"added"+text)
	s.expect(s.deploy(config("a")), "update CustomResourceDefinition/"+s.crdName())
	s.wantFields(map[string]bool{"newer": true, "added": true})
	// What this release brought it may take away, and what it didn't not.
	s.crds = definition(0, "newer"+text)
	s.expect(s.deploy(config("a")), "update CustomResourceDefinition/"+s.crdName())
	s.wantFields(map[string]bool{"newer": true, "added": false})
	s.crds = definition(0, "")
	s.expect(s.deploy(config("a")), "keep CustomResourceDefinition/"+s.crdName())
	// When asked to, it does.
	s.opts.CRDs = apply.UpgradeCRDs
	p = s.deploy(config("a"))
	s.expect(p, "update CustomResourceDefinition/"+s.crdName())
	if got := warnings(p); !strings.Contains(got, "removes what this release didn't add: v1 spec.newer") {
		t.Errorf("warnings: %s", got)
	}
	s.wantFields(map[string]bool{"newer": false})
}

func (s *story) serves(kind string) (bool, error) {
	s.cluster.ForgetKinds()
	_, err := s.cluster.Mapping(bg, (&unstructured.Unstructured{Object: map[string]any{"apiVersion": s.ns + ".example.com/v1", "kind": kind}}).GroupVersionKind(), false)
	return err == nil, err
}

// A release lowers what it brought itself, but not any more when another release
// has brought the same since.
func TestDefinitionsOfTwoReleases(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.crds = definition(0, "one"+text+"two"+text)
	s.deploy(config("a"))
	s.crds = definition(0, "one"+text)
	s.expect(s.deploy(config("a")), "update CustomResourceDefinition/"+s.crdName())
	s.wantFields(map[string]bool{"one": true, "two": false})

	other := *s
	other.owner.Release, other.past, other.marks, other.left, other.brought = "other", nil, nil, nil, nil
	other.crds = definition(0, "one"+text+"two"+text)
	other.expect(other.deploy(config("b")), "create ConfigMap/b", "update CustomResourceDefinition/"+s.crdName())
	s.wantFields(map[string]bool{"one": true, "two": true})

	s.expect(s.deploy(config("a")), "keep CustomResourceDefinition/"+s.crdName())
	s.wantFields(map[string]bool{"one": true, "two": true})
	// What both have said equally, neither has brought alone.
	other.crds = definition(0, "")
	other.expect(other.deploy(config("b")), "keep CustomResourceDefinition/"+s.crdName())
	other.crds = definition(0, "one"+text)
	other.expect(other.deploy(config("b")), "update CustomResourceDefinition/"+s.crdName())
}

// A definition that becomes another one between plan and run is looked at again.
func TestDefinitionMadeNewerMeanwhile(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.crds = definition(0, "")
	s.deploy(config("a"))
	s.crds = definition(0, "added"+text)
	p := s.plan(config("a"))
	s.expect(p, "update CustomResourceDefinition/"+s.crdName())
	s.patch(crdAPI, "CustomResourceDefinition", s.crdName(), "application/json-patch+json",
		`[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/newer", "value": {"type": "string"}}]`, "somebody")
	done := s.run(p)
	s.wantFields(map[string]bool{"newer": true, "added": false})
	if c := done[0]; c.Action != decide.Keep || !strings.Contains(c.Warning, "v1 spec.newer") {
		t.Errorf("%s: %s, warning %q", c.ID, c.Action, c.Warning)
	}
}

// Prevents that a definition of others is changed as if it were an object of the release, because the list of definitions
// didn't have it: it was made since, or the list of a cluster with many definitions ended before it.
func TestDefinitionOfOthersThatWasNotListed(t *testing.T) {
	t.Parallel()
	for _, crds := range []apply.CRDPolicy{apply.AddCRDs, apply.CreateCRDs} {
		t.Run(string(crds), func(t *testing.T) {
			s := begin(t)
			s.dropCRDs(1)
			newer := s.manifests(definition(0, "newer"+text))[0].Object
			var once sync.Once
			s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, s.crdName()) {
					once.Do(func() {
						if _, err := s.client(crdAPI, newer.GetKind()).Create(r.Context(), newer, metav1.CreateOptions{FieldManager: "somebody"}); err != nil {
							t.Error(err)
						}
					})
				}
				return nil, nil
			}})
			s.opts.CRDs, s.crds = crds, definition(0, "")
			want := []string{"create ConfigMap/a"}
			if crds == apply.AddCRDs {
				want = append(want, "keep CustomResourceDefinition/"+s.crdName())
			}
			s.expect(s.deploy(config("a")), want...)
			s.wantFields(map[string]bool{"newer": true})
		})
	}
}

// Prevents that a definition loses what the release has written on it whose templates have it, because another release
// has it in crds/: both apply under one field manager.
func TestDefinitionOfAnotherReleaseStaysIts(t *testing.T) {
	t.Parallel()
	for _, crds := range []apply.CRDPolicy{apply.AddCRDs, apply.UpgradeCRDs} {
		t.Run(string(crds), func(t *testing.T) {
			s := begin(t)
			s.dropCRDs(1)
			templates := strings.Replace(definition(0, ""), "metadata: {", "metadata: {annotations: {helm.sh/resource-policy: keep}, ", 1)
			s.deploy(templates + config("a"))
			other := *s
			other.owner.Release, other.past, other.marks = "other", nil, nil
			other.opts.CRDs, other.crds = crds, definition(0, "added"+text)
			other.expect(other.deploy(config("b")), "create ConfigMap/b", "update CustomResourceDefinition/"+s.crdName())
			other.expect(other.deploy(config("b")))
			s.wantFields(map[string]bool{"added": true})
			live := s.get(crdAPI, "CustomResourceDefinition", s.crdName())
			if a := live.GetAnnotations(); live.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" || a["meta.helm.sh/release-name"] != "web" || a["helm.sh/resource-policy"] != "keep" {
				t.Errorf("labels %v, annotations %v", live.GetLabels(), a)
			}
			s.deploy(templates + config("a")) // it is still its release's
		})
	}
}
