package apply

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
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

// repair does to the predicted object what no apply can do, and tells whether
// there was anything.
func (c *comparison) repair(live *unstructured.Unstructured) (bool, error) {
	emptied, err := c.emptied(live)
	if err != nil {
		return false, err
	}
	united := unite(live, c.desired, c.predicted)
	deduped := dedupe(c.desired.Object, c.predicted.Object)
	evicted := c.evict()
	return c.translate() || emptied || united || deduped || evicted, nil
}

// emptied sees to what the chart states as empty and what was all ours. An apply
// leaves null there, which a schema refuses or which means something else. With
// an object in which it is empty already the prediction is right.
// sigs.k8s.io/structured-merge-diff typed/remove.go
func (c *comparison) emptied(live *unstructured.Unstructured) (bool, error) {
	next, found := emptied(c.desired.Object, c.predicted.Object, withoutManagedFields(live).Object)
	if !found {
		return false, nil
	}
	from, err := compare.Typed(c.conv, &unstructured.Unstructured{Object: next.(map[string]any)})
	if err != nil {
		return false, err
	}
	want, err := compare.Typed(c.conv, c.desired)
	if err != nil {
		return false, err
	}
	return true, c.predict(from, want)
}

// emptied is live with what want has empty and predicted has lost emptied, and
// whether there is any. live stays as it is. Items of lists are found by their
// names.
func emptied(want, predicted, live any) (any, bool) {
	found := false
	switch w := want.(type) {
	case map[string]any:
		p, _ := predicted.(map[string]any)
		l, _ := live.(map[string]any)
		out := l
		for key, v := range w {
			now, is := v, p[key] == nil && l[key] != nil && isEmpty(v)
			if !is {
				now, is = emptied(v, p[key], l[key])
			}
			if is && !found {
				out, found = maps.Clone(l), true
			}
			if is {
				out[key] = now
			}
		}
		return out, found
	case []any:
		p, _ := predicted.([]any)
		l, _ := live.([]any)
		out := l
		for _, item := range w {
			i := indexOf(item, l)
			if i < 0 {
				continue
			}
			now, is := emptied(item, named(item, p), out[i])
			if is && !found {
				out, found = slices.Clone(l), true
			}
			if is {
				out[i] = now
			}
		}
		return out, found
	}
	return live, false
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// unite removes the sibling that the stated type doesn't allow.
func unite(live, want, predicted *unstructured.Unstructured) bool {
	u, ok := unions[live.GetKind()]
	if !ok || !strings.HasPrefix(live.GetAPIVersion(), "apps/") {
		return false
	}
	kind, stated, _ := unstructured.NestedString(want.Object, "spec", u.field, "type")
	_, has, _ := unstructured.NestedFieldNoCopy(predicted.Object, "spec", u.field, u.member)
	if !stated || kind == u.kind || !has {
		return false
	}
	unstructured.RemoveNestedField(predicted.Object, "spec", u.field, u.member)
	return true
}

// translate removes annotations that stand for fields which are ours in another
// version than the chart's.
func (c *comparison) translate() bool {
	if c.desired.GetAPIVersion() != "autoscaling/v1" {
		return false
	}
	found := false
	for key, field := range inAnnotations {
		path := fieldpath.MakePathOrDie("spec", field)
		ours := slices.ContainsFunc(c.entries, func(e ownership.Entry) bool {
			return e.Class() == ownership.Helm && (e.Set.Has(path) || !fields.Under(e.Set, path).Empty())
		})
		_, stated := c.desired.GetAnnotations()[key]
		_, there := c.predicted.GetAnnotations()[key]
		if ours && there && !stated {
			unstructured.RemoveNestedField(c.predicted.Object, "metadata", "annotations", key)
			found = true
		}
	}
	return found
}

// dedupe finds variables that are set twice in one container, which Helm 3's
// POST allowed and an apply leaves as they are; the last one stays, as the
// kubelet reads it. A chart can say the same of a kind whose lists are no maps.
func dedupe(want, predicted any) bool {
	found := false
	switch p := predicted.(type) {
	case map[string]any:
		w, ok := want.(map[string]any)
		if !ok {
			return false
		}
		for key, v := range p {
			env, isList := v.([]any)
			if key != "env" || !isList {
				found = dedupe(w[key], v) || found
				continue
			}
			stated, _ := w[key].([]any)
			if once := lastOfEach(env); len(once) < len(env) && len(lastOfEach(stated)) == len(stated) {
				p[key], found = once, true
			}
			for _, item := range env {
				found = oneSource(named(item, stated), item) || found
			}
		}
	case []any:
		w, ok := want.([]any)
		if !ok {
			return false
		}
		for _, item := range p {
			found = dedupe(named(item, w), item) || found
		}
	}
	return found
}

// oneSource removes from a variable what the chart doesn't state of value and
// valueFrom when it states the other: kubectl set env leaves it there, and the
// server refuses the two together.
func oneSource(want, predicted any) bool {
	w, _ := want.(map[string]any)
	p, _ := predicted.(map[string]any)
	for stated, other := range map[string]string{"value": "valueFrom", "valueFrom": "value"} {
		if w[stated] != nil && w[other] == nil && p[other] != nil {
			delete(p, other)
			return true
		}
	}
	return false
}

// named finds the item of a list that has the name of v.
func named(v any, list []any) any {
	if i := indexOf(v, list); i >= 0 {
		return list[i]
	}
	return nil
}

func indexOf(v any, list []any) int {
	name := envName(v)
	return slices.IndexFunc(list, func(item any) bool { return name != "" && envName(item) == name })
}

func envName(item any) string {
	m, _ := item.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// lastOfEach leaves of the items of one name the last.
func lastOfEach(env []any) []any {
	last := map[string]int{}
	for i, item := range env {
		last[envName(item)] = i
	}
	var out []any
	for i, item := range env {
		if name := envName(item); name == "" || last[name] == i {
			out = append(out, item)
		}
	}
	return out
}

// pointer escapes the parts of a JSON pointer. https://www.rfc-editor.org/rfc/rfc6901
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// jsonPatchOf is the JSON patch that makes to of from, which unlike a merge patch
// can write null.
func jsonPatchOf(path string, from, to map[string]any) []operation {
	var ops []operation
	for key, v := range to {
		at := path + "/" + pointer.Replace(key)
		old, had := from[key]
		if had && reflect.DeepEqual(old, v) {
			continue
		}
		a, ok1 := old.(map[string]any)
		b, ok2 := v.(map[string]any)
		if at == "/metadata" && ok1 && ok2 {
			ops = append(ops, jsonPatchOf(at, a, b)...)
		} else {
			ops = append(ops, operation{"add", at, v})
		}
	}
	for key := range from {
		if _, still := to[key]; !still {
			ops = append(ops, operation{Op: "remove", Path: path + "/" + pointer.Replace(key)})
		}
	}
	return ops
}
