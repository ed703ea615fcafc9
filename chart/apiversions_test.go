package chart

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRenewed(t *testing.T) {
	const old = `# a comment
---
# Source: c/templates/a.yaml
kind: PodDisruptionBudget
metadata:
  name: a   # stays
apiVersion: "OLD"
---
# Source: c/templates/b.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
data:
  text: |
    apiVersion: policy/v1beta1
    kind: PodDisruptionBudget
    ---
---
# Source: c/templates/list.yaml
apiVersion: v1
kind: List
items:
- {metadata: {name: "ä"}, apiVersion: OLD, kind: PodDisruptionBudget}
- apiVersion: policy/v1beta1
  kind: PodSecurityPolicy
  metadata: {name: p}
- kind: List
  apiVersion: v1
  items:
  - kind: PodDisruptionBudget
    apiVersion: 'OLD'   # in a list of a list
    metadata: {name: c}
---
# Source: c/templates/typed.yaml
apiVersion: policy/v1beta1
kind: PodDisruptionBudgetList
items: [{metadata: {name: without}}]
---
# Source: c/templates/d.json
{"kind": "PodDisruptionBudget", "metadata": {"name": "d", "labels": {"x": "ä"}}, "apiVersion":"OLD"}
---
# Source: c/templates/anchored.yaml
metadata: {name: e, labels: {x: &v policy/v1beta1}}
kind: PodDisruptionBudget
apiVersion: *v
---
apiVersion: policy/v1beta1: broken
--- # the last one
apiVersion: OLD
kind: PodDisruptionBudget
metadata: {name: f}
`
	manifest := strings.ReplaceAll(old, "OLD", "policy/v1beta1")
	out, changes := ReplaceAPIVersions(manifest, func(obj *unstructured.Unstructured) string {
		if obj.GetAPIVersion() == "policy/v1beta1" && obj.GetKind() == "PodDisruptionBudget" {
			return "policy/v1"
		}
		return ""
	})
	if want := strings.ReplaceAll(old, "OLD", "policy/v1"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	var wantChanges []string
	for _, name := range []string{"a", "ä", "c", "d", "f"} {
		wantChanges = append(wantChanges, "PodDisruptionBudget/"+name+": policy/v1beta1 is not served any more, sent as policy/v1")
	}
	if !slices.Equal(changes, wantChanges) {
		t.Errorf("changes: %q, want %q", changes, wantChanges)
	}
	if same, _ := ReplaceAPIVersions(manifest, func(*unstructured.Unstructured) string { return "" }); same != manifest {
		t.Errorf("nothing to renew, got\n%s", same)
	}
}
