package predict

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
)

// unions are structures whose type decides which sibling field is allowed. A sibling that
// was set by default has no owner, so no apply removes it, and the server rejects the two
// together (kubernetes#24198).
var unions = map[string]struct{ field, member, kind string }{
	"Deployment":  {"strategy", "rollingUpdate", "RollingUpdate"},
	"DaemonSet":   {"updateStrategy", "rollingUpdate", "RollingUpdate"},
	"StatefulSet": {"updateStrategy", "rollingUpdate", "RollingUpdate"},
}

// mirroredAnnotations are fields of an autoscaler that autoscaling/v1 shows as annotations. An
// apply in that version doesn't remove fields that were set in another version.
// k8s.io/kubernetes/pkg/apis/autoscaling/annotations.go
var mirroredAnnotations = map[string]string{
	"autoscaling.alpha.kubernetes.io/metrics":  "metrics",
	"autoscaling.alpha.kubernetes.io/behavior": "behavior",
}

// repair makes changes to the predicted object that no apply can make. It reports whether
// there were any.
func (p *Prediction) repair(desired *typed.TypedValue) (bool, error) {
	emptied, err := p.repairEmptied(desired)
	if err != nil {
		return false, err
	}
	united := removeUnionSibling(p.Live.Object, p.Desired, p.Predicted)
	deduped := dedupeEnv(p.Desired.Object, p.Predicted.Object)
	removed := p.removeCollidingItems()
	return p.removeMirroredAnnotations() || emptied || united || deduped || removed, nil
}

// repairEmptied corrects the prediction for fields that the chart states as empty and whose
// content was all ours. An apply would leave null there, which the schema may refuse or
// which may mean something else. The prediction is right when it starts from an object in
// which the field is empty already.
// sigs.k8s.io/structured-merge-diff typed/remove.go
func (p *Prediction) repairEmptied(desired *typed.TypedValue) (bool, error) {
	next, found := withEmptied(p.Desired.Object, p.Predicted.Object, compare.WithoutManagedFields(p.Live.Object).Object)
	if !found {
		return false, nil
	}
	from, err := compare.Typed(p.Live.Converter, &unstructured.Unstructured{Object: next.(map[string]any)})
	if err != nil {
		return false, err
	}
	return true, p.simulate(from, desired)
}

// withEmptied returns a copy of live in which the fields are empty that desired has empty and
// predicted has lost, and whether there are any. Items of lists are matched by name.
func withEmptied(desired, predicted, live any) (any, bool) {
	found := false
	switch w := desired.(type) {
	case map[string]any:
		p, _ := predicted.(map[string]any)
		l, _ := live.(map[string]any)
		out := l
		for key, v := range w {
			now, is := v, p[key] == nil && l[key] != nil && isEmpty(v)
			if !is {
				now, is = withEmptied(v, p[key], l[key])
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
			now, is := withEmptied(item, itemNamed(item, p), out[i])
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

// removeUnionSibling removes the sibling field that the stated type of a union doesn't allow.
func removeUnionSibling(live, desired, predicted *unstructured.Unstructured) bool {
	u, ok := unions[live.GetKind()]
	if !ok || !strings.HasPrefix(live.GetAPIVersion(), "apps/") {
		return false
	}
	kind, stated, _ := unstructured.NestedString(desired.Object, "spec", u.field, "type")
	_, has, _ := unstructured.NestedFieldNoCopy(predicted.Object, "spec", u.field, u.member)
	if !stated || kind == u.kind || !has {
		return false
	}
	unstructured.RemoveNestedField(predicted.Object, "spec", u.field, u.member)
	return true
}

// removeMirroredAnnotations removes annotations that represent fields which we own in another API version
// than the chart's.
func (p *Prediction) removeMirroredAnnotations() bool {
	if p.Desired.GetAPIVersion() != "autoscaling/v1" {
		return false
	}
	found := false
	for key, field := range mirroredAnnotations {
		path := fieldpath.MakePathOrDie("spec", field)
		ours := slices.ContainsFunc(p.Live.Entries, func(e ownership.Entry) bool {
			return e.Class() == ownership.Helm && (e.Set.Has(path) || !fields.WithPrefix(e.Set, path).Empty())
		})
		_, stated := p.Desired.GetAnnotations()[key]
		_, there := p.Predicted.GetAnnotations()[key]
		if ours && there && !stated {
			unstructured.RemoveNestedField(p.Predicted.Object, "metadata", "annotations", key)
			found = true
		}
	}
	return found
}

// dedupeEnv removes environment variables that are set twice in one container; the last one
// stays, as for the kubelet. Helm 3's POST allowed duplicates, and an apply leaves them.
// They stay if the chart states them itself, of a kind whose lists have no keys.
func dedupeEnv(desired, predicted any) bool {
	found := false
	switch p := predicted.(type) {
	case map[string]any:
		w, ok := desired.(map[string]any)
		if !ok {
			return false
		}
		for key, v := range p {
			env, isList := v.([]any)
			if key != "env" || !isList {
				found = dedupeEnv(w[key], v) || found
				continue
			}
			stated, _ := w[key].([]any)
			if once := lastOfEach(env, stated); len(once) < len(env) && len(lastOfEach(stated, stated)) == len(stated) {
				p[key], found = once, true
			}
			for _, item := range env {
				found = dropOtherEnvSource(itemNamed(item, stated), item) || found
			}
		}
	case []any:
		w, ok := desired.([]any)
		if !ok {
			return false
		}
		for _, item := range p {
			found = dedupeEnv(itemNamed(item, w), item) || found
		}
	}
	return found
}

// dropOtherEnvSource removes value or valueFrom of a variable if the chart states only the other
// one. kubectl set env leaves both, which the server rejects.
func dropOtherEnvSource(desired, predicted any) bool {
	w, _ := desired.(map[string]any)
	p, _ := predicted.(map[string]any)
	for stated, other := range map[string]string{"value": "valueFrom", "valueFrom": "value"} {
		if w[stated] != nil && w[other] == nil && p[other] != nil {
			delete(p, other)
			return true
		}
	}
	return false
}

// itemNamed returns the item of a list that has the same name as v; nil if there is none.
func itemNamed(v any, list []any) any {
	if i := indexOf(v, list); i >= 0 {
		return list[i]
	}
	return nil
}

func indexOf(v any, list []any) int {
	name := fields.ItemName(v)
	return slices.IndexFunc(list, func(item any) bool { return name != "" && fields.ItemName(item) == name })
}

// lastOfEach keeps the last of the variables with the same name, and earlier ones that stated
// doesn't have and a variable up to the last one uses.
func lastOfEach(env, stated []any) []any {
	last := map[string]int{}
	for i, item := range env {
		last[fields.ItemName(item)] = i
	}
	var out []any
	for i, item := range env {
		name := fields.ItemName(item)
		usesName := func(later any) bool { return fields.UsesVariable(later, name) }
		if name == "" || last[name] == i || itemNamed(item, stated) == nil && slices.ContainsFunc(env[i+1:last[name]+1], usesName) {
			out = append(out, item)
		}
	}
	return out
}
