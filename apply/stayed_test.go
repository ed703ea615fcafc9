package apply_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What somebody makes anew while a run deletes it, as the release's own, is
// deleted again; what is another's stays; what can't be got rid of is told.
func TestWhatIsGoneStaysGone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		again        int // how often it comes back
		theirs       bool
		there, fails bool
	}{
		{"once", 1, false, false, false},
		{"another's", 1, true, true, false},
		{"each time", 1000, false, true, true},
	} {
		for _, chart := range []string{config("a"), config("a") + config("b") + config("c") + config("d")} {
			t.Run(fmt.Sprintf("%s of %d", tt.name, strings.Count(chart, "ConfigMap")), func(t *testing.T) {
				s := begin(t)
				s.deploy(chart)
				obj := s.manifests(config("a"))[0].Object
				if !tt.theirs {
					obj = s.owned(obj)
				}
				configs, left := s.client("v1", "ConfigMap"), tt.again
				s.through(&faulty{after: func(r *http.Request, _ *http.Response) error {
					if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/configmaps/a") && left > 0 {
						left--
						if _, err := configs.Create(bg, obj, metav1.CreateOptions{}); err != nil {
							t.Error(err)
						}
					}
					return nil
				}})
				_, err := s.tryRun(s.plan(""))
				if (err != nil) != tt.fails || tt.fails && !strings.Contains(err.Error(), "another client recreates it each time") {
					t.Errorf("Run: %v", err)
				}
				if there := s.get("v1", "ConfigMap", "a") != nil; there != tt.there {
					t.Errorf("it is there: %v, want %v", there, tt.there)
				}
			})
		}
	}
}

// The controller of aggregated ClusterRoles makes them anew when the roles they
// consist of go: they go first.
func TestAggregatedRolesStayGone(t *testing.T) {
	s := begin(t)
	role := func(name, labels, rest string) string {
		return "\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-" + name + ", labels: {" + labels + "}}\n" + rest + "\n"
	}
	rules := `rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]`
	made := func(from string) string {
		return "aggregationRule: {clusterRoleSelectors: [{matchLabels: {for: NS-" + from + "}}]}"
	}
	// Most of them would come last by name, while the controller is busy with their parts.
	chart := role("a0", "for: NS-whole", made("part")) + role("z0", "", made("whole"))
	for i := range 10 {
		chart += role(fmt.Sprint("m", i), "for: NS-part", rules) + role(fmt.Sprint("y", i), "", made("part"))
	}
	roles := s.client("rbac.authorization.k8s.io/v1", "ClusterRole")
	t.Cleanup(func() {
		list, err := roles.List(bg, metav1.ListOptions{})
		for i := 0; err == nil && i < len(list.Items); i++ {
			if name := list.Items[i].GetName(); strings.HasPrefix(name, s.ns+"-") {
				_ = roles.Delete(bg, name, deleteNow)
			}
		}
	})
	filled := func(name string, want int) {
		t.Helper()
		s.eventually(name+" is filled", func() error {
			list, _, _ := unstructured.NestedSlice(s.get("rbac.authorization.k8s.io/v1", "ClusterRole", s.ns+"-"+name).Object, "rules")
			if len(list) != want {
				return fmt.Errorf("it has %d rules, want %d", len(list), want)
			}
			return nil
		})
	}
	s.deploy(chart)
	filled("z0", 1)
	filled("y9", 1)
	p := s.deploy("")
	var wholes int
	for _, c := range p.Prune {
		switch part := strings.Contains(c.ID.Name, s.ns+"-m"); {
		case part && wholes < 12:
			t.Fatalf("%s goes before %d that consist of it", c.ID, 12-wholes)
		case !part:
			wholes++
		}
	}
	// When the controller has come to what happened later, it is done with this.
	for i := range 10 {
		name := fmt.Sprint("later", i)
		for _, m := range s.manifests(role(name, "", made(name)) + role(name+"-part", "for: NS-"+name, rules)) {
			s.post(m.Object, "somebody")
		}
		filled(name, 1)
	}
	for _, m := range s.manifests(chart) {
		name := strings.TrimPrefix(m.Object.GetName(), s.ns+"-")
		if live := s.get("rbac.authorization.k8s.io/v1", "ClusterRole", s.ns+"-"+name); live != nil {
			t.Errorf("%s is back: %v", name, live.Object)
		}
	}
}

// An aggregated ClusterRole that its controller has made anew in spite of all
// carries nobody's marks, and goes too.
func TestAggregatedRoleMadeAnew(t *testing.T) {
	s := begin(t)
	name := s.ns + "-whole"
	chart := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-whole}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {for: NS}}]}\n"
	s.deploy(chart)
	roles, back := s.client("rbac.authorization.k8s.io/v1", "ClusterRole"), false
	t.Cleanup(func() { _ = roles.Delete(bg, name, deleteNow) })
	s.through(&faulty{after: func(r *http.Request, _ *http.Response) error {
		if r.Method != http.MethodDelete || back {
			return nil
		}
		back = true
		body, err := json.Marshal(map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name}, "rules": []any{}})
		if err == nil {
			force := true
			_, err = roles.Patch(bg, name, "application/apply-patch+yaml", body, metav1.PatchOptions{FieldManager: "clusterrole-aggregation-controller", Force: &force})
		}
		if err != nil {
			t.Error(err)
		}
		return nil
	}})
	s.deploy("")
	if !back {
		t.Error("nothing was deleted")
	}
	if s.get("rbac.authorization.k8s.io/v1", "ClusterRole", name) != nil {
		t.Errorf("it is there")
	}
}

// While the server serves a kind and has not published its schema yet, that of
// the definition counts.
func TestSchemaOfAYoungKind(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.post(s.manifests(definition(0, ""))[0].Object, "somebody")
	s.eventually("the kind is served", func() error { _, err := s.serves("Foo0"); return err })
	s.through(&faulty{replace: func(r *http.Request, body []byte) []byte {
		if r.URL.Path != "/openapi/v3" {
			return body
		}
		var index struct {
			Paths map[string]any `json:"paths"`
		}
		if err := json.Unmarshal(body, &index); err != nil {
			t.Error(err)
		}
		delete(index.Paths, "apis/"+s.ns+".example.com/v1")
		out, err := json.Marshal(index)
		if err != nil {
			t.Error(err)
		}
		return out
	}})
	p := s.deploy(foo(0, "size: 5, typo: 1, things: [{name: a, v: x}, {name: a, v: x}]"))
	if got := warnings(p); !strings.Contains(got, "spec.typo: is a field this kind doesn't have") {
		t.Errorf("warnings: %s", got)
	}
	if got := fmt.Sprint(at(s.get(s.ns+".example.com/v1", "Foo0", "f"), "spec")); got != "map[deflt:abc size:5 things:[map[name:a v:x]]]" {
		t.Errorf("spec: %s", got)
	}
	// Somebody's item of a list stays when ours change.
	s.patch(s.ns+".example.com/v1", "Foo0", "f", "application/merge-patch+json", `{"spec": {"things": [{"name": "a", "v": "x"}, {"name": "b", "v": "y"}]}}`, "somebody")
	p = s.plan(foo(0, "size: 6, things: [{name: a, v: x}]"))
	if got := removed(change(t, p, "Foo0", "f")); len(got) > 0 {
		t.Errorf("removed: %v", got)
	}
}
