package apply

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/apply/manifest"
)

// normalise turns the rendered object into the desired object.
func (r *predictor) normalise(ctx context.Context, t *target) (*unstructured.Unstructured, error) {
	res, err := r.normaliseBySchema(ctx, t, t.obj, false)
	if err != nil {
		return nil, &ObjectError{ID: t.id, Source: t.source, Doing: "checking", Err: err}
	}
	if len(res.Problems) > 0 {
		return nil, t.reject(invalidError(res.Problems))
	}
	for _, n := range res.Notes {
		r.warnings.add(t.id, t.source, "%s", n)
	}
	if policy := t.obj.GetAnnotations(); decide.HasUnknownPolicy(policy) {
		r.warnings.add(t.id, t.source, "metadata.annotations[%s] is %q, which is not a known policy: use keep", decide.KeepAnnotation, policy[decide.KeepAnnotation])
	}
	if res.SchemaMismatch {
		t.manifestHash = "" // no fingerprint: the kind may later have the fields that are dropped now
	}
	return res.Object, r.decideFullReplace(ctx, t, res)
}

// normaliseBySchema normalises a manifest of a target by the schema that is at hand, and by the
// server's own if that one seems to lack something. It sets the ownership metadata.
func (r *predictor) normaliseBySchema(ctx context.Context, t *target, obj *unstructured.Unstructured, dropDuplicates bool) (manifest.Result, error) {
	gvk, rules := t.mapping.GVK, manifest.Rules{Status: t.mapping.HasStatus, DropDuplicates: dropDuplicates}
	switch r.a.opts.Validation {
	case ValidationStrict:
		rules.UnknownFields = manifest.Refuse
	case ValidationIgnore:
		rules.UnknownFields = manifest.DropSilently
	}
	var err error
	if _, rules.Type, err = r.schemas.of(ctx, gvk); err != nil {
		return manifest.Result{}, err
	}
	res := manifest.Normalise(obj, rules)
	if res.SchemaMismatch && r.schemas.isBuiltin(gvk) {
		r.schemas.distrust(gvk.GroupVersion())
		if _, rules.Type, err = r.schemas.of(ctx, gvk); err != nil {
			return manifest.Result{}, err
		}
		res = manifest.Normalise(obj, rules)
	}
	if !t.fromCRDs {
		r.a.owner.SetOn(res.Object)
	}
	return res, nil
}

func invalidError(problems []manifest.Note) error {
	if len(problems) == 1 {
		return &InvalidError{Field: problems[0].Path, Text: problems[0].Text}
	}
	lines := make([]string, len(problems))
	for i, n := range problems {
		lines[i] = n.String()
	}
	return &InvalidError{Text: strings.Join(lines, "\n")}
}
