package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// newChange returns a change of a target, without its live and its desired object.
func (p *planning) newChange(t *target, action Action) Change {
	return Change{ID: t.id, Source: t.source, Action: action, Reason: t.fullReplace.reason, DependsOn: t.ordering.dependencies, Weight: t.ordering.weight, manifestHash: p.definitions.fingerprintInput(t)}
}

// decide decides what to do with one target. The error is a *Rejection when nothing can
// be done. If the release changes the CRD of its kind, the decision is a preview and is
// made again after that.
func (p *planning) decide(ctx context.Context, t *target, s observation) (Change, error) {
	c, err := p.decideNow(p.warnings.withServerWarnings(ctx, t), t, s)
	if err == nil && c.Deferral == nil && p.prerequisites.kindChanges(t) {
		c = p.deferChange(t, c, &Deferral{Reason: changingKind, Until: []kube.ID{t.definition()}})
	}
	return c, err
}

func (p *planning) decideNow(ctx context.Context, t *target, s observation) (Change, error) {
	desired, err := p.predictor.normalise(ctx, t)
	if err != nil {
		return Change{}, err
	}
	if t.fromCRDs && p.a.opts.CRDs == CreateCRDs && s.full != nil && s.full.GetDeletionTimestamp() == nil {
		c := p.newChange(t, Unchanged)
		c.Live, c.Reason = s.full, "exists already; --crds create leaves it as it is"
		c.manifestHash = "" // no fingerprint: its content hasn't been compared
		return c, nil
	}
	if s.forbidden && t.fromCRDs && t.id.IsCRD() && p.definitions.isServed(ctx, t) {
		return p.keepAsItIs(t, desired, "there is no permission to read the definition; the API server has its kind"), nil
	}
	if d := p.prerequisites.deferralOf(t); d != nil {
		c := p.deferChange(t, p.newCreation(t, desired), d)
		return c, p.checkDeferred(ctx, t, &c)
	}
	if s.deferral != nil {
		c := p.deferChange(t, p.newCreation(t, desired), s.deferral)
		c.Action = Update
		return c, nil
	}
	if s.full == nil {
		return p.decideCreation(ctx, t, desired, s)
	}
	if t.fromCRDs && t.id.IsCRD() && s.full.GetDeletionTimestamp() == nil {
		return p.decideDefinition(ctx, t, desired, s.full)
	}
	return p.decideExisting(ctx, t, desired, s.full)
}

// newCreation returns a change that creates an object, before the server is asked.
func (p *planning) newCreation(t *target, desired *unstructured.Unstructured) Change {
	c := p.newChange(t, Create)
	c.Desired = desired
	return c
}

// existing says what is known of a target that is there.
func (p *planning) existing(t *target, live metav1.Object) decide.Existing {
	_, wasHook := p.history.hooks[t.id]
	return decide.Existing{
		ID: t.id, Live: live, Desired: t.obj.GetAnnotations(), FromCRDs: t.fromCRDs, WasHook: wasHook,
		OursUnowned: p.req.BackTo != 0 && slices.Contains(p.req.MovedToCRDs, t.id) || slices.Contains(namespaceIDs(p.req.NewNamespaces), t.id),
		Provenance:  p.history.provenance[t.id],
	}
}

// decideExisting decides about an object that is there.
func (p *planning) decideExisting(ctx context.Context, t *target, desired, live *unstructured.Unstructured) (Change, error) {
	d := p.claims.DecideExisting(p.existing(t, live))
	c := p.newChange(t, d.Action)
	c.Live, c.Desired, c.Reason = live, desired, d.Reason
	switch d.Action {
	case Update:
		return p.decideUpdate(ctx, t, desired, live, d.Adopts)
	case Keep:
		c.manifestHash = ""
		return c, nil
	case GiveBack:
		c.Provenance, c.manifestHash = p.history.provenance[t.id], ""
		c.writes = []write{{verb: giveBackObject, precondition: precondition{uid: live.GetUID()}}}
		c.orphan = new(newOrphan(t.id, decide.FromTemplate, p.history.latestDeclared(t.id)))
		err := p.prepareGivingBack(ctx, &c, t.mapping)
		return c, err
	case Create:
		if c, err := p.decideLeaving(ctx, t, desired, live, d.Adopts); c.Action == Unchanged || err != nil {
			return c, err
		}
		c.Unverified = "no dry run while the existing object is being deleted"
		c.writes = []write{{verb: awaitGone, precondition: precondition{uid: live.GetUID()}}, {verb: createObject}}
		t.progress.wasAbsent = true
		return c, nil
	}
	return Change{}, p.notOurs(t, live)
}

