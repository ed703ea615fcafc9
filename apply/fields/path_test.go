package fields

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"deployer/internal/hide"
)

func TestString(t *testing.T) {
	p := fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "app"), "env", fieldpath.KeyByFields("name", "A"), "value")
	if got, want := String(p), `spec.containers[name="app"].env[name="A"].value`; got != want {
		t.Errorf("String = %s, want %s", got, want)
	}
}

// TestShownString: a path names items of lists by their values, which may be confidential.
func TestShownString(t *testing.T) {
	secret := hide.ConfidentialFields(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"deployer.io/sensitive-paths": "spec.tokens[*],spec.users[*].pin,spec.people"}},
	}})
	item := fieldpath.KeyByFields
	token, number := value.NewValueInterface("ab"), value.NewValueInterface(12)
	for want, p := range map[string]fieldpath.Path{
		`spec.tokens[=(hidden)]`:                    fieldpath.MakePathOrDie("spec", "tokens", token),
		`spec.tokens[=(hidden)].x`:                  fieldpath.MakePathOrDie("spec", "tokens", number, "x"),
		`spec.users[name="me",pin=(hidden)].n`:      fieldpath.MakePathOrDie("spec", "users", item("name", "me", "pin", `1]",x`), "n"),
		`spec.people[name=(hidden)].n`:              fieldpath.MakePathOrDie("spec", "people", item("name", "me"), "n"),
		`spec.other[="ab"][host="a",port=80]."x.y"`: fieldpath.MakePathOrDie("spec", "other", token, item("host", "a", "port", 80), "x.y"),
	} {
		before := String(p)
		if got := ShownString(p, secret); got != want || String(p) != before {
			t.Errorf("ShownString(%s) = %s, want %s", before, got, want)
		}
	}
}
