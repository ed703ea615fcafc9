package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// An orphan is an object that a revision had and the chart no longer has: how it is found, and how it is deleted.
type orphan struct {
	decide.Orphan // without what is read: Live and Provenance
	source        string
	mapping       kube.Mapping
	obstacle      obstacle
	found         *metav1.PartialObjectMetadata // until it is decided about; nil if it isn't there
	order         ordering.Deletion             // when its turn comes, and what has to be gone before, where it is deleted
	makesRoom     bool                          // an object of the chart waits until it is gone, with what depends on it
}

// An obstacle is why an object can't be looked at. The zero value is none.
type obstacle struct {
	reason      string
	missingVerb string // that the account may not use; empty when that isn't the reason
}

func newOrphan(id kube.ID, origin decide.Origin, last DeclaredObject) *orphan {
	return &orphan{Orphan: decide.Orphan{ID: id, Origin: origin, Declared: last.Object, Revision: last.Revision, Status: last.Status}, source: last.Source}
}

// A pruner decides what becomes of the orphans of a release, and when they go.
type pruner struct {
	*planning
	rules     decide.Pruning                            // set when orphans are decided about
	exclusive memo[kube.ID, *unstructured.Unstructured] // volume claims that others may have made
}

// decideOrphans decides about everything earlier revisions may have left.
func (p *pruner) decideOrphans(ctx context.Context) ([]Change, error) {
	list, err := p.orphans(ctx)
	if err != nil {
		return nil, err
	}
	if list, err = p.findGenerated(ctx, list); err != nil {
		return nil, err
	}
	if err := p.observeOrphans(ctx, list); err != nil {
		return nil, err
	}
	p.rules = decide.Pruning{Owner: p.a.owner, Uninstall: p.req.Uninstall, Undo: p.req.Undo, Kinds: p.a.opts.PruneKinds}
	if !p.req.Uninstall && !p.a.opts.PartialDiscovery {
		p.rules.UnlistedGroupVersions = p.blockingGroupVersions(list)
	}
	uids := p.liveUIDs()
	var out []Change
	for _, o := range list {
		switch {
		case o.Origin == decide.FromKeptHook && (o.found == nil || p.rules.LeftByHook(o.asFound())):
			// A template hasn't made it for this release, or that is unknown.
		case o.obstacle != (obstacle{}):
			out = append(out, p.keepUnreadable(o))
		case o.found == nil || uids[o.found.UID]:
			// Gone, or the same object by another name of its API group.
		default:
			out = append(out, p.decideOrphan(o))
		}
	}
	if err := p.protectContents(ctx, out); err != nil {
		return nil, err
	}
	return out, p.a.forEach(ctx, len(out), func(i int) error {
		c := &out[i]
		if c.Action == decide.GiveBack {
			if err := p.prepareGivingBack(ctx, c); err != nil {
				return err
			}
		}
		return p.permissions.check(ctx, c, c.orphan.mapping)
	})
}

// asFound is an orphan with what was read of it.
func (o *orphan) asFound() decide.Orphan {
	out := o.Orphan
	out.Live = o.found
	return out
}

// keepUnreadable keeps what can't be looked at. An uninstall needs to look at everything: its records
// are deleted, and with them what says that the object was the release's.
func (p *pruner) keepUnreadable(o *orphan) Change {
	c := Change{ID: o.ID, Source: o.source, Action: decide.Keep, Reason: o.obstacle.reason, RevisitNextRelease: true, Provenance: p.history.provenance[o.ID], orphan: o}
	if p.req.Uninstall {
		c.Reason += "; the release stays until it is uninstalled again when this can be read"
		if of := o.mapping.Resource; o.obstacle.missingVerb != "" && p.a.opts.Gate == GateStrict {
			c.deny(&verify.PermissionError{Verb: o.obstacle.missingVerb, Group: of.Group, Resource: of.Resource, Namespace: o.ID.Namespace})
		}
	}
	return c
}

// orphans returns the objects that revisions had or an earlier release kept, and that the
// chart doesn't have.
func (p *pruner) orphans(ctx context.Context) ([]*orphan, error) {
	skipped, err := p.besidesTemplates(ctx)
	if err != nil {
		return nil, err
	}
	var candidates []*orphan
	for _, id := range p.history.order {
		o := newOrphan(id, decide.FromTemplate, p.history.latestDeclared(id))
		o.OnRecord = p.history.isOnRecord(id)
		candidates = append(candidates, o)
	}
	// Jobs and Pods of former hooks are deleted, their other objects stay: charts let
	// hooks create Secrets once, which later revisions read. What a template made, and became a hook
	// that has never run since, is none of these.
	for id, last := range p.history.hooks {
		origin := decide.FromKeptHook
		if kube.RunsToEnd(id.GroupKind()) {
			origin = decide.FromHook
		}
		if len(p.history.objects[id]) == 0 && !(origin == decide.FromKeptHook && strings.HasSuffix(id.Name, allGenerated)) {
			candidates = append(candidates, newOrphan(id, origin, last))
		}
	}
	for _, key := range p.req.Revisit {
		if id, ok := ParseKey(key); ok && len(p.history.objects[id]) == 0 {
			candidates = append(candidates, newOrphan(id, decide.KeptEarlier, DeclaredObject{}))
		}
	}
	var out []*orphan
	for _, o := range candidates {
		mapping, isServed, err := p.a.stillServed(ctx, o.ID.GroupKind().WithVersion(""))
		switch {
		case err != nil && p.resolver.isUnlisted(o.ID.Group):
			o.obstacle.reason = "the API server can't list " + strings.Join(p.resolver.unlistedGroupVersions, ", ") + ", so it can't be checked"
		case err != nil:
			return nil, &ObjectError{ID: o.ID, Source: o.source, Doing: "looking for objects of earlier revisions:", Err: err}
		case !isServed:
			continue
		case !mapping.Namespaced:
			o.ID.Namespace = "" // was not known when its kind could not be looked up
		}
		o.mapping, o.OursBefore = mapping, p.ours[o.ID]
		if p.targetsByID[o.ID] == nil && !skipped[o.ID] {
			out = append(out, o)
			skipped[o.ID] = true // once, also if an earlier release has kept it
		}
	}
	return out, nil
}

