package rules

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// generationObserved reports whether the controller has seen the object's present
// generation. known is false when it doesn't say which one it has seen.
func generationObserved(obj *unstructured.Unstructured) (seen, known bool) {
	got, ok := number(field(obj.Object, "status", "observedGeneration"))
	if !ok {
		for _, c := range Conditions(obj) {
			if g, has := number(c["observedGeneration"]); has && g > 0 && (!ok || g > got) {
				got, ok = g, true
			}
		}
	}
	return !ok || got >= obj.GetGeneration(), ok
}

// isOutOfDate reports whether a condition says that it is about an earlier generation of its object, whatever
// other conditions are about.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
func isOutOfDate(obj *unstructured.Unstructured, c map[string]any) bool {
	g, known := number(c["observedGeneration"])
	return known && g > 0 && g < obj.GetGeneration()
}

// ChangeObserved reports whether the controller says that it has seen the present generation.
func ChangeObserved(obj *unstructured.Unstructured) bool {
	seen, known := generationObserved(obj)
	return seen && known
}

// Items returns the items of a list of maps at a path of an object; none for nil.
func Items(obj *unstructured.Unstructured, path ...string) []map[string]any {
	if obj == nil {
		return nil
	}
	return kube.Items(obj.Object, path...)
}

// Conditions returns the conditions of an object's status; none for nil.
func Conditions(obj *unstructured.Unstructured) []map[string]any {
	return Items(obj, "status", "conditions")
}

// TemplateContainers returns the containers of a workload's pod template; none for nil.
func TemplateContainers(obj *unstructured.Unstructured) []map[string]any {
	return Items(obj, "spec", "template", "spec", "containers")
}

// TemplateInitContainers returns those that run before and beside them; none for nil.
func TemplateInitContainers(obj *unstructured.Unstructured) []map[string]any {
	return Items(obj, "spec", "template", "spec", "initContainers")
}

// Condition finds a condition by type, in any case of letters; nil when absent.
func Condition(obj *unstructured.Unstructured, kind string) map[string]any {
	for _, c := range Conditions(obj) {
		if strings.EqualFold(text(c, "type"), kind) {
			return c
		}
	}
	return nil
}

// conditionIs reports whether a condition has a status, in any case of letters.
func conditionIs(c map[string]any, status string) bool {
	return c != nil && strings.EqualFold(text(c, "status"), status)
}

// isFresh reports whether a condition was written after the baseline. Times are
// compared with the baseline's times only: both are the cluster's.
func isFresh(in Input, c map[string]any) bool {
	if !in.Changed || in.Baseline == nil {
		return true
	}
	old := Condition(in.Baseline, text(c, "type"))
	if old == nil {
		return true
	}
	for _, key := range []string{"status", "reason", "message", "lastUpdateTime", "lastTransitionTime"} {
		if text(old, key) != text(c, key) {
			return true
		}
	}
	was, _ := number(old["observedGeneration"])
	now, known := number(c["observedGeneration"])
	return known && now != was && now >= in.Baseline.GetGeneration()
}

// conditionText returns the reason and message of a condition.
func conditionText(c map[string]any) string {
	reason, message := text(c, "reason"), OneLine(text(c, "message"))
	if strings.Contains(message, reason) {
		return message
	}
	return JoinText(reason, message)
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

// LastWritten returns the newest time of an object's managed fields, by the cluster's clock;
// zero when they have none.
func LastWritten(obj *unstructured.Unstructured) time.Time {
	var last time.Time
	for _, f := range obj.GetManagedFields() {
		if f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// statusWritten reports whether a controller wrote the status after our own write: it
// differs, or the managed fields of both objects, which carry the server's times, say so.
func statusWritten(in Input) bool {
	if in.Baseline == nil || !reflect.DeepEqual(in.Baseline.Object["status"], in.Object.Object["status"]) {
		return true
	}
	applied := LastWritten(in.Baseline)
	return slices.ContainsFunc(in.Object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "status" && f.Time != nil && f.Time.After(applied)
	})
}
