package rules

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzRules holds that rules and annotations that somebody has written end with a
// verdict or an error for any object: they come from charts and users.
func FuzzRules(f *testing.F) {
	object := `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"status":{"phase":"Ready","conditions":[{"type":"Ready","status":"True"}],"n":[1,2,3]}}`
	for _, expression := range []string{
		`"Ready" in yes`, `self.status.phase == "Ready"`, `self.status.n.all(x, x > 0)`, `self.?status.?gone.orValue(false)`, `self.status.n[9] == 1`,
		`[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, true))))`,
		`self`, `"a".replace("a", "aaaa") == ""`, `1/0 == 1`, `reason["x"].matches("(a+)+$")`,
	} {
		f.Add(expression, expression, []byte(object))
	}
	f.Fuzz(func(t *testing.T, ready, failed string, data []byte) {
		var obj unstructured.Unstructured
		if obj.UnmarshalJSON(data) != nil || obj.IsList() {
			return
		}
		if rule, err := NewRule(ready, failed); err == nil {
			rule.evaluate(Input{Object: &obj})
		}
		file, err := json.Marshal(map[string]any{"rules": []any{map[string]any{
			"group": "example.com", "kind": "Thing", "ready": ready, "failed": failed, "message": ready,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		set, err := Parse(file)
		if err != nil {
			return
		}
		if rule := set.find(obj.GroupVersionKind().GroupKind()); rule != nil {
			rule.evaluate(Input{Object: &obj})
		}
	})
}
