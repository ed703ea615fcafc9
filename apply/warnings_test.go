package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply"
	"deployer/internal/kube"
)

// oldEndpoints is a manifest of which the API server warns.
func oldEndpoints(name, more string) string {
	return "---\napiVersion: v1\nkind: Endpoints\nmetadata: {name: " + name + more + "}\nsubsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]\n"
}

const endpointsDeprecated = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"

// TestServerWarningsNameTheirObject holds that what the API server warns of in its
// answer to a dry run, of objects and hooks, is in the plan, once and with the object.
func TestServerWarningsNameTheirObject(t *testing.T) {
	s := begin(t)
	s.since("1.33", "a warning of Endpoints")
	manifest, want := "", []apply.Warning{}
	for i := range 8 {
		name := fmt.Sprintf("old-%d", i)
		manifest += oldEndpoints(name, "")
		want = append(want, apply.Warning{ID: kube.ID{Kind: "Endpoints", Namespace: s.owner.Namespace, Name: name}, Text: endpointsDeprecated})
	}
	s.hooks = oldEndpoints("old-hook", ", annotations: {helm.sh/hook: pre-install}")
	want = append(want, apply.Warning{ID: kube.ID{Kind: "Endpoints", Namespace: s.owner.Namespace, Name: "old-hook"}, Text: endpointsDeprecated})
	var got []apply.Warning
	for _, w := range s.plan(manifest).Warnings {
		if w.Text == endpointsDeprecated {
			got = append(got, apply.Warning{ID: w.ID, Text: w.Text})
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("warnings %+v, want %+v in this order", got, want)
	}
}

// TestServerWarningsOfDeferredObjectsAreReported holds that what the API server warns of
// when it is first asked about an object, after the plan was made, goes to Options.Warn,
// once and with the object.
func TestServerWarningsOfDeferredObjectsAreReported(t *testing.T) {
	s := begin(t)
	s.since("1.33", "a warning of Endpoints")
	namespace := s.ns + "-new"
	s.owner.Namespace, s.space = namespace, []string{namespace}
	t.Cleanup(func() { s.c.Dynamic().Resource(namespaces).Delete(bg, namespace, metav1.DeleteOptions{}) })
	var mu sync.Mutex
	var got []string
	s.opts.Warn = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, text)
	}
	p := s.plan(oldEndpoints("old", ""))
	if text := warnings(p); strings.Contains(text, endpointsDeprecated) {
		t.Fatalf("the server was asked before the namespace exists: %s", text)
	}
	s.post(s.manifests("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n")[0].Object, "somebody")
	if err := s.planner(p).RedecideDeferred(bg); err != nil {
		t.Fatal(err)
	}
	s.run(p)
	if want := []string{"Endpoints/" + namespace + "/old: " + endpointsDeprecated + " (web/templates/0.yaml)"}; !slices.Equal(got, want) {
		t.Errorf("warnings during the run: %q, want %q", got, want)
	}
}

// TestDroppedFieldsAreNamed: a field that the API server accepts and drops, here because the version in which objects are
// stored doesn't have it, is named by every plan until the chart or the cluster changes.
func TestDroppedFieldsAreNamed(t *testing.T) {
	s := begin(t)
	group := s.owner.Namespace + ".example.com" // cluster-wide
	crd := fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Gear, plural: gears, singular: gear, listKind: GearList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, colour: {type: string}, empty: {type: string}}}}}}
`, group)
	t.Cleanup(func() {
		if err := s.client(crdAPI, "CustomResourceDefinition").Delete(context.Background(), "gears."+group, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	s.crds = crd
	s.deploy("")
	gear := func(size int) string {
		return fmt.Sprintf("apiVersion: %s/v2\nkind: Gear\nmetadata: {name: g}\nspec: {size: %d, colour: red, empty: \"\"}\n", group, size)
	}
	for _, size := range []int{1, 1, 2} { // created, unchanged, updated
		if got := fmt.Sprint(s.deploy(gear(size)).Warnings); strings.Count(got, "accepts spec.colour and drops it") != 1 {
			t.Errorf("size %d: the plan warns of %s", size, got)
		}
	}
}
