package apply

import (
	"context"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/manifest"
	"deployer/apply/ownership"
	"deployer/apply/predict"
	"deployer/internal/kube"
)

// This file makes the desired object of a rendered one.

// declaredFieldsOf returns the fields that stored revisions declared for an object, in
// the API version that is applied. A revision that doesn't fit this version's schema is
// skipped: the kind was a different one then.
func (p *planning) declaredFieldsOf(ctx context.Context, t *target, conv managedfields.TypeConverter, stored []DeclaredObject) []predict.Declared {
	var out []predict.Declared
	var last *unstructured.Unstructured
	for _, s := range stored {
		if last != nil && reflect.DeepEqual(last.Object, s.Object.Object) {
			out = append(out, predict.Declared{Revision: s.Revision, Fields: out[len(out)-1].Fields, Object: out[len(out)-1].Object})
			continue
		}
		obj := kube.ShallowCopy(s.Object)
		obj.SetGroupVersionKind(t.mapping.GVK)
		res, err := p.normaliseBySchema(ctx, t, obj, false)
		if err != nil {
			continue
		}
		v, err := compare.Typed(conv, res.Object)
		if err != nil {
			continue
		}
		set, err := ownership.Appliable(v)
		if err != nil {
			continue
		}
		last = s.Object
		out = append(out, predict.Declared{Revision: s.Revision, Fields: set, Object: res.Object.Object})
	}
	return out
}

// warnOfDropped warns of fields that the chart states and that aren't in what the server makes of it: a feature gate that is
// off, or a version in which the object is stored, drops them without a word. changes are those by the server. It reports whether
// there are any.
func (w *warnings) warnOfDropped(t *target, changes []compare.FieldChange) bool {
	var dropped []string
	for _, c := range changes {
		if c.Type == compare.Removed && !fields.IsEmpty(c.Before) {
			dropped = append(dropped, c.String())
		}
	}
	if len(dropped) > 0 {
		w.addWarning(Warning{Source: t.source, ID: t.id, staysTrue: true, Text: "the cluster accepts " + strings.Join(dropped, ", ") +
			" and drops it, so it has no effect: a feature gate is off, a webhook removes it, or the version in which the object is stored doesn't have it"})
	}
	return len(dropped) > 0
}

// normalise turns the rendered object into the desired object, and says why that can't be applied but is written whole.
func (p *planning) normalise(ctx context.Context, t *target) (*unstructured.Unstructured, replacement, error) {
	res, err := p.normaliseBySchema(ctx, t, t.obj, false)
	if err != nil {
		return nil, replacement{}, &ObjectError{ID: t.id, Source: t.source, Doing: "checking", Err: err}
	}
	if len(res.Problems) > 0 {
		lines := make([]string, len(res.Problems))
		for i, n := range res.Problems {
			lines[i] = n.String()
		}
		return nil, replacement{}, t.reject(&InvalidError{Text: strings.Join(lines, "\n")})
	}
	for _, n := range res.Notes {
		after := ""
		if res.SchemaMismatch && len(p.prerequisites.hooks) > 0 { // they may change what kinds are like
			after = " unless it has it after the hooks"
		}
		p.warnings.add(t.id, t.source, "%s%s", n, after)
	}
	if policy := t.obj.GetAnnotations(); decide.HasUnknownPolicy(policy) {
		p.warnings.add(t.id, t.source, "metadata.annotations[%s] is %q, which is not a known policy: use keep", decide.KeepAnnotation, policy[decide.KeepAnnotation])
	}
	if res.SchemaMismatch {
		t.manifestHash = "" // no fingerprint: the kind may later have the fields that are dropped now
	}
	whole, err := p.replacementOfRepeated(ctx, t, res)
	return res.Object, whole, err
}

// normaliseBySchema normalises a manifest of a target by the schema that is at hand, and by the
// server's own if that one seems to lack something. It sets the ownership metadata.
func (p *planning) normaliseBySchema(ctx context.Context, t *target, obj *unstructured.Unstructured, dropDuplicates bool) (manifest.Result, error) {
	gvk, rules := t.mapping.GVK, manifest.Rules{Status: t.mapping.HasStatus, DropDuplicates: dropDuplicates}
	switch p.a.opts.Validation {
	case ValidationStrict:
		rules.UnknownFields = manifest.Refuse
	case ValidationIgnore:
		rules.UnknownFields = manifest.DropSilently
	}
	for {
		var err error
		if _, rules.Type, err = p.schemas.of(ctx, gvk); err != nil {
			return manifest.Result{}, err
		}
		res := manifest.Normalise(obj, rules)
		if res.SchemaMismatch && p.schemas.isBuiltin(gvk) {
			p.schemas.distrust(gvk.GroupVersion())
			continue
		}
		if !t.fromCRDs {
			p.a.owner.SetOn(res.Object)
		}
		return res, nil
	}
}