// notOurs rejects a target that exists and belongs to others.
func (p *planning) notOurs(t *target, live *unstructured.Unstructured) error {
	return t.reject(&OwnershipError{ID: t.id, Owner: p.claims.OwnerOf(live), Text: p.a.owner.Mismatch(live)})
}

// decideLeaving decides about an object that is being deleted and that others hold: if it is as the chart has it, nobody waits
// for them. The action is empty for all others.
func (p *planning) decideLeaving(ctx context.Context, t *target, desired, live *unstructured.Unstructured, adopting bool) (Change, error) {
	holders := slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents // the garbage collector lets go by itself
	})
	if len(holders) == 0 || t.id.IsNamespace() || t.id.IsCRD() { // what is in these goes too
		return Change{}, nil
	}
	c, err := p.decideUpdate(ctx, t, desired, live, adopting)
	switch {
	case errors.As(err, new(*Rejection)):
		return Change{}, nil
	case err != nil || c.Action != Unchanged:
		return Change{}, err
	}
	c.Reason = "it is being deleted, when its finalizers are gone (" + strings.Join(holders, ", ") + "); deploy again after that to have it back"
	c.execution, c.manifestHash = nil, ""
	p.warnings.add(t.id, t.source, "%s", c.Reason)
	return c, nil
}

// decideCreation decides, by a dry run, about an object that seems to be absent.
func (p *planning) decideCreation(ctx context.Context, t *target, desired *unstructured.Unstructured, s observation) (Change, error) {
	c := p.newCreation(t, desired)
	c.writes = []write{{verb: createObject}}
	t.progress.wasAbsent = s.absent
	if p.a.opts.Gate == GateOff && s.absent {
		c.Unverified = "no dry run (--gate off)"
		return c, nil
	}
	result, err := p.a.create(ctx, t, desired, asDryRun)
	switch {
	case err == nil:
		c.Predicted, t.progress.wasAbsent = result, true
		if c.Fields, err = p.predictor.fieldsChangedByServer(ctx, t, desired, result); err != nil {
			return c, err
		}
		if dropped, err := p.predictor.warnOfDropped(ctx, t, desired, result); dropped || err != nil {
			c.manifestHash = "" // no fingerprint: the cluster may have the fields later
			return c, err
		}
		return c, nil
	case kube.IsConflict(err) || kube.IsAlreadyExists(err):
		return p.decideUnobserved(ctx, t, s)
	case verify.MissingPermission(err, "") != nil && t.fromCRDs && t.id.IsCRD() && p.a.opts.CRDs == CreateCRDs && len(p.req.Revisions) > 0:
		return p.keepAsItIs(t, desired, "there is no permission to create the definition, and an upgrade with --crds create doesn't need it"), nil
	case verify.MissingPermission(err, t.id.Namespace) != nil && !s.absent && !s.forbidden:
		found, err2 := p.observer.read(ctx, t)
		if err2 != nil {
			return Change{}, err2
		}
		if found.full != nil {
			return p.decide(ctx, t, found)
		}
	}
	return p.decideRefused(ctx, t, c, err)
}

// decideUnobserved decides about an object that turned out to exist: it lacks Helm's
// label, or was created after the observation.
func (p *planning) decideUnobserved(ctx context.Context, t *target, s observation) (Change, error) {
	if s.forbidden {
		return Change{}, rejectf(t.id, t.source, "", "allow the account that deployer runs as to get "+t.mapping.Resource.Resource,
			"exists, but there is no permission to read it, so its owner is unknown")
	}
	if t.progress.attempts == maxAttempts {
		return Change{}, rejectf(t.id, t.source, "", "try again", "is being created or deleted by another client at the moment")
	}
	if t.progress.attempts > 0 { // it vanished and came back
		pauseAfterRace(ctx, t.progress.attempts)
	}
	t.progress.attempts++
	return p.readAndDecide(ctx, t)
}

