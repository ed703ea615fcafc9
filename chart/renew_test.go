package chart

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRenewed(t *testing.T) {
	const manifest = `# a comment
---
# Source: c/templates/a.yaml
kind: PodDisruptionBudget
metadata:
  name: a   # stays
apiVersion: "policy/v1beta1"
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
- {apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: c}}
--- # the last one
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: d}
`
	out, changes := Renewed(manifest, func(obj *unstructured.Unstructured) string {
		if obj.GetAPIVersion() == "policy/v1beta1" {
			return "policy/v1"
		}
		return ""
	})
	want := strings.Replace(manifest, `apiVersion: "policy/v1beta1"`, "apiVersion: policy/v1", 1)
	want = strings.Replace(want, "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: d}", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: d}", 1)
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	told := []string{
		"PodDisruptionBudget/a: policy/v1beta1 is not served any more, sent as policy/v1",
		"PodDisruptionBudget/d: policy/v1beta1 is not served any more, sent as policy/v1",
	}
	if !slices.Equal(changes, told) {
		t.Errorf("changes: %q, want %q", changes, told)
	}
	if same, _ := Renewed(manifest, func(*unstructured.Unstructured) string { return "" }); same != manifest {
		t.Errorf("nothing to renew, got\n%s", same)
	}
}
