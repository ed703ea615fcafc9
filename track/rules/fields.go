package rules

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
)

// hasStatus reports whether the status of an object has anything in it.
func hasStatus(obj *unstructured.Unstructured) bool {
	status, _ := obj.Object["status"].(map[string]any)
	return len(status) > 0
}

// field returns the value at a path of nested maps; nil when there is none.
func field(m map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(m, path...) // fails where a field isn't a map
	return value
}

func text(m map[string]any, path ...string) string {
	s, _ := field(m, path...).(string)
	return s
}

func list(m map[string]any, path ...string) []any {
	l, _ := field(m, path...).([]any)
	return l
}

// number reads an integer in any form a controller may have written it: Argo
// Rollouts writes observedGeneration as a string.
// https://github.com/helm/helm/issues/32615
func number(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	case string:
		i, err := strconv.ParseInt(n, 10, 64)
		return i, err == nil
	}
	return 0, false
}

// count reads a number of a status: absent is 0, as controllers omit zeros.
func count(m map[string]any, path ...string) int {
	n, _ := number(field(m, path...))
	return int(n)
}

// replicas reads a count that the API server defaults to 1.
func replicas(m map[string]any, path ...string) int {
	if n, ok := number(field(m, path...)); ok {
		return int(n)
	}
	return 1
}

// Items returns the items of a list of maps at a path of an object; none for nil.
func Items(obj *unstructured.Unstructured, path ...string) []map[string]any {
	if obj == nil {
		return nil
	}
	return kube.Items(obj.Object, path...)
}

// TemplateContainers returns the containers of a workload's pod template; none for nil.
func TemplateContainers(obj *unstructured.Unstructured) []map[string]any {
	return Items(obj, "spec", "template", "spec", "containers")
}

// TemplateInitContainers returns those that run before and beside them; none for nil.
func TemplateInitContainers(obj *unstructured.Unstructured) []map[string]any {
	return Items(obj, "spec", "template", "spec", "initContainers")
}

// JoinText puts a colon between two texts; nothing if one is empty.
func JoinText(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}

// OneLine puts a text on one line and limits its length.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 600 {
		s = strings.ToValidUTF8(s[:600], "") + "…"
	}
	return s
}