// decideRefused decides what a refusal of a dry run means for the plan.
func (p *planning) decideRefused(ctx context.Context, t *target, c Change, err error) (Change, error) {
	refusal := decide.Refusal{
		ID: t.id, Err: err,
		UnconvertedKind: t.failsConversion(err),
		ChangingKind:    p.prerequisites.kindChanges(t) && !apierrors.IsForbidden(err),
		ComesLater: slices.ContainsFunc(t.needs(), func(id kube.ID) bool {
			return verify.NamesMissingPrerequisite(err, id.Name) && (t.isHook || p.targetsByID[id] != nil)
		}),
		BuiltinSchema: !t.isHook && p.schemas.isBuiltin(t.mapping.GVK),
		MayReadAgain:  !t.isHook && c.Live != nil && t.progress.attempts < maxAttempts,
	}
	switch refusal.Next() {
	case decide.LeaveUnverified:
		c.Unverified = "an admission webhook doesn't support dry runs"
		switch explained := verify.AsServerError(t.obj, err).Error(); {
		case refusal.ComesLater:
			c.Unverified = "it needs something that comes with this release: " + explained
		case !t.isHook:
			c.Unverified += ": " + explained
		}
		return c, nil
	case decide.EstimateLocally:
		return p.permissions.markEstimated(t, c, verify.MissingPermission(err, t.id.Namespace)), nil
	case decide.AwaitConverter:
		return p.deferChange(t, c, t.conversionDeferral()), nil
	case decide.AwaitKind: // decide defers an object; a hook's own turn tells
		if t.isHook {
			c.Deferral, c.Unverified = &Deferral{Reason: changingKind, Until: []kube.ID{t.definition()}}, changingKind
		}
		return c, nil
	case decide.AskForSchema:
		p.schemas.distrust(t.mapping.GVK.GroupVersion())
		return p.readAndDecide(ctx, t)
	case decide.ReadAgainAfterPause:
		pauseAfterRace(ctx, t.progress.attempts+1)
		fallthrough
	case decide.ReadAgain:
		t.progress.attempts++
		return p.readAndDecide(ctx, t)
	case decide.Fail:
		return Change{}, &ObjectError{ID: t.id, Source: t.source, Doing: "asking the server about", Err: err}
	}
	return Change{}, t.reject(verify.AsServerError(t.obj, err))
}

// needs returns the objects that have to exist when an object is created, because authorization or admission reads them.
// k8s.io/kubernetes/pkg/registry/rbac/rolebinding/policybased, k8s.io/kubernetes/plugin/pkg/admission/{serviceaccount,priority,runtimeclass}
func (t *target) needs() []kube.ID {
	named := func(group, kind, namespace string, path ...string) kube.ID {
		name, _, _ := unstructured.NestedString(t.obj.Object, path...)
		if name == "" && kind == "ServiceAccount" {
			name = "default" // which a controller makes
		}
		return kube.ID{Group: group, Kind: kind, Namespace: namespace, Name: name}
	}
	switch {
	case t.id.GroupKind() == kube.PodKind:
		return []kube.ID{
			named("", "ServiceAccount", t.id.Namespace, "spec", "serviceAccountName"),
			named("scheduling.k8s.io", "PriorityClass", "", "spec", "priorityClassName"),
			named("node.k8s.io", "RuntimeClass", "", "spec", "runtimeClassName"),
		}
	case t.id.Group == "rbac.authorization.k8s.io": // of a binding, for accounts that may only grant what they have
		return []kube.ID{named(t.id.Group, "Role", t.id.Namespace, "roleRef", "name"), named(t.id.Group, "ClusterRole", "", "roleRef", "name")}
	}
	return nil
}

// readAndDecide decides about a target as it is now.
func (p *planning) readAndDecide(ctx context.Context, t *target) (Change, error) {
	found, err := p.observer.read(ctx, t)
	if err != nil {
		return Change{}, err
	}
	return p.decide(ctx, t, found)
}
