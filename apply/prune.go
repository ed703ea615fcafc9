package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/ordering"
	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// A pruner decides about the orphans of a release.
type pruner struct {
	*planning
	unlistedGroups []string // groups that the server can't list and that stay: nothing is deleted then
}

// An orphan is an object that a revision had and the chart no longer has.
type orphan struct {
	id           kube.ID
	mapping      kube.Mapping
	lastDeclared declaredObject // zero if the object is only known from Request.Revisit
	kept         bool           // an earlier release has kept it
	fromHook     bool           // a hook had it
	kindUnlisted bool           // the server can't say where its kind is served
}

// ProtectedKinds are the kinds that are kept when the chart drops them, unless
// Options.PruneKinds names them: deleting them loses data that a chart can't restore.
func ProtectedKinds() []string {
	var out []string
	for gk := range protectedKinds {
		out = append(out, gk.Kind)
	}
	slices.Sort(out)
	return out
}

var protectedKinds = map[schema.GroupKind]bool{
	kube.CRDKind:                    true,
	kube.NamespaceKind:              true,
	{Kind: "PersistentVolume"}:      true,
	{Kind: "PersistentVolumeClaim"}: true,
}

// decideOrphans decides about everything earlier revisions may have left.
func (p *pruner) decideOrphans(ctx context.Context) ([]Change, error) {
	list, err := p.orphans(ctx)
	if err != nil {
		return nil, err
	}
	seen, err := p.observeOrphans(ctx, list)
	if err != nil {
		return nil, err
	}
	p.unlistedGroups = p.listedByOthers(list, seen)
	uids := p.liveUIDs()
	var out []Change
	var there []orphan
	for i, o := range list {
		s := seen[i]
		switch {
		case s.forbidden:
			out, there = append(out, p.keepUnreadable(o)), append(there, o)
		case s.meta == nil || uids[s.meta.UID]:
			// Gone, or the same object by another name of its API group.
		default:
			out, there = append(out, p.decideOrphan(o, s.meta)), append(there, o)
		}
	}
	if out, err = p.inDeletionOrder(ctx, out, there); err != nil {
		return nil, err
	}
	return out, p.a.forEach(ctx, len(out), func(i int) error {
		c := &out[i]
		if c.execution == nil {
			return nil
		}
		verb := "delete"
		if c.Action == GiveBack {
			verb = "patch"
		}
		return p.permissions.check(ctx, c, verb, c.execution.orphan.mapping)
	})
}

// keepUnreadable keeps what can't be looked at.
func (p *pruner) keepUnreadable(o orphan) Change {
	c := Change{ID: o.id, Source: o.lastDeclared.source, Action: Keep, RevisitNextRelease: true, Provenance: p.history.provenance[o.id]}
	c.Reason = "there is no permission to read it, so its owner is unknown"
	if o.kindUnlisted {
		c.Reason = "the API server can't list " + strings.Join(p.resolver.unavailable, ", ") + ", so it can't be checked"
	}
	return c
}

