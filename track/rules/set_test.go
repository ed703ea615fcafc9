package rules

import (
	"strings"
	"testing"
	"time"

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
	for _, text := range []string{"rules", "rules: {kind: A}", "- kind: A"} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), `not a file of rules: it needs a list "rules:"`) {
			t.Errorf("%q: %v", text, err)
		}
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
	one := set.Evaluate(Input{Object: object("apps/v1", "Deployment", map[string]any{"readyReplicas": int64(1)})})
	if one.Phase != Progressing || one.Message != "only 1" {
		t.Errorf("one ready = %+v", one)
	}
	if two := set.Evaluate(Input{Object: object("apps/v1", "Deployment", map[string]any{"readyReplicas": int64(2)})}); two.Phase != Ready {
		t.Errorf("two ready = %+v", two)
	}
	wild := object("a.example.com/v1", "Any", map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	if v := set.Evaluate(Input{Object: wild}); v.Phase != Ready || v.Unverified {
		t.Errorf("wild = %+v", v)
	}
}

// TestObjectsWithoutController: without a status an object is ready, unverified,
// some time after the workloads are, of which one may be its controller.
func TestObjectsWithoutController(t *testing.T) {
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		apiVersion, kind string
		after, calm      time.Duration
		busy             bool
		want             Phase
	}{
		"any kind, soon":                {"example.com/v1", "Thing", 19 * time.Second, 0, false, Progressing},
		"any kind":                      {"example.com/v1", "Thing", 20 * time.Second, 0, false, Ready},
		"its operator starts":           {"example.com/v1", "Thing", 10 * time.Minute, 0, true, Progressing},
		"its operator has just started": {"example.com/v1", "Thing", 70 * time.Second, time.Minute, false, Progressing},
		"its operator does nothing":     {"example.com/v1", "Thing", 80 * time.Second, time.Minute, false, Ready},
		"a known kind, soon":            {"cert-manager.io/v1", "Certificate", 59 * time.Second, 0, false, Progressing},
		"a known kind":                  {"cert-manager.io/v1", "Certificate", time.Minute, 0, false, Ready},
	} {
		in := Input{Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": test.apiVersion, "kind": test.kind}},
			Changed: true, AppliedAt: begin, Now: begin.Add(test.after), Workloads: Workloads{Busy: test.busy}}
		if test.calm > 0 {
			in.Workloads.ReadySince = begin.Add(test.calm)
		}
		if v := (*Set)(nil).Evaluate(in); v.Phase != test.want || v.Unverified != (test.want == Ready) {
			t.Errorf("%s: %+v, want phase %d", name, v, test.want)
		}
	}
}
