package apply

import (
	"context"
	"errors"

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
func (p *planning) index(ctx context.Context, revisions []Past) (*past, error) {
	out := &past{objects: map[kube.ID][]stated{}, hooks: map[kube.ID]stated{}, provenance: map[kube.ID]*Provenance{}}
	for _, r := range revisions {
		var had []kube.ID
		for _, m := range r.Objects {
			err := p.eachStated(ctx, r, m, func(id kube.ID, s stated) {
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
		for _, m := range r.Hooks {
			if err := p.eachStated(ctx, r, m, func(id kube.ID, s stated) { out.hooks[id] = s }); err != nil {
				return nil, err
			}
		}
		out.noteProvenance(r, had)
	}
	return out, nil
}

func (p *planning) eachStated(ctx context.Context, r Past, m kube.Manifest, do func(kube.ID, stated)) error {
	if m.Object == nil {
		return nil
	}
	for _, obj := range manifest.Flatten(m.Object) {
		if obj.GetName() == "" {
			continue
		}
		mapping, err := p.a.cluster.Mapping(ctx, kube.IDOf(obj).GroupKind().WithVersion(""), true)
		var unknown *kube.NoKindError
		switch {
		case errors.As(err, &unknown):
			mapping = kube.Mapping{Namespaced: true}
			if m, ok := p.comingKind(obj); ok {
				mapping = m
			}
		case err != nil && p.unavailable(kube.IDOf(obj).Group):
			mapping = kube.Mapping{Namespaced: true} // until it can be looked up
		case err != nil:
			return err
		}
		o := p.atHome(obj, mapping)
		do(kube.IDOf(o), stated{revision: r.Revision, status: r.Status, source: m.Source, obj: o})
	}
	return nil
}

func (p *planning) comingKind(obj *unstructured.Unstructured) (kube.Mapping, bool) {
	m, ok := p.coming[obj.GroupVersionKind()]
	return m, ok
}