// orphans returns the objects that revisions had or an earlier release kept, and that the
// chart doesn't have.
func (p *pruner) orphans(ctx context.Context) ([]orphan, error) {
	hooks := p.hooksOfChart(ctx)
	var out []orphan
	add := func(c orphan) error {
		mapping, err := p.a.cluster.Mapping(ctx, c.id.GroupKind().WithVersion(""), true)
		var unknown *kube.NoKindMatchError
		switch {
		case errors.As(err, &unknown):
			return nil // the kind is gone, and its objects with it
		case err != nil && p.resolver.isUnavailable(c.id.Group):
			c.kindUnlisted = true
		case err != nil:
			return &ObjectError{ID: c.id, Source: c.lastDeclared.source, Doing: "looking for objects of earlier revisions:", Err: err}
		case !mapping.Namespaced:
			c.id.Namespace = "" // was not known when its kind could not be looked up
		}
		c.mapping = mapping
		if p.targetsByID[c.id] == nil && !hooks[c.id] {
			out = append(out, c)
		}
		return nil
	}
	for _, id := range p.history.order {
		history := p.history.objects[id]
		if err := add(orphan{id: id, lastDeclared: history[len(history)-1]}); err != nil {
			return nil, err
		}
	}
	// Jobs and Pods of former hooks are deleted, their other objects stay: charts let
	// hooks create Secrets once, which later revisions read.
	for id, last := range p.history.hooks {
		if gk := id.GroupKind(); gk != kube.JobKind && gk != kube.PodKind || len(p.history.objects[id]) > 0 {
			continue
		}
		if err := add(orphan{id: id, lastDeclared: last, fromHook: true}); err != nil {
			return nil, err
		}
	}
	for _, key := range p.req.Revisit {
		id, ok := ParseKey(key)
		if !ok || len(p.history.objects[id]) > 0 {
			continue
		}
		if err := add(orphan{id: id, kept: true}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// hooksOfChart returns the objects of all hooks of the chart, also of those that don't
// run now. An object that has become such a hook isn't deleted: a first install would
// have it too.
func (p *pruner) hooksOfChart(ctx context.Context) map[kube.ID]bool {
	out := map[kube.ID]bool{}
	for _, m := range slices.Concat(p.req.Hooks, p.req.OtherHooks) {
		// indexRevisions reads the kinds first: an error of discovery has been reported there.
		_ = p.resolver.eachDeclaredObject(ctx, Revision{}, m, func(id kube.ID, _ declaredObject) { out[id] = true })
	}
	return out
}

// observeOrphans reads the metadata of orphans. Those that a list doesn't have may exist
// without Helm's label.
func (p *pruner) observeOrphans(ctx context.Context, list []orphan) ([]observation, error) {
	out := make([]observation, len(list))
	var open []int
	var lookups []lookup
	for i, o := range list {
		if o.kindUnlisted {
			out[i].forbidden = true
			continue
		}
		open, lookups = append(open, i), append(lookups, lookup{in: o.collection(), name: o.id.Name})
	}
	listed := func(n int, meta *metav1.PartialObjectMetadata, _ bool) bool {
		out[open[n]].meta = meta
		return meta != nil
	}
	return out, p.observer.listOrGet(ctx, lookups, listed, func(n int) (err error) {
		o := list[open[n]]
		out[open[n]], err = p.observer.observeMeta(ctx, o.mapping, o.id, o.lastDeclared.source)
		return err
	})
}

func (o orphan) collection() collection {
	return collection{mapping: o.mapping, namespace: o.id.Namespace}
}

// listedByOthers returns the groups that can't be listed, without those whose APIService
// is removed with this release: the chart has been rendered for a cluster without them.
func (p *pruner) listedByOthers(list []orphan, seen []observation) []string {
	leaving := map[string]bool{}
	for i, c := range list {
		if c.id.Group != "apiregistration.k8s.io" || c.id.Kind != "APIService" || seen[i].meta == nil {
			continue
		}
		live := metaOnly(seen[i].meta, c.mapping)
		leaving[c.id.Name] = provenance.OwnerOf(live) == p.a.owner && !keeps(live.GetAnnotations()) && !keeps(c.annotations())
	}
	return slices.DeleteFunc(slices.Clone(p.resolver.unavailable), func(gv string) bool {
		group, version, _ := strings.Cut(gv, "/")
		return leaving[version+"."+group]
	})
}

// liveUIDs returns the UIDs of the live objects that the chart still has.
func (p *pruner) liveUIDs() map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, t := range p.targetsByID {
		if t.decided != nil && t.decided.Live != nil {
			out[t.decided.Live.GetUID()] = true
		}
	}
	return out
}

// decideOrphan decides whether the live object of an orphan may be deleted.
func (p *pruner) decideOrphan(o orphan, meta *metav1.PartialObjectMetadata) Change {
	c := Change{ID: o.id, Source: o.lastDeclared.source, Action: Keep, Live: metaOnly(meta, o.mapping)}
	owner := provenance.OwnerOf(c.Live)
	uninstall := p.req.Uninstall
	if p.decideAdoptedOrphan(o, meta, &c) {
		return c
	}
	if remadeByAggregator(o, meta) {
		owner = p.a.owner // the controller has recreated our object
	}
	switch controller := metav1.GetControllerOf(meta); {
	case owner == (Owner{}) && o.fromHook:
		c.Reason = "a hook created it before deployer was used, and no release owns it"
	case owner == (Owner{}):
		c.Reason = "no longer belongs to a release"
	case owner != p.a.owner:
		c.Reason = "belongs to release " + owner.String() + " now"
	case keeps(meta.Annotations), keeps(o.annotations()):
		c.Reason = KeepAnnotation + ": keep"
	case hasUnknownPolicy(meta.Annotations), hasUnknownPolicy(o.annotations()):
		c.Reason = KeepAnnotation + " has an unknown value: not deleted"
	case o.id.IsNamespace() && o.id.Name == p.a.owner.Namespace:
		c.Reason = "it holds the release records"
	case protectedKinds[o.id.GroupKind()] && uninstall && o.kept:
		c.Reason = "was kept when the chart dropped it"
	case protectedKinds[o.id.GroupKind()] && !slices.Contains(p.a.opts.PruneKinds, o.id.Kind):
		c.Reason, c.RevisitNextRelease = "objects of this kind are kept unless --prune-kind names the kind", true
		if p.req.Undo {
			c.Reason = "objects of this kind are kept when a failed run is rolled back: delete it yourself if it isn't needed"
		}
	case controller != nil:
		c.Reason, c.RevisitNextRelease = fmt.Sprintf("is controlled by %s/%s", controller.Kind, controller.Name), true
	case len(p.unlistedGroups) > 0 && !uninstall && !p.a.opts.PartialDiscovery:
		c.Reason = "the API server can't list " + strings.Join(p.unlistedGroups, ", ") +
			", so the chart may have rendered less than it should; to delete it anyway: --allow-partial-discovery"
		c.RevisitNextRelease = true
	default:
		c.Action = Delete
		c.Reason = p.whyDelete(o)
		if meta.DeletionTimestamp == nil {
			c.execution = p.executionOf(o, write{
				verb: deleteObject, propagation: p.a.opts.Propagation,
				precondition: precondition{uid: meta.UID, resourceVersion: meta.ResourceVersion},
			})
		}
	}
	return c
}

// redecide decides again about an orphan that has changed since it was decided.
func (p *pruner) redecide(ctx context.Context, c Change) (Change, error) {
	o := *c.execution.orphan
	meta, err := p.a.getMeta(ctx, o.mapping, c.ID)
	if err != nil {
		return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: "reading", Err: err}
	}
	if meta == nil {
		c.execution = nil // gone
		return c, nil
	}
	return p.decideOrphan(o, meta), nil
}

func (o orphan) annotations() map[string]string {
	if o.lastDeclared.obj == nil {
		return nil
	}
	return o.lastDeclared.obj.GetAnnotations()
}

func (p *pruner) whyDelete(o orphan) string {
	switch {
	case p.req.Uninstall:
		return "the release is uninstalled"
	case o.kept:
		return "kept by an earlier revision for a reason that no longer applies"
	case o.fromHook:
		return fmt.Sprintf("left by a hook of revision %d that the chart no longer has", o.lastDeclared.revision)
	case o.lastDeclared.status == "deployed" || o.lastDeclared.status == "superseded":
		return "removed from the chart"
	}
	return fmt.Sprintf("left by %s revision %d", o.lastDeclared.status, o.lastDeclared.revision)
}

// aggregator is the controller that fills aggregated ClusterRoles, by server-side
// apply. k8s.io/kubernetes/pkg/controller/clusterroleaggregation
const aggregator = "clusterrole-aggregation-controller"

// remadeByAggregator reports whether an aggregated ClusterRole has only been recreated by
// its controller after it was deleted.
func remadeByAggregator(o orphan, meta *metav1.PartialObjectMetadata) bool {
	return ordering.IsAggregated(o.lastDeclared.obj) && len(meta.ManagedFields) > 0 &&
		!slices.ContainsFunc(meta.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager != aggregator })
}
