package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"deployer/apply/decide"
	"deployer/apply/definition"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A Deferral gives the reason why a change can't be decided yet, and the objects it waits
// for: its namespace, its CRD, the workloads behind its conversion webhook, or hooks. The change
// is decided again once all of them are present. Until then the server would answer by the
// old definition.
type Deferral struct {
	Reason string
	Until  []kube.ID // empty: until the change's own turn

	admission bool // the objects that it waits for may make the API server admit the object
}

// The reasons that don't name the object.
const (
	unconvertedKind = "its kind's conversion webhook doesn't answer yet; it comes with this release"
	unconvertedNow  = "its kind's conversion webhook doesn't answer; the release changes its CustomResourceDefinition, which names the webhook"
	unconvertedYet  = "hooks run first: its kind's conversion webhook doesn't answer"
	changingKind    = "its CustomResourceDefinition changes with this release"
)

// A waiting is what a target waits for, and what may be mended before its turn.
type waiting struct {
	deferral  *Deferral // what a decision has to wait for, or had to; nil when it needn't
	converter []kube.ID // objects of this release that convert its kind and aren't ready yet
	hooks     []kube.ID // that run before its turn: they may mend its converter, too
	webhook   bool      // one that doesn't answer may be mended before its turn
}

func (d *Deferral) awaitsAdmission() bool { return d != nil && d.admission }

func (d *Deferral) waitsFor(id kube.ID) bool { return d != nil && slices.Contains(d.Until, id) }

// untilAdmitted returns the deferral of what the server may admit when other objects of the release are written or deleted.
func (p *prerequisites) untilAdmitted(until []kube.ID, refusal error) *Deferral {
	p.note(until, func(o *prerequisite) { o.isExpected, o.isMissing, o.bySucceeding = true, true, true })
	names := make([]string, len(until))
	for i, id := range until {
		names[i] = id.String()
	}
	return &Deferral{Reason: fmt.Sprintf("checked again after %s: %s", strings.Join(names, ", "), refusal), Until: until, admission: true}
}

// carriedOut notes that a change was carried out.
func (p *prerequisites) carriedOut(id kube.ID) {
	if p.of(id).bySucceeding {
		p.markPresent(id)
	}
}

// with returns a deferral that also waits for another object. d may be nil.
func (d *Deferral) with(id kube.ID, reason string) *Deferral {
	switch {
	case d.waitsFor(id):
		return d
	case d == nil:
		return &Deferral{Reason: reason, Until: []kube.ID{id}}
	}
	return &Deferral{Reason: d.Reason + "; " + reason, Until: append(slices.Clone(d.Until), id)}
}

// prerequisites are the objects of a release that decisions about others wait for.
type prerequisites struct {
	mu    sync.Mutex
	table map[kube.ID]prerequisite
	hooks []kube.ID // that run before the first object is changed, and haven't run yet
}

// A prerequisite is what is known of one of them. The zero value is of an object that nobody waits for.
type prerequisite struct {
	isExpected   bool // even if it is present by now
	isMissing    bool // it isn't present yet
	isNew        bool // it didn't exist when the plan was made
	bySucceeding bool // it is there for others as soon as it is carried out
}

func (p *prerequisites) of(id kube.ID) prerequisite {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.table[id]
}

// note notes something of objects.
func (p *prerequisites) note(ids []kube.ID, what func(*prerequisite)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		known := p.table[id]
		what(&known)
		p.table[id] = known
	}
}

// expect notes that objects are still to come.
func (p *prerequisites) expect(ids ...kube.ID) {
	p.note(ids, func(o *prerequisite) { o.isExpected, o.isMissing = true, true })
}

// expectNew notes that objects are still to come and don't exist before that.
func (p *prerequisites) expectNew(ids ...kube.ID) {
	p.note(ids, func(o *prerequisite) { o.isExpected, o.isMissing, o.isNew = true, true, true })
}

// markPresent notes that objects are present.
func (p *prerequisites) markPresent(ids ...kube.ID) {
	p.note(ids, func(o *prerequisite) { o.isMissing = false })
}

// anyMissing reports whether any of the objects is expected and not yet present.
func (p *prerequisites) anyMissing(ids ...kube.ID) bool {
	return slices.ContainsFunc(ids, func(id kube.ID) bool { return p.of(id).isMissing })
}

