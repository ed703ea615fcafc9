package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"deployer/apply/manifest"
)

// Two ports of one number and protocol, of which a Service uses the one name
// and a probe the other, are fine for POST and PUT, and real charts have them.
// Server-side apply cannot express that: it tells items of a list apart by
// their keys. Such an object is compared as if the later ones weren't there. Then
// these lists are put in as the chart has them, and the object is written whole,
// bound to the version that was read. What is to be removed follows
// from the same bookkeeping as elsewhere: what a PUT of ours wrote is an entry
// (helm, Update), which counts as ours.

// noteDoubled sees to it that an object with doubled items is written whole.
func (r *comparer) noteDoubled(ctx context.Context, t *target, res manifest.Result) error {
	t.fullReplace = wholeWrite{}
	if len(res.Doubled) == 0 {
		return nil
	}
	once, err := r.shape(ctx, t.obj, t.mapping.GVK, manifest.Rules{Status: t.mapping.Status, Once: true})
	if err != nil {
		return &ObjectError{ID: t.id, Source: t.source, Doing: "checking", Err: err}
	}
	t.fullReplace.once = once.Object
	if !t.fromCRDs {
		r.a.owner.stamp(t.fullReplace.once)
	}
	for _, n := range res.Doubled {
		r.warnings.add(t.id, t.source, "%s: server-side apply doesn't allow that, so the object is replaced as a whole", n)
	}
	t.fullReplace.reason = "replaced as a whole: " + res.Doubled[0].String()
	return nil
}

// whole makes of what an apply would come to what is to be written.
func (u *updating) whole() {
	putDoubled(u.fullDesired.Object, u.t.fullReplace.once.Object, u.comparison.predicted.Object)
	want := u.comparison.desired.DeepCopy()
	putDoubled(u.fullDesired.Object, u.t.fullReplace.once.Object, want.Object)
	u.change.Desired, u.change.TakenFrom = want, nil
}

// putDoubled replaces the lists in onto of which full has more items than once.
func putDoubled(full, once, onto any) {
	switch f := full.(type) {
	case map[string]any:
		o, ok1 := once.(map[string]any)
		to, ok2 := onto.(map[string]any)
		if !ok1 || !ok2 {
			return
		}
		for key, v := range f {
			list, isList := v.([]any)
			single, _ := o[key].([]any)
			if isList && len(list) != len(single) {
				to[key] = runtime.DeepCopyJSONValue(list)
				continue
			}
			putDoubled(v, o[key], to[key])
		}
	case []any:
		o, ok1 := once.([]any)
		to, ok2 := onto.([]any)
		if !ok1 || !ok2 {
			return
		}
		for i, v := range f {
			at := named(v, to)
			if at == nil && len(to) == len(f) {
				at = to[i]
			}
			putDoubled(v, o[i], at)
		}
	}
}
