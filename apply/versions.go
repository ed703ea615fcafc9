package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/definition"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// The API server converts an object between the versions of its kind, and each manager owns fields in the version in
// which it wrote them. In another version the same fields may have other names. So what an apply removes, or takes from
// others, is computed here only where the object reads the same in both versions; else the API server is asked.

// otherViews reads a live object in the API versions in which managers own more of it than metadata, and returns it as it
// is in those in which it isn't the same.
//
// unconverted says that it can't be read so before its converter, which comes with the release, answers.
func (r *requester) otherViews(ctx context.Context, t *target, live *compare.Live) (out map[string]*unstructured.Unstructured, unconverted bool, err error) {
	looked := map[string]bool{live.Object.GetAPIVersion(): true}
	for _, e := range live.Entries {
		if looked[e.APIVersion] || e.Subresource != "" || ownership.WithoutMetadataAndStatus(e.Set).Empty() {
			continue
		}
		looked[e.APIVersion] = true
		m, err := r.cluster.Mapping(ctx, schema.FromAPIVersionAndKind(e.APIVersion, t.id.Kind), false)
		if errors.As(err, new(*kube.NoKindMatchError)) {
			continue // it isn't served any more
		}
		if err != nil {
			return nil, false, err
		}
		view, err := r.getWhile(ctx, m, t.id, t.isTransient)
		switch {
		case t.failsConversion(verify.Read(err)):
			return nil, true, nil
		case err != nil:
			return nil, false, &ObjectError{ID: t.id, Source: t.source, Doing: "reading the " + e.APIVersion + " of", Err: err}
		}
		if view != nil && !compare.SameContent(versionless(view), versionless(live.Object)) {
			r.opts.Hidden.AddObject(view)
			if out == nil {
				out = map[string]*unstructured.Unstructured{}
			}
			out[e.APIVersion] = view
		}
	}
	return out, false, nil
}

// versionless is an object without its version and its status.
func versionless(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := kube.ShallowCopy(obj)
	delete(out.Object, "apiVersion")
	delete(out.Object, "status")
	return out
}

// transientButConversion is the retriable of what another version of the object has too.
func transientButConversion(said verify.Answer) bool {
	return said.IsTransient && said.Detail != verify.NotConverted
}

// ownersElsewhere are the entries of others who have set fields in a version in which these have other names.
func (u *updateDecision) ownersElsewhere() []ownership.Entry {
	return slices.DeleteFunc(slices.Clone(u.known.live.Entries), func(e ownership.Entry) bool {
		return u.known.views[e.APIVersion] == nil || e.Subresource != "" || e.Class() == ownership.Helm
	})
}

// decideConflictsElsewhere decides about such fields: the API server says which of them the chart changes. Such a field can't
// be left to its owner.
func (u *updateDecision) decideConflictsElsewhere(others []ownership.Entry, causes []metav1.StatusCause) {
	for _, cause := range causes {
		for _, e := range others {
			if cause.Type == metav1.CauseTypeFieldManagerConflict && blamesEntry(cause.Message, e) {
				u.contestElsewhere(cause.Field, e)
			}
		}
	}
}

// warnOfConversion warns of what others have set in a version and doesn't show in one that the update passes through, the
// chart's or that of the last release, in which the API server prunes: it is reset without a word if the conversion loses it.
// Whether it does, no dry run tells. What is built in converts both ways.
func (u *updateDecision) warnOfConversion() {
	if len(u.known.views) == 0 || kube.IsBuiltinGroup(u.t.id.Group) {
		return
	}
	views := maps.Clone(u.known.views)
	views[u.live.GetAPIVersion()] = u.live
	passed := map[string]bool{u.live.GetAPIVersion(): true}
	for _, e := range u.prediction.Live.Entries {
		passed[e.APIVersion] = passed[e.APIVersion] || e.Class() == ownership.Helm
	}
	for _, e := range u.prediction.Live.Entries {
		if views[e.APIVersion] == nil || e.Subresource != "" || e.Class() == ownership.Helm {
			continue
		}
		for version, view := range views {
			if version == e.APIVersion || !passed[version] {
				continue
			}
			unseen := fields.Where(ownership.WithoutMetadataAndStatus(e.Set).Leaves(), func(path fieldpath.Path) bool {
				there, ok := fields.Value(views[e.APIVersion].Object, path)
				here, both := fields.Value(view.Object, path)
				return ok && !(both && fields.Equal(there, here))
			})
			if unseen.Empty() {
				continue
			}
			var paths []string
			for path := range unseen.All() {
				paths = append(paths, fields.String(path))
			}
			u.p.warnings.add(u.t.id, u.t.source, "%s has set %s of %s, which %s doesn't show: the update resets it if the conversion between them loses it",
				e.Manager, strings.Join(paths, ", "), e.APIVersion, version)
		}
	}
}