// isNew reports whether a target can't have existed when the plan was made, because its kind or its
// namespace didn't.
func (p *prerequisites) isNew(t *target) bool {
	return p.of(t.definition()).isNew || p.of(namespaceID(t.id.Namespace)).isNew // there is no namespace without a name
}

// mayBeMendedByHooks reports whether a rejection may be none any more when the hooks have run that run first: of an
// object that can't be changed and may be deleted, for the state of the namespace or the cluster, by the schema of a custom resource, or
// in a rollback of somebody else's object that stands in the way. Before the hooks of an upgrade Helm refuses that, too.
func (p *planning) mayBeMendedByHooks(t *target, err error) bool {
	if len(p.prerequisites.hooks) == 0 {
		return false
	}
	said := verify.Read(err)
	isInvalid := errors.As(err, new(*InvalidError)) || said.Kind == verify.Schema
	switch {
	case errors.As(err, new(*ImmutableError)), said.MayEndByHooks():
		return true
	case errors.As(err, new(*OwnershipError)):
		return p.req.BackTo != 0
	default:
		return isInvalid && !kube.IsBuiltinGroup(t.id.Group)
	}
}

// untilHooksRan returns the deferral of what hooks may mend.
func (p *prerequisites) untilHooksRan(why string) *Deferral {
	return &Deferral{Reason: "hooks run first: " + why, Until: p.hooks}
}

// expectKind notes that a kind isn't served yet, and returns the definition that it would have.
func (p *prerequisites) expectKind(m kube.Mapping) kube.ID {
	crd := definition.ID(m.Resource.GroupResource())
	p.expect(crd)
	return crd
}

func namespaceID(name string) kube.ID { return kube.ID{Kind: kube.NamespaceKind.Kind, Name: name} }

func namespaceIDs(names []string) []kube.ID {
	ids := make([]kube.ID, len(names))
	for i, name := range names {
		ids[i] = namespaceID(name)
	}
	return ids
}

// definition is the CustomResourceDefinition that a target's kind would have.
func (t *target) definition() kube.ID { return definition.ID(t.mapping.Resource.GroupResource()) }

// expectFrom expects the objects that others need and that this release writes:
// definitions that it changes, and namespaces that don't exist.
func (p *prerequisites) expectFrom(targets []*target) {
	for _, t := range targets {
		switch c := t.decided; {
		case !t.id.IsCRD() && !t.id.IsNamespace():
		case c != nil && c.Action == decide.Create:
			p.expectNew(t.id)
		case c == nil, t.id.IsCRD() && c.Action != decide.Unchanged && c.Action != decide.Keep:
			p.expect(t.id)
		}
	}
}

// deferralOf says why the server can't be asked about a target; nil when it can.
func (p *prerequisites) deferralOf(t *target) *Deferral {
	d := t.waits.deferral
	if namespace := namespaceID(t.id.Namespace); t.id.Namespace != "" && p.anyMissing(namespace) {
		d = d.with(namespace, fmt.Sprintf("namespace %s comes with this release", t.id.Namespace))
		if p.kindChanges(t) {
			d = d.with(t.definition(), changingKind)
		}
	}
	if d == nil || !p.anyMissing(d.Until...) {
		return nil
	}
	return d
}

// kindChanges reports whether the CRD of a target's kind is still to be written.
func (p *prerequisites) kindChanges(t *target) bool { return p.anyMissing(t.definition()) }

// conversionDeferral returns the deferral of an object whose conversion webhook doesn't
// answer yet.
func (t *target) conversionDeferral() *Deferral {
	reason := unconvertedKind
	switch {
	case len(t.waits.converter) == 0:
		return &Deferral{Reason: unconvertedYet, Until: t.waits.hooks}
	case slices.Contains(t.waits.converter, t.definition()):
		reason = unconvertedNow
	}
	return &Deferral{Reason: reason, Until: t.waits.converter}
}

// markPrerequisitesPresent notes that a target's turn has come: everything that it waits
// for is present.
func (t *target) markPrerequisitesPresent(p *prerequisites) {
	p.markPresent(t.waits.converter...)
	t.waits.webhook, t.waits.converter = false, nil
	if t.waits.deferral != nil {
		p.markPresent(t.waits.deferral.Until...)
	}
}

// deferred is a change that is put off.
func (c Change) deferred(d *Deferral) Change {
	c.Deferral, c.Unverified, c.writes = d, d.Reason, nil
	return c
}