// besidesTemplates returns the objects that the chart has outside of its templates: in crds/, also
// if those are skipped, and as hooks, also of those that don't run now. An object that was moved
// there isn't deleted: a first install would have it too.
func (p *pruner) besidesTemplates(ctx context.Context) (map[kube.ID]bool, error) {
	out := map[kube.ID]bool{}
	for _, m := range slices.Concat(p.req.CRDs, p.req.Hooks, p.req.OtherHooks) {
		if p.req.Uninstall && m.Object.GetName() == "" {
			continue // a hook that runs under a new name: what its earlier runs have made goes
		}
		if err := p.resolver.addDeclaredObject(ctx, Revision{}, m, func(id kube.ID, _ DeclaredObject) { out[id] = true }); err != nil {
			return nil, fmt.Errorf("looking up the kinds of %s: %w", m.Source, err)
		}
	}
	return out, nil
}

// observeOrphans reads the metadata of orphans that nothing keeps from that. Those that a list doesn't have may exist
// without Helm's label.
func (p *pruner) observeOrphans(ctx context.Context, list []*orphan) error {
	known := make([]sought, len(list))
	for i, o := range list {
		known[i] = sought{id: o.ID, source: o.source}
		if o.obstacle == (obstacle{}) {
			known[i].mapping = o.mapping
		}
	}
	observed, err := p.finder.find(ctx, known, false)
	for i, s := range observed {
		if list[i].found = s.meta; s.forbidden {
			list[i].obstacle = obstacle{"there is no permission to read it, so its owner is unknown", "get"}
		}
	}
	return err
}

// blockingGroupVersions returns the API groups and versions that can't be listed, without those whose APIService
// is removed with this release: the chart has been rendered for a cluster without them.
func (p *pruner) blockingGroupVersions(list []*orphan) []string {
	leaving := map[string]bool{}
	for _, o := range list {
		if live := o.found; live != nil && o.ID.GroupKind() == kube.APIServiceKind {
			leaving[o.ID.Name] = provenance.OwnerOf(live) == p.a.owner && !decide.IsKept(live.Annotations) && !decide.IsKept(o.DeclaredAnnotations())
		}
	}
	return slices.DeleteFunc(slices.Clone(p.resolver.unlistedGroupVersions), func(gv string) bool {
		group, version, _ := strings.Cut(gv, "/")
		return leaving[version+"."+group]
	})
}

// liveUIDs returns the UIDs of the live objects that the chart still has.
func (p *pruner) liveUIDs() map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, t := range p.targetsByID {
		if t.decided == nil {
			continue
		}
		if now := cmp.Or(t.decided.Applied, t.decided.Live); now != nil {
			out[now.GetUID()] = true
		}
	}
	return out
}

// decideOrphan decides whether the live object of an orphan may be deleted.
func (p *pruner) decideOrphan(o *orphan) Change {
	meta, found := o.found, o.asFound()
	o.found = nil // of thousands it takes megabytes
	found.Provenance, found.NeededBy = p.history.provenance[o.ID], p.neededBy(o.ID)
	d := p.rules.DecideOrphan(found)
	c := Change{ID: o.ID, Source: o.source, Action: d.Action, Reason: d.Reason, Live: metaOnly(meta, o.mapping), RevisitNextRelease: d.Revisit, orphan: o}
	if found.Provenance.Describes(meta) {
		c.Provenance = found.Provenance
	}
	switch {
	case d.Action == decide.GiveBack:
		c.writes, c.needs = []write{{verb: giveBackObject, precondition: precondition{uid: meta.UID}}}, []string{"patch"}
	case d.Action == decide.Delete && meta.DeletionTimestamp == nil:
		c.writes = []write{{
			verb: deleteObject, propagation: p.propagationOf(o),
			precondition: precondition{uid: meta.UID, resourceVersion: meta.ResourceVersion},
		}}
		c.needs = []string{"delete"}
	}
	return c
}

// propagationOf says what becomes of the dependents of an orphan, such as pods.
func (p *pruner) propagationOf(o *orphan) metav1.DeletionPropagation {
	if o.makesRoom && p.a.opts.Propagation != metav1.DeletePropagationOrphan {
		return metav1.DeletePropagationForeground
	}
	return p.a.opts.Propagation
}

// neededBy returns an object of the chart that is in a namespace, or of the kind of a definition; the zero ID for
// others and where there is none.
func (p *pruner) neededBy(id kube.ID) kube.ID {
	var found kube.ID
	if id.IsNamespace() || id.IsCRD() {
		for other, t := range p.targetsByID {
			if (namespaceID(other.Namespace) == id || t.definition() == id) && (found == (kube.ID{}) || other.String() < found.String()) {
				found = other
			}
		}
	}
	return found
}