// blamesEntry reports whether the API server's words for a conflict are about the owner of an entry.
// k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go
func blamesEntry(message string, e ownership.Entry) bool {
	rest, named := strings.CutPrefix(message, fmt.Sprintf("conflict with %q", e.Manager))
	return named && (e.Operation == metav1.ManagedFieldsOperationApply || strings.HasPrefix(rest, " using "+e.APIVersion))
}

// contestElsewhere lists a field that the owner of an entry has set in another version.
func (u *updateDecision) contestElsewhere(field string, e ownership.Entry) {
	f := FieldConflict{Contest: decide.SetElsewhere, Path: strings.TrimPrefix(field, "."), FieldManager: e.FieldManager}
	for path := range e.Set.All() {
		if path.String() == field {
			f = u.contested(decide.SetElsewhere, path, e.FieldManager, u.known.views[e.APIVersion], nil)
			f.FieldPath = nil // the chart's version has no field of this name
		}
	}
	f.Path += " of " + e.APIVersion
	if u.contest(f) == decide.OutcomeTaken && u.rules.Conflicts != decide.TakeConflicts {
		u.p.warnings.add(u.t.id, u.t.source, "%s, set by %s, is changed: %s has no field of this name", f.Path, e.Manager, u.live.GetAPIVersion())
	}
}

// applyUnforced asks which fields of others an apply would change; none without such an answer.
func (r *requester) applyUnforced(t *target, obj *unstructured.Unstructured) func(context.Context) ([]metav1.StatusCause, error) {
	return func(ctx context.Context) ([]metav1.StatusCause, error) {
		data, err := applyBody(obj.Object)
		if err != nil {
			return nil, nil
		}
		_, err = r.patch(ctx, t, obj.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, asDryRun)
		return verify.Read(err).Causes, nil
	}
}

// lookInOtherVersion asks what there is of a target whose version comes with the release, if its kind was there before.
func (p *planning) lookInOtherVersion(t *target) func(context.Context) (*metav1.PartialObjectMetadata, error) {
	return func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		if !t.waits.deferral.waitsFor(t.definition()) || p.prerequisites.isNew(t) {
			return nil, nil
		}
		m, isServed, err := p.a.stillServed(ctx, t.id.GroupKind().WithVersion(""))
		if !isServed {
			return nil, err
		}
		s, err := p.finder.observeMeta(ctx, sought{id: t.id, source: t.source, mapping: m})
		return s.meta, err
	}
}

// metaInAnyVersion reads the metadata of an object, which is the same in all versions of its kind, in another one if
// nobody converts to that of the mapping.
func (r *requester) metaInAnyVersion(ctx context.Context, m kube.Mapping, id kube.ID) (*metav1.PartialObjectMetadata, error) {
	meta, err := r.getMetaWhile(ctx, m, id, transientButConversion)
	if verify.Read(err).Detail != verify.NotConverted {
		return meta, err
	}
	crd, crdErr := r.get(ctx, definition.Mapping, definition.ID(m.Resource.GroupResource()))
	if crdErr != nil || crd == nil {
		return nil, err
	}
	for _, version := range definition.Versions(crd) {
		other := m
		other.Resource.Version, _ = version["name"].(string)
		if served, _ := version["served"].(bool); !served || other.Resource == m.Resource {
			continue
		}
		if found, otherErr := r.getMetaWhile(ctx, other, id, transientButConversion); otherErr == nil {
			return found, nil
		}
	}
	return nil, err
}
