package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"

	"deployer/apply/builtin"
	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A planning decides about the objects of one release: once for the plan, and
// again about single objects while it is carried out. Its parts know each other by it.
type planning struct {
	a             *Applier
	req           Request
	history       *releaseHistory
	older         memo[struct{}, *releaseHistory] // of the revisions before those
	crds          []*target                       // of crds/
	mains         []*target                       // of the templates
	hooks         []*target                       // that are still to run
	targetsByID   map[kube.ID]*target             // mains
	resolver      *resolver
	definitions   *definitions
	schemas       *schemas
	prerequisites *prerequisites // what decisions wait for
	finder        *finder
	observer      *observer
	claims        decide.Claims
	autoscalers   *autoscalers
	pruner        *pruner
	permissions   *permissions
	warnings      *warnings
	rejected      []Rejection         // what can't be applied as the chart has it
	settled       map[kube.ID]*Change // what this run has carried out, when a plan is made again; else nil
	ours          map[kube.ID]bool    // what the plan had as the release's that is made again
	letGoBy       func() time.Time    // until when finalizers of others are waited for: soon after the first call
	changedQuotas map[string]bool     // the namespaces in which the run changes a ResourceQuota
	changesJudges bool                // the run changes policies or webhooks
	inspects      bool                // nothing is going to be carried out: what is refused is wanted, too
}

// Plan decides what to change. It reads the cluster and makes dry runs; it changes
// nothing. The applier remembers what it takes to decide again while the plan is carried out. The error is a *RejectedError that lists all objects that can't be applied as
// the chart has them.
func (a *Applier) Plan(ctx context.Context, req Request) (*Plan, error) {
	return a.makePlan(ctx, req, nil, nil)
}

