package rules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWellKnownRulesCompile(t *testing.T) {
	set, err := Parse(wellKnownData)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.rules) < 20 {
		t.Errorf("%d rules, want more", len(set.rules))
	}
}

func TestParseTellsAllThatIsWrong(t *testing.T) {
	_, err := Parse([]byte("rules:\n- {group: a, kind: B, ready: 'self.'}\n- {group: a, kind: C, ready: '1 + 1'}\n- {group: a}\n"))
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, want := range []string{"rule 1, B.a", "rule 2, C.a", "gives int, not bool", "rule 3"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q in it", err, want)
		}
	}
	if _, err := Parse([]byte("rules: [{kind: A, redy: x}]")); err == nil {
		t.Error("a misspelt field was taken")
	}
}

func TestUsersRuleGoesFirst(t *testing.T) {
	set, err := Parse([]byte(`
rules:
- {group: apps, kind: Deployment, ready: 'self.status.readyReplicas > 1', message: '"only " + string(self.status.readyReplicas)'}
- {group: '*.example.com', kind: '*', ready: '"Ready" in yes'}
`))
	if err != nil {
		t.Fatal(err)
	}
	object := func(apiVersion, kind string, status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "status": status}}
	}
	one := set.Judge(Input{Object: object("apps/v1", "Deployment", map[string]any{"readyReplicas": int64(1)})})
	if one.Phase != Progressing || one.Message != "only 1" {
		t.Errorf("one ready = %+v", one)
	}
	if two := set.Judge(Input{Object: object("apps/v1", "Deployment", map[string]any{"readyReplicas": int64(2)})}); two.Phase != Ready {
		t.Errorf("two ready = %+v", two)
	}
	wild := object("a.example.com/v1", "Any", map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	if v := set.Judge(Input{Object: wild}); v.Phase != Ready || v.Unverified {
		t.Errorf("wild = %+v", v)
	}
}
