package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// A custom resource whose definition is a template and changes with the release
// is not judged by the old one, however often it is asked about before: of one
// that it rejects, and of one that it takes and the new one rejects.
func TestNotJudgedByTheOldDefinition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, before, after, spec, want string }{
		{"only the old one rejects it", "kind_: {type: string, enum: [a]}", "kind_: {type: string, enum: [a, b]}", "size: 1, kind_: b", ""},
		{"only the new one rejects it", "kind_: {type: string, enum: [a, b]}", "kind_: {type: string, enum: [b]}", "size: 1, kind_: a", "Unsupported value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := begin(t)
			s.dropCRDs(2)
			s.deploy(definition(0, tt.before) + foo(0, "size: 1"))
			s.crds = definition(1, "")
			s.space = []string{s.ns}
			chart := definition(0, tt.after) + foo(0, tt.spec) + foo(1, "size: 1")
			p := s.plan(chart)
			c := change(t, p, "Foo0", "f")
			name := kube.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: s.crdName()}
			if d := c.Deferral; d == nil || len(d.Until) == 0 || !contains(d.Until, name) || c.Unverified != d.Reason {
				t.Fatalf("%s waits for %v (%s), want %s among it", c.ID, d, c.Unverified, name)
			}
			a := s.planner(p)
			nothing := func(*apply.Change) {}
			if err := a.Run(bg, p.CRDs, nothing); err != nil {
				t.Fatalf("asked before the definition was there: %v", err)
			}
			if c := change(t, p, "Foo0", "f"); c.Deferral == nil {
				t.Errorf("decided before the definition was there")
			}
			if c := change(t, p, "Foo1", "f"); c.Deferral != nil {
				t.Errorf("%s still waits for %v", c.ID, c.Deferral.Until)
			}
			var err error
			for i := 0; i < len(p.Waves) && err == nil; i++ {
				err = a.Run(bg, p.Waves[i].Changes, nothing)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// An object that waits for a new definition of its kind is still known to be there.
func TestDeferredUpdateIsNoCreation(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.deploy(definition(0, "kind_: {type: string, enum: [a]}") + foo(0, "size: 1"))
	p := s.plan(definition(0, "kind_: {type: string, enum: [a, b]}") + foo(0, "size: 1, kind_: b"))
	if c := change(t, p, "Foo0", "f"); c.Action != decide.Update || c.Live == nil || c.Deferral == nil {
		t.Errorf("%s is planned as %s, its live object is known: %v, it waits: %v", c.ID, c.Action, c.Live != nil, c.Deferral != nil)
	}
	s.run(p)
}

// TestFieldThatTheNextDefinitionLacks fails if an object can't be planned because it has a field that its definition loses.
func TestFieldThatTheNextDefinitionLacks(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.deploy(definition(0, "gone"+text) + foo(0, "size: 1, gone: x"))
	s.run(s.plan(definition(0, "comes"+text) + foo(0, "size: 2, comes: x")))
	if got := at(s.get(s.ns+".example.com/v1", "Foo0", "f"), "spec"); fmt.Sprint(got) != "map[comes:x deflt:abc size:2]" {
		t.Errorf("spec: %v", got)
	}
}

func contains(list []kube.ID, id kube.ID) bool {
	for _, one := range list {
		if one == id {
			return true
		}
	}
	return false
}

// Where nobody may create, no namespace is made in vain: the permissions in it
// are asked for before.
func TestPermissionsInsideANamespaceToCome(t *testing.T) {
	s := begin(t)
	space := s.ns + "-new"
	t.Cleanup(func() {
		s.c.Dynamic().Resource(namespaces).Delete(bg, space, metav1.DeleteOptions{})
	})
	within := strings.Replace(config("a"), "metadata: {", "metadata: {namespace: "+space+", ", 1)
	if within == config("a") {
		t.Fatalf("no namespace in %s", within)
	}
	u := s.c.User(t, s.ns)
	u.Allow(t, "", kubetest.Rule("", "*", "namespaces"))
	s.as(u)
	for _, tt := range []struct{ name, chart, hooks string }{
		{"the caller's namespace", within, ""},
		{"a namespace of the chart", within + "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + space + "}\n", ""},
		{"a hook", "", strings.Replace(within, "metadata: {", "metadata: {annotations: {helm.sh/hook: pre-install}, ", 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := *s
			s.t, s.hooks = t, tt.hooks
			if !strings.Contains(tt.chart, "kind: Namespace") {
				s.space = []string{space}
			}
			p := s.plan(tt.chart)
			err := p.CheckPermissions()
			var rejected *apply.RejectedError
			if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "no permission to create configmaps in namespace "+space) {
				t.Errorf("Permitted: %v", err)
			}
		})
	}
	u.Allow(t, "", kubetest.Rule("", "*", "configmaps"))
	s.space = []string{space}
	p := s.plan(within)
	if err := p.CheckPermissions(); err != nil {
		t.Errorf("Permitted: %v", err)
	}
	if c := change(t, p, "ConfigMap", "a"); c.Deferral == nil || c.Unverified != "namespace "+space+" comes with this release; validated in namespace default instead" {
		t.Errorf("%+v", c)
	}
}

// Objects in a namespace that is being deleted wait for the new one.
func TestNamespaceOnItsWayOut(t *testing.T) {
	s := begin(t)
	space := s.ns + "-old"
	chart := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + space + "}\n---\n" + strings.Replace(config("a"), "metadata: {", "metadata: {namespace: "+space+", ", 1)
	t.Cleanup(func() { s.c.Dynamic().Resource(namespaces).Delete(bg, space, metav1.DeleteOptions{}) })
	s.deploy(chart)
	s.patch("v1", "Namespace", space, "application/merge-patch+json", `{"metadata": {"finalizers": ["example.com/held"]}}`, "somebody")
	if err := s.client("v1", "Namespace").Delete(bg, space, deleteNow); err != nil {
		t.Fatal(err)
	}
	p := s.plan(chart)
	if c := change(t, p, "ConfigMap", "a"); c.Deferral == nil || c.Deferral.Until[0].Name != space {
		t.Errorf("%s: %v", c.ID, c.Deferral)
	}
	s.patch("v1", "Namespace", space, "application/merge-patch+json", `{"metadata": {"finalizers": null}}`, "somebody")
	s.run(p)
}