// makePlan is Plan of what isn't settled. ours are the objects that are known to be the release's.
func (a *Applier) makePlan(ctx context.Context, req Request, settled map[kube.ID]*Change, ours map[kube.ID]bool) (*Plan, error) {
	p, err := a.begin(ctx, req, settled)
	if err != nil {
		return nil, err
	}
	p.ours = ours
	if err := p.decideCRDs(ctx); err != nil {
		return nil, err
	}
	if err := p.resolveTemplates(ctx, true); err != nil {
		return nil, err
	}
	order, err := p.order(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.decideTemplates(ctx); err != nil {
		return nil, err
	}
	orphans, err := p.pruner.decideOrphans(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.gate(ctx, order, slices.Concat(p.crds, p.mains, p.hooks), orphans); err != nil {
		return nil, err
	}
	if len(p.rejected) > 0 {
		return nil, &RejectedError{Rejections: sorted(p.rejected), HooksFirst: len(p.prerequisites.hooks) > 0}
	}
	if err := order.takeAccess(ctx, orphans); err != nil {
		return nil, err
	}
	order.tightenLater(orphans)
	plan := &Plan{CRDs: changesOf(p.crds), Waves: order.waves(), Hooks: changesOf(p.hooks)}
	if err := p.pruner.placeOrphans(ctx, plan, orphans); err != nil {
		return nil, err
	}
	plan.Warnings = p.warnings.sorted()
	a.remember(p, plan)
	return plan, nil
}

// decideCRDs decides about crds/.
func (p *planning) decideCRDs(ctx context.Context) error {
	if err := p.prefetch(ctx); err != nil {
		return err
	}
	err := p.decideAll(ctx, p.crds)
	p.definitions.dropUnused(p.crds)
	return err
}

// decideTemplates decides about the objects of the templates and the hooks. What becomes of CRDs and Namespaces determines
// which of the others the server can be asked about.
func (p *planning) decideTemplates(ctx context.Context) error {
	for _, entry := range p.claims.UnusedAdoptions(slices.Collect(maps.Keys(p.targetsByID))) {
		p.warnings.add(kube.ID{}, "", "--adopt %s has no effect: the chart has no object of that kind and name (write kind/name or kind/namespace/name)", entry)
	}
	p.expectFrom(p.crds)
	isPrerequisite := func(t *target) bool { return t.id.IsCRD() || t.id.IsNamespace() }
	others := slices.DeleteFunc(slices.Clone(p.mains), isPrerequisite)
	first := slices.DeleteFunc(slices.Clone(p.mains), func(t *target) bool { return !isPrerequisite(t) })
	for _, targets := range [][]*target{first, others} {
		if err := p.decideAll(ctx, targets); err != nil {
			return err
		}
		p.expectFrom(targets)
	}
	return p.decideEach(ctx, p.hooks, func(ctx context.Context, t *target) (Change, error) { return p.decide(ctx, t, observation{}) })
}

// expectFrom notes which definitions and Namespaces of targets others may have to wait for. If a definition gets another
// converter, custom resources that nobody converts now wait for it.
func (p *planning) expectFrom(targets []*target) {
	targets = p.unsettled(targets)
	p.prerequisites.expectFrom(targets)
	for _, crd := range targets {
		c := crd.decided
		if !crd.id.IsCRD() || c == nil || c.Action != decide.Update || c.Live == nil {
			continue
		}
		was, isConverted, _ := unstructured.NestedMap(c.Live.Object, "spec", "conversion", "webhook")
		willBe, _, _ := unstructured.NestedMap(c.willBe().Object, "spec", "conversion", "webhook")
		for _, t := range p.mains {
			if isConverted && t.definition() == crd.id && !fields.Equal(was, willBe) {
				t.waits.converter = append(slices.Clone(t.waits.converter), crd.id)
			}
		}
	}
}

// remember keeps what it takes to decide again while the plan is carried out.
func (a *Applier) remember(p *planning, plan *Plan) {
	for _, t := range slices.Concat(p.crds, p.mains, p.hooks) {
		t.decided = nil // the plan holds it now and drops it when it is carried out
	}
	p.warnings.reportLater(a.opts.Warn)
	p.changedQuotas, p.changesJudges = map[string]bool{}, false
	note := func(c Change) {
		switch {
		case c.Action == decide.Unchanged || c.Action == decide.Keep:
		case c.isAdmission():
			p.changesJudges = true
		case c.ID.Group == "" && c.ID.Kind == "ResourceQuota":
			p.changedQuotas[c.ID.Namespace] = true
		}
	}
	a.plan, a.planning = plan, nil // of thousands of objects it takes megabytes
	for _, c := range slices.Concat(append(plan.lists(), plan.Hooks)...) {
		if c.MayWrite() {
			a.planning = p
			note(c)
		}
	}
	for _, c := range p.settled {
		note(*c)
	}
}

// target returns the object of the chart that a change is about; nil for what the chart no longer has.
func (p *planning) target(id kube.ID) *target {
	if t := p.targetsByID[id]; t != nil {
		return t
	}
	if i := slices.IndexFunc(p.crds, func(t *target) bool { return t.id == id }); i >= 0 {
		return p.crds[i]
	}
	return nil
}

// prepare resolves the objects of a request.
func (a *Applier) prepare(ctx context.Context, req Request) (*planning, error) {
	p, err := a.begin(ctx, req, nil)
	if err != nil {
		return nil, err
	}
	return p, p.resolveTemplates(ctx, false)
}

// begin starts a planning and resolves crds/, on which all other decisions depend.
func (a *Applier) begin(ctx context.Context, req Request, settled map[kube.ID]*Change) (*planning, error) {
	server, err := a.cluster.ServerInfo(ctx)
	if err != nil {
		return nil, err
	}
	applied := req.CRDs // of crds/
	if !a.opts.CRDs.Applies() {
		applied = nil
	}
	p := &planning{
		a:             a,
		req:           req,
		targetsByID:   map[kube.ID]*target{},
		prerequisites: &prerequisites{table: map[kube.ID]prerequisite{}},
		warnings:      &warnings{},
		settled:       settled,
		letGoBy:       sync.OnceValue(func() time.Time { return time.Now().Add(finalizerPatience) }),
	}
	if !p.isAgain() {
		p.prerequisites.expectNew(namespaceIDs(req.NewNamespaces)...)
		for _, m := range req.Hooks[:req.PreHooks] {
			p.prerequisites.hooks = append(p.prerequisites.hooks, kube.IDOf(m.Object))
		}
		p.prerequisites.expect(p.prerequisites.hooks...)
	}
	p.resolver, p.definitions = &resolver{p: p, unlistedGroupVersions: server.Unavailable}, newDefinitions(p, slices.Concat(applied, req.Objects))
	p.finder, p.observer, p.autoscalers, p.pruner = &finder{a: a}, &observer{p: p}, &autoscalers{p: p}, &pruner{planning: p}
	p.permissions = &permissions{a: a, warnings: p.warnings}
	p.schemas = &schemas{p: p, released: map[schema.GroupVersionKind]func() managedfields.TypeConverter{}, distrusted: builtin.GroupVersionsUnlike(server.Version)}
	if p.history, err = p.resolver.indexRevisions(ctx, req.Revisions); err != nil {
		return nil, err
	}
	p.claims = decide.Claims{
		Owner: a.owner, Adopt: a.opts.Adopt, TakeOwnership: a.opts.TakeOwnership, TakeOwnershipFrom: a.opts.TakeOwnershipFrom,
		BackTo: req.BackTo, Undo: req.Undo, ReplaceInCRDs: a.opts.CRDs.removesOthers(),
	}
	p.crds, err = p.resolver.resolve(ctx, applied, true)
	return p, err
}

// resolveTemplates resolves the objects and hooks of the release; ahead says that their turn is still to come.
func (p *planning) resolveTemplates(ctx context.Context, ahead bool) error {
	p.schemas.addReleased(p.definitions.unsettled())
	var first []*target // the hooks that run before the objects are changed
	var ofMains, ofFirst, ofHooks error
	p.mains, ofMains = p.resolver.resolve(ctx, p.req.Objects, false)
	if !p.isAgain() { // they have run
		first, ofFirst = p.resolver.resolve(ctx, p.req.Hooks[:p.req.PreHooks], false)
	}
	p.resolver.objectsComeFirst = ahead
	p.hooks, ofHooks = p.resolver.resolve(ctx, p.req.Hooks[p.req.PreHooks:], false)
	for _, t := range p.hooks {
		t.isPostHook = true
	}
	p.hooks = append(first, p.hooks...)
	mayMendWebhooks := len(p.prerequisites.hooks) > 0
	for id := range p.history.objects {
		mayMendWebhooks = mayMendWebhooks || id.Group == admissionGroup
	}
	for _, t := range p.mains {
		p.targetsByID[t.id] = t
		mayMendWebhooks = mayMendWebhooks || t.id.Group == admissionGroup
	}
	for _, t := range p.mains {
		t.waits.webhook, t.waits.hooks = mayMendWebhooks, p.prerequisites.hooks
	}
	for _, t := range p.hooks {
		t.isHook, t.waits.webhook = true, mayMendWebhooks
		// A chart may have an object twice: for its pre-hooks, and for the release.
		if object := p.targetsByID[t.id]; object != nil && !t.isPostHook && !t.id.IsCRD() && !t.id.IsNamespace() {
			p.prerequisites.expect(t.id)
			object.waits.deferral = &Deferral{Reason: "a hook of the same name runs first", Until: []kube.ID{t.id}}
		}
	}
	p.resolver.rejectDuplicates(slices.Concat(p.crds, p.mains, p.hooks))
	return errors.Join(ofMains, ofFirst, ofHooks)
}

func sorted(list []Rejection) []Rejection {
	slices.SortStableFunc(list, func(a, b Rejection) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return list
}

// decideAll decides about each target that isn't settled, in as few requests as it takes.
func (p *planning) decideAll(ctx context.Context, targets []*target) error {
	targets = p.unsettled(targets)
	if err := p.definitions.readGenerations(ctx, targets); err != nil {
		return err
	}
	observed, err := p.observer.observe(ctx, targets)
	if err != nil {
		return err
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
		return err
	}
	for id, s := range observed {
		s.meta = nil // has been compared
		observed[id] = s
	}
	if err := p.decideEach(ctx, open, func(ctx context.Context, t *target) (Change, error) { return p.decide(ctx, t, observed[t.id]) }); err != nil {
		return err
	}
	for _, t := range open {
		if t.id.IsCRD() || t.id.IsNamespace() { // what others are decided by; for these the gate does it
			if _, err := p.stayBehind(ctx, t, t.rejectedOrDenied()); err != nil {
				return err
			}
		}
	}
	return nil
}

// decideEach decides about targets side by side. Those that can't be decided are rejected.
func (p *planning) decideEach(ctx context.Context, targets []*target, decideOne func(context.Context, *target) (Change, error)) error {
	return p.a.forEach(ctx, len(targets), func(i int) error {
		c, err := decideOne(ctx, targets[i])
		if rejected, ok := errors.AsType[*Rejection](err); ok {
			targets[i].rejected = rejected
			return nil
		}
		c.Desired = p.a.interner.Intern(c.Desired)
		targets[i].setDecided(c)
		return err
	})
}

// unchangedByFingerprint is the change of an object whose fingerprint proves that it needs none.
func (p *planning) unchangedByFingerprint(t *target, meta *metav1.PartialObjectMetadata) *Change {
	key := Key(t.id)
	c := p.newChange(t, decide.Unchanged)
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
func (p *planning) prefetch(ctx context.Context) error {
	targets, custom := p.unsettled(p.crds), []*target(nil)
	for _, m := range p.req.Objects {
		t, ok := p.resolver.targetOfServedKind(ctx, m.Object, m.Source)
		switch {
		case !ok, p.settled[t.id] != nil:
		case scheme.Scheme.Recognizes(t.mapping.GVK) || t.id.IsCRD():
			targets = append(targets, t)
		case slices.ContainsFunc(p.crds, func(crd *target) bool { return crd.id == t.definition() }):
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

// gate lets pass what may be different when the object's turn comes: what is refused because of how something is that the
// release changes or drops first, what hooks may mend that run first, and, unless the gate is strict, what the server
// rejects, with a warning. Such objects are decided about again. Other rejections, such as of ownership, remain.
func (p *planning) gate(ctx context.Context, order *releaseOrder, targets []*target, orphans []Change) error {
	admission := sync.OnceValue(func() *admission { return p.newAdmission(orphans) })
	for i, t := range targets {
		err := t.rejectedOrDenied()
		if err == nil || p.settled[t.id] != nil {
			continue
		}
		var refusal *verify.ServerError
		isFirst := i == 0 || t.isHook && !targets[i-1].isHook // nothing runs before the first hook
		switch until := admission().explain(ctx, t, err); {
		case len(until) > 0 && order.putAfter(t, until):
			p.letPass(t, p.prerequisites.untilAdmitted(until, err))
		case t.rejected == nil: // denied: see CheckPermissions
		case p.mayBeMendedByHooks(t, err) && !(t.isHook && isFirst):
			p.letPass(t, p.prerequisites.untilHooksRan(err.Error()))
		default:
			stays, errOfStaying := p.stayBehind(ctx, t, err)
			switch {
			case errOfStaying != nil:
				return errOfStaying
			case stays:
			case p.a.opts.Gate != GateStrict && errors.As(err, &refusal):
				what := "this"
				if t.isHook {
					what = "this hook"
				}
				p.warnings.add(t.id, t.source, "the server would reject %s: %s", what, err)
				p.letPass(t, &Deferral{Reason: err.Error()})
			default:
				p.rejected = append(p.rejected, *t.reject(err))
			}
		}
	}
	return nil
}

// letPass defers the decision about a target that was rejected.
func (p *planning) letPass(t *target, d *Deferral) {
	if t.isHook { // its own turn tells
		c := p.newChange(t, decide.Create)
		c.Unverified = d.Reason
		t.setDecided(c)
		return
	}
	c := p.newChange(t, decide.Update)
	switch {
	case t.rejected == nil: // denied
		c = *t.decided
		c.denied = nil
	case t.rejected.ofCreation || verify.Read(t.rejected).Kind == verify.Missing:
		c.Action = decide.Create
	}
	t.waits.deferral = d
	t.setDecided(c.deferred(d))
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
