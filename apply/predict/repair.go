package predict

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
)

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
	deduped := dedupeEnv(p.Desired.Object, p.Predicted.Object)
	removed := p.removeCollidingItems()
	united := p.removeLeftovers()
	return p.removeMirroredAnnotations() || emptied || united || deduped || removed, nil
}

// repairEmptied corrects the prediction for fields that the chart states as empty and whose
// content was all ours. An apply would leave null there, which the schema may refuse or
// which may mean something else. The prediction is right when it starts from an object in
// which the field is empty already.
// sigs.k8s.io/structured-merge-diff typed/remove.go
func (p *Prediction) repairEmptied(desired *typed.TypedValue) (bool, error) {
	found := false
	eachEmptied(p.Desired.Object, p.Predicted.Object, p.Live.Object.Object, func(map[string]any, string, any) { found = true })
	if !found {
		return false, nil
	}
	next := compare.WithoutManagedFields(p.Live.Object).DeepCopy()
	eachEmptied(p.Desired.Object, p.Predicted.Object, next.Object, func(parent map[string]any, key string, empty any) { parent[key] = empty })
	from, err := compare.Typed(p.Live.Converter, next)
	if err != nil {
		return false, err
	}
	return true, p.simulate(from, desired)
}

// eachEmptied calls do for each field of live that desired has empty and predicted has lost, with
// its parent, its name and its empty value.
func eachEmptied(desired, predicted, live any, do func(parent map[string]any, key string, empty any)) {
	walkTogether(desired, predicted, live, func(d, p, l map[string]any) {
		for key, v := range d {
			if p[key] == nil && l[key] != nil && isEmpty(v) {
				do(l, key, v)
			}
		}
	})
}

// walkTogether calls visit for each map in a tree, with the maps at the same places in two others, which are nil where there are none.
// Items of lists are matched by name.
func walkTogether(tree, second, third any, visit func(tree, second, third map[string]any)) {
	switch t := tree.(type) {
	case map[string]any:
		a, _ := second.(map[string]any)
		b, _ := third.(map[string]any)
		visit(t, a, b)
		for key, v := range t {
			walkTogether(v, a[key], b[key], visit)
		}
	case []any:
		a, _ := second.([]any)
		b, _ := third.([]any)
		for _, item := range t {
			walkTogether(item, itemNamed(item, a), itemNamed(item, b), visit)
		}
	}
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
			return e.Class() == ownership.Helm && fields.HasIn(e.Set, path)
		})
		annotation := fieldpath.MakePathOrDie("metadata", "annotations", key)
		if ours && !fields.Has(p.Desired.Object, annotation) && fields.Remove(p.Predicted.Object, annotation) {
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
	walkTogether(predicted, desired, nil, func(p, d, _ map[string]any) {
		env, isList := p["env"].([]any)
		if !isList || d == nil {
			return // the chart doesn't have the container
		}
		stated, _ := d["env"].([]any)
		if once := lastOfEach(env, stated); len(once) < len(env) && len(lastOfEach(stated, stated)) == len(stated) {
			p["env"], found = once, true
		}
	})
	return found
}

// itemNamed returns the item of a list that has the same name as v; nil if there is none.
func itemNamed(v any, list []any) any {
	name := fields.ItemName(v)
	i := slices.IndexFunc(list, func(item any) bool { return name != "" && fields.ItemName(item) == name })
	if i < 0 {
		return nil
	}
	return list[i]
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
