package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"

	"deployer/apply/builtin"
	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A planning decides about the objects of one release: once for the plan, and
// again about single objects while it is carried out.
type planning struct {
	a             *Applier
	req           Request
	history       *releaseHistory
	targetsByID   map[kube.ID]*target // main objects
	resolver      *resolver
	definitions   *definitions
	schemas       *schemas
	prerequisites *prerequisites // what decisions wait for
	observer      *observer
	claims        decide.Claims
	pruning       decide.Pruning // set when orphans are decided about
	predictor     *predictor
	autoscalers   *autoscalers
	exclusive     memo[kube.ID, *unstructured.Unstructured] // volume claims that others may have made
	permissions   *permissions
	warnings      *warnings
}

// Plan decides what to change. It reads the cluster and makes dry runs; it changes
// nothing. The error is a *RejectedError that lists all objects that can't be applied as
// the chart has them.
func (a *Applier) Plan(ctx context.Context, req Request) (*Plan, error) {
	p, crds, err := a.begin(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := p.prefetch(ctx, crds); err != nil {
		return nil, err
	}
	rejections, err := p.decideAll(ctx, crds)
	if err != nil {
		return nil, err
	}
	p.definitions.dropUnused(crds)
	mains, hooks, err := p.resolveTemplates(ctx, crds)
	if err != nil {
		return nil, err
	}
	order, err := p.order(ctx, crds, mains, hooks)
	if err != nil {
		return nil, err
	}
	for _, entry := range p.claims.UnusedAdoptions(slices.Collect(maps.Keys(p.targetsByID))) {
		p.warnings.add(kube.ID{}, "", "--adopt %s has no effect: the chart has no object of that kind and name (write kind/name or kind/namespace/name)", entry)
	}
	rejections = slices.Concat(rejections, p.resolver.rejected, order.rejected)
	p.prerequisites.expectFrom(crds)
	// What becomes of CRDs and Namespaces determines which of the others the server can be asked about.
	isPrerequisite := func(t *target) bool { return t.id.IsCRD() || t.id.IsNamespace() }
	others := slices.DeleteFunc(slices.Clone(mains), isPrerequisite)
	first := slices.DeleteFunc(slices.Clone(mains), func(t *target) bool { return !isPrerequisite(t) })
	for _, targets := range [][]*target{first, others} {
		rejected, err := p.decideAll(ctx, targets)
		if err != nil {
			return nil, err
		}
		rejections = append(rejections, rejected...)
		p.prerequisites.expectFrom(targets)
	}
	rejected, err := p.decideEach(ctx, hooks, p.decideHook)
	if err != nil {
		return nil, err
	}
	rejections = append(rejections, p.gate(hooks, rejected)...)
	if len(rejections) > 0 {
		return nil, &RejectedError{Rejections: sorted(rejections)}
	}
	plan := &Plan{CRDs: changesOf(crds), Waves: order.waves(), Hooks: changesOf(hooks)}
	orphans, list, err := p.decideOrphans(ctx)
	if err == nil {
		err = p.placeOrphans(ctx, plan, orphans, list)
	}
	if err != nil {
		return nil, err
	}
	plan.Warnings = p.warnings.sorted()
	for _, t := range slices.Concat(crds, mains, hooks) {
		t.decided = nil // the plan holds it now and drops it when it is carried out
	}
	p.warnings.reportLater(a.opts.Warn)
	return plan, nil
}

// prepare resolves the objects of a request. Those that can't be resolved are in
// resolver.rejected.
func (a *Applier) prepare(ctx context.Context, req Request) (p *planning, crds, mains, hooks []*target, err error) {
	p, crds, err = a.begin(ctx, req)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	mains, hooks, err = p.resolveTemplates(ctx, crds)
	return p, crds, mains, hooks, err
}

// begin starts a planning and resolves crds/, on which all other decisions depend.
func (a *Applier) begin(ctx context.Context, req Request) (p *planning, crds []*target, err error) {
	server, err := a.cluster.ServerInfo(ctx)
	if err != nil {
		return nil, nil, err
	}
	applied := req.CRDs // of crds/
	if a.opts.CRDs == SkipCRDs {
		applied = nil
	}
	prerequisites, warned := &prerequisites{}, &warnings{}
	prerequisites.expectNew(namespaceIDs(req.NewNamespaces)...)
	definitions := newDefinitions(a, prerequisites, slices.Concat(applied, req.Objects))
	p = &planning{
		a:             a,
		req:           req,
		targetsByID:   map[kube.ID]*target{},
		resolver:      &resolver{a: a, definitions: definitions, unlistedGroupVersions: server.Unavailable},
		definitions:   definitions,
		schemas:       &schemas{a: a, definitions: definitions, released: map[schema.GroupVersionKind]func() managedfields.TypeConverter{}, distrusted: builtin.GroupVersionsUnlike(server.Version)},
		prerequisites: prerequisites,
		observer:      &observer{a: a, prerequisites: prerequisites, warnings: warned, fingerprints: req.Fingerprints},
		permissions:   &permissions{a: a, warnings: warned},
		warnings:      warned,
	}
	if p.history, err = p.resolver.indexRevisions(ctx, req.Revisions); err != nil {
		return nil, nil, err
	}
	p.claims = decide.Claims{
		Owner: a.owner, Adopt: a.opts.Adopt, TakeOwnership: a.opts.TakeOwnership, TakeOwnershipFrom: a.opts.TakeOwnershipFrom,
		BackTo: req.BackTo, Undo: req.Undo,
	}
	p.predictor = &predictor{a: a, schemas: p.schemas, history: p.history, warnings: warned}
	p.autoscalers = &autoscalers{a: a, history: p.history, definitions: definitions, targetsByID: p.targetsByID, warnings: warned}
	crds, err = p.resolver.resolve(ctx, applied, true)
	return p, crds, err
}

// resolveTemplates resolves the objects and hooks of the release.
func (p *planning) resolveTemplates(ctx context.Context, crds []*target) (mains, hooks []*target, err error) {
	p.schemas.addReleased(p.definitions.released)
	mains, err1 := p.resolver.resolve(ctx, p.req.Objects, false)
	hooks, err2 := p.resolver.resolve(ctx, p.req.Hooks, false)
	for _, t := range mains {
		p.targetsByID[t.id] = t
	}
	for _, t := range hooks {
		t.isHook = true
	}
	p.resolver.rejected = append(p.resolver.rejected, duplicateObjects(slices.Concat(crds, mains, hooks))...)
	return mains, hooks, errors.Join(err1, err2)
}

func sorted(list []Rejection) []Rejection {
	slices.SortStableFunc(list, func(a, b Rejection) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return list
}

// decideAll decides about each target, in as few requests as it takes.
func (p *planning) decideAll(ctx context.Context, targets []*target) ([]Rejection, error) {
	if err := p.definitions.readGenerations(ctx, targets); err != nil {
		return nil, err
	}
	observed, err := p.observer.observe(ctx, targets)
	if err != nil {
		return nil, err
	}
	p.definitions.noteGenerations(targets, observed)
	var open []*target
	for _, t := range targets {
		s := observed[t.id]
		if s.meta != nil && !p.prerequisites.kindChanges(t) && p.matchesFingerprint(t, s.meta) && !p.claims.AdoptedSince(p.existing(t, s.meta)) {
			t.decided = p.unchangedByFingerprint(t, s.meta)
			delete(observed, t.id) // thousands take megabytes
			continue
		}
		open = append(open, t)
	}
	if err := p.observer.readAll(ctx, targets, open, observed); err != nil {
		return nil, err
	}
	for id, s := range observed {
		s.meta = nil // has been compared
		observed[id] = s
	}
	rejections, err := p.decideEach(ctx, open, func(ctx context.Context, t *target) (Change, error) { return p.decide(ctx, t, observed[t.id]) })
	if err != nil {
		return nil, err
	}
	for i, t := range open {
		if stays, err := p.stayBehind(ctx, t, rejections[i].Err); err != nil {
			return nil, err
		} else if stays {
			rejections[i] = Rejection{}
		}
	}
	return p.gate(open, rejections), nil
}

// decideEach decides about targets side by side. It returns the rejections by index; zero for a
// target about which a decision was made.
func (p *planning) decideEach(ctx context.Context, targets []*target, decideOne func(context.Context, *target) (Change, error)) ([]Rejection, error) {
	rejections := make([]Rejection, len(targets))
	return rejections, p.a.forEach(ctx, len(targets), func(i int) error {
		c, err := decideOne(ctx, targets[i])
		if rejected, ok := errors.AsType[*Rejection](err); ok {
			rejections[i] = *rejected
			return nil
		}
		c.Desired = p.a.interner.Intern(c.Desired)
		targets[i].decided = &c
		return err
	})
}

// unchangedByFingerprint is the change of an object whose fingerprint proves that it needs none.
func (p *planning) unchangedByFingerprint(t *target, meta *metav1.PartialObjectMetadata) *Change {
	key := Key(t.id)
	c := p.newChange(t, Unchanged)
	c.Live, c.Provenance, c.fingerprint = p.a.interner.Intern(metaOnly(meta, t.mapping)), p.history.provenanceOf(t, meta, p.a.owner, false), p.req.Fingerprints[key]
	if kind, ok, _ := unstructured.NestedString(t.obj.Object, "spec", "type"); ok && t.id.GroupKind() == kube.ServiceKind {
		c.Live.Object["spec"] = map[string]any{"type": kind} // which tells whether an address is waited for
	}
	if contribution, ok := p.req.Contributions[key]; ok && t.fromCRDs {
		c.Contribution = &contribution // nobody has written it since
	}
	return &c
}

// prefetch observes crds/ and objects together, which would otherwise be observed one after the
// other. It leaves out objects whose kind a definition in crds/ may change.
func (p *planning) prefetch(ctx context.Context, crds []*target) error {
	targets, custom := slices.Clone(crds), []*target(nil)
	for _, m := range p.req.Objects {
		t, ok := p.resolver.targetOfServedKind(ctx, m.Object, m.Source)
		switch {
		case !ok:
		case scheme.Scheme.Recognizes(t.mapping.GVK) || t.id.IsCRD():
			targets = append(targets, t)
		case slices.ContainsFunc(crds, func(crd *target) bool { return crd.id == t.definition() }):
			// The definition is observed anyway.
		default:
			custom = append(custom, t)
		}
	}
	var asking errgroup.Group
	asking.Go(func() error { return p.observer.prefetch(ctx, targets) })
	asking.Go(func() error { return p.definitions.readGenerations(ctx, custom) })
	return asking.Wait()
}

// gate turns the server's rejections into warnings unless the gate is strict; such objects are
// tried when their turn comes. Other rejections, such as of ownership, remain.
func (p *planning) gate(targets []*target, rejections []Rejection) []Rejection {
	var out []Rejection
	for i, r := range rejections {
		var refusal *verify.ServerError
		switch {
		case r.Err == nil:
		case p.a.opts.Gate != GateStrict && errors.As(r.Err, &refusal):
			t, what, c := targets[i], "this", Change{}
			if t.isHook {
				what, c = "this hook", Change{ID: t.id, Source: t.source, Action: Create, Unverified: r.Err.Error()}
			} else {
				c = p.deferChange(t, p.newChange(t, Update), &Deferral{Reason: r.Err.Error()})
			}
			p.warnings.add(t.id, t.source, "the server would reject %s: %s", what, r.Err)
			t.decided = &c
		default:
			out = append(out, r)
		}
	}
	return out
}

func changesOf(targets []*target) []Change {
	out := make([]Change, 0, len(targets))
	for _, t := range targets {
		if t.decided != nil {
			out = append(out, *t.decided)
		}
	}
	return out
}

// metaOnly returns an object that has only metadata, without the large managedFields.
func metaOnly(meta *metav1.PartialObjectMetadata, m kube.Mapping) *unstructured.Unstructured {
	some := metav1.PartialObjectMetadata{ObjectMeta: meta.ObjectMeta}
	some.ManagedFields = nil
	content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&some) // which always succeeds for metadata
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(m.GVK)
	return out
}
