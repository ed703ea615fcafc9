package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/fields"
)

// unions are structures whose type decides which sibling may be there. Chosen
// by a default, the sibling is owned by nobody, so no apply removes it, and the
// server refuses the two together (kubernetes#24198).
var unions = map[string]struct{ field, member, kind string }{
	"Deployment":  {"strategy", "rollingUpdate", "RollingUpdate"},
	"DaemonSet":   {"updateStrategy", "rollingUpdate", "RollingUpdate"},
	"StatefulSet": {"updateStrategy", "rollingUpdate", "RollingUpdate"},
}

// inAnnotations are fields of an autoscaler that autoscaling/v1 shows as annotations,
// so that no apply in that version removes what one in another version has set.
// k8s.io/kubernetes/pkg/apis/autoscaling/annotations.go
var inAnnotations = map[string]string{
	"autoscaling.alpha.kubernetes.io/metrics":  "metrics",
	"autoscaling.alpha.kubernetes.io/behavior": "behavior",
}

// pointer escapes what goes into a JSON pointer.
// https://www.rfc-editor.org/rfc/rfc6901
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// untranslated removes annotations that stand for fields which are ours in another
// version than the chart's, from the predicted object too.
func (c *comparison) untranslated() []operation {
	if c.want.GetAPIVersion() != "autoscaling/v1" {
		return nil
	}
	var ops []operation
	for key, field := range inAnnotations {
		path := fieldpath.MakePathOrDie("spec", field)
		ours := slices.ContainsFunc(c.entries, func(e fields.Entry) bool {
			return e.Class() == fields.Legacy && (e.Set.Has(path) || !below(e.Set, path).Empty())
		})
		_, stated := c.want.GetAnnotations()[key]
		if _, there := c.predicted.GetAnnotations()[key]; !ours || stated || !there {
			continue
		}
		ops = append(ops, operation{Op: "remove", Path: "/metadata/annotations/" + pointer.Replace(key)})
		unstructured.RemoveNestedField(c.predicted.Object, "metadata", "annotations", key)
	}
	return ops
}

// repairs finds what has to be done to the live object because no apply can,
// and does the same to the predicted one.
func repairs(live, want, predicted *unstructured.Unstructured) []operation {
	var ops []operation
	if u, ok := unions[live.GetKind()]; ok && strings.HasPrefix(live.GetAPIVersion(), "apps/") {
		kind, stated, _ := unstructured.NestedString(want.Object, "spec", u.field, "type")
		_, has, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", u.field, u.member)
		if stated && kind != u.kind && has {
			ops = append(ops, operation{"replace", "/spec/" + u.field, map[string]any{"type": kind}})
			unstructured.RemoveNestedField(predicted.Object, "spec", u.field, u.member)
		}
	}
	if !doubled(live.Object) {
		return ops
	}
	return append(ops, doubles("", live.Object, want.Object, predicted.Object)...)
}

// doubled says that there is work for doubles, which hardly ever is.
func doubled(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			if env, ok := child.([]any); ok && key == "env" {
				if len(lastOfEach(env)) != len(env) {
					return true
				}
			} else if doubled(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, doubled)
	}
	return false
}

// doubles finds variables that are set twice in one container, which Helm 3's
// POST allowed and an apply leaves as they are; the last one stays, as the
// kubelet reads it.
func doubles(path string, live, want, predicted any) []operation {
	var ops []operation
	switch l := live.(type) {
	case map[string]any:
		w, ok1 := want.(map[string]any)
		p, ok2 := predicted.(map[string]any)
		if !ok1 || !ok2 {
			return nil
		}
		for key, v := range l {
			at := path + "/" + pointer.Replace(key)
			env, isList := v.([]any)
			if key == "env" && isList {
				if op, ok := dedupe(at, env, p); ok {
					ops = append(ops, op)
				}
				continue
			}
			ops = append(ops, doubles(at, v, w[key], p[key])...)
		}
	case []any:
		w, ok1 := want.([]any)
		p, ok2 := predicted.([]any)
		if !ok1 || !ok2 {
			return nil
		}
		for i, v := range l {
			ops = append(ops, doubles(fmt.Sprintf("%s/%d", path, i), v, named(v, w), named(v, p))...)
		}
	}
	return ops
}

// named finds the item of a list that has the name of v.
func named(v any, list []any) any {
	name := envName(v)
	for _, item := range list {
		if n := envName(item); n != "" && n == name {
			return item
		}
	}
	return nil
}

func envName(item any) string {
	m, _ := item.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// dedupe makes the operation that leaves the last of each name, and removes
// the same items from the predicted list.
func dedupe(path string, env []any, predicted map[string]any) (operation, bool) {
	kept := lastOfEach(env)
	if len(kept) == len(env) {
		return operation{}, false
	}
	if list, ok := predicted["env"].([]any); ok {
		predicted["env"] = lastOfEach(list)
	}
	return operation{"replace", path, kept}, true
}

func lastOfEach(env []any) []any {
	last := map[string]int{}
	for i, item := range env {
		last[envName(item)] = i
	}
	var out []any
	for i, item := range env {
		if last[envName(item)] == i {
			out = append(out, item)
		}
	}
	return out
}
