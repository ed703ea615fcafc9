package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/manifest"
	"deployer/internal/kube"
)

// past is what earlier revisions may have left, by object.
type past struct {
	objects    map[kube.ID][]stated // oldest first
	hooks      map[kube.ID]stated
	order      []kube.ID
	provenance map[kube.ID]*Provenance // of objects of that name; see noteProvenance
	since      int                     // the latest revision that was uninstalled
}

// stated is an object as a revision had it.
type stated struct {
	revision int
	status   string
	source   string
	obj      *unstructured.Unstructured
}

func (p *past) wasHook(id kube.ID) bool {
	_, ok := p.hooks[id]
	return ok
}

// index reads the revisions. An object of a kind that no longer exists is
// remembered with the namespace it would have had: that kind may be back under
// another group, and is nothing to fail for (helm#7219).
func (r *resolver) index(ctx context.Context, revisions []Revision) (*past, error) {
	out := &past{objects: map[kube.ID][]stated{}, hooks: map[kube.ID]stated{}, provenance: map[kube.ID]*Provenance{}}
	for _, revision := range revisions {
		var had []kube.ID
		for _, m := range revision.Objects {
			err := r.eachStated(ctx, revision, m, func(id kube.ID, s stated) {
				had = append(had, id)
				if len(out.objects[id]) == 0 {
					out.order = append(out.order, id)
				}
				out.objects[id] = append(out.objects[id], s)
			})
			if err != nil {
				return nil, err
			}
		}
		for _, m := range revision.Hooks {
			if err := r.eachStated(ctx, revision, m, func(id kube.ID, s stated) { out.hooks[id] = s }); err != nil {
				return nil, err
			}
		}
		out.noteProvenance(revision, had)
	}
	return out, nil
}

func (r *resolver) eachStated(ctx context.Context, revision Revision, m kube.Manifest, do func(kube.ID, stated)) error {
	if m.Object == nil {
		return nil
	}
	for _, obj := range manifest.Flatten(m.Object) {
		if obj.GetName() == "" {
			continue
		}
		mapping, err := r.a.cluster.Mapping(ctx, kube.IDOf(obj).GroupKind().WithVersion(""), true)
		var unknown *kube.NoKindError
		switch {
		case errors.As(err, &unknown):
			mapping = kube.Mapping{Namespaced: true}
			if m, ok := r.definitions.kinds[obj.GroupVersionKind()]; ok {
				mapping = m
			}
		case err != nil && r.isUnavailable(kube.IDOf(obj).Group):
			mapping = kube.Mapping{Namespaced: true} // until it can be looked up
		case err != nil:
			return err
		}
		o := r.placed(obj, mapping)
		do(kube.IDOf(o), stated{revision: revision.Revision, status: revision.Status, source: m.Source, obj: o})
	}
	return nil
}

// isUnavailable says that the server couldn't list kinds of an API group.
func (r *resolver) isUnavailable(group string) bool {
	return slices.ContainsFunc(r.unavailable, func(gv string) bool { return strings.HasPrefix(gv, group+"/") })
}
