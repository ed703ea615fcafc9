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

// decideBy applies the rules to one target, by what was observed of it. Of a hook nothing has to be.
func (p *planning) decideBy(ctx context.Context, t *target, s observation) (verdict, error) {
	if t.isHook {
		return p.decideHook(ctx, t)
	}
	desired, err := p.predictor.normalise(ctx, t)
	if err != nil {
		return verdict{}, err
	}
	if t.fromCRDs && p.a.opts.CRDs.leavesExisting() && s.full != nil && s.full.GetDeletionTimestamp() == nil {
		c := p.newChange(t, Unchanged)
		c.Live, c.Reason = s.full, "exists already; --crds create leaves it as it is"
		c.manifestHash = "" // no fingerprint: its content hasn't been compared
		return verdict{change: c}, nil
	}
	if s.forbidden && t.fromCRDs && t.id.IsCRD() && p.definitions.isServed(ctx, t) {
		return verdict{change: p.keepAsItIs(t, desired, "there is no permission to read the definition; the API server has its kind")}, nil
	}
	if d := p.prerequisites.deferralOf(t); d != nil {
		c := p.deferChange(t, p.newCreation(t, desired), d)
		err := p.checkDeferred(ctx, t, &c)
		return verdict{change: c}, err
	}
	if s.deferral != nil {
		c := p.deferChange(t, p.newCreation(t, desired), s.deferral)
		c.Action = Update
		return verdict{change: c}, nil
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
func (p *planning) decideExisting(ctx context.Context, t *target, desired, live *unstructured.Unstructured) (verdict, error) {
	d := p.claims.DecideExisting(p.existing(t, live))
	c := p.newChange(t, d.Action)
	c.Live, c.Desired, c.Reason = live, desired, d.Reason
	switch d.Action {
	case Update:
		return p.decideUpdate(ctx, t, desired, live, d.Adopts)
	case Keep:
		c.manifestHash = ""
		return verdict{change: c}, nil
	case GiveBack:
		c.Provenance, c.manifestHash = p.history.provenance[t.id], ""
		c.writes = []write{{verb: giveBackObject, precondition: precondition{uid: live.GetUID()}}}
		c.orphan = new(newOrphan(t.id, decide.FromTemplate, p.history.latestDeclared(t.id)))
		err := p.prepareGivingBack(ctx, &c, t.mapping)
		return verdict{change: c}, err
	case Create:
		c.Unverified = "no dry run while the existing object is being deleted"
		c.writes = []write{{verb: awaitGone, precondition: precondition{uid: live.GetUID()}}, {verb: createObject}}
		if len(t.othersHold(live)) > 0 {
			return p.decideLeaving(ctx, t, desired, live, d.Adopts, c)
		}
		t.progress.wasAbsent = true
		return verdict{change: c}, nil
	}
	return verdict{}, p.notOurs(t, live)
}

// notOurs rejects a target that exists and belongs to others.
func (p *planning) notOurs(t *target, live *unstructured.Unstructured) error {
	return t.reject(&OwnershipError{ID: t.id, Owner: p.claims.OwnerOf(live), Text: p.a.owner.Mismatch(live)})
}

// othersHold returns the finalizers of an object that is being deleted for which somebody else has to act. What is in a
// namespace or of a definition goes too.
func (t *target) othersHold(live *unstructured.Unstructured) []string {
	if t.id.IsNamespace() || t.id.IsCRD() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents // the garbage collector lets go by itself
	})
}

// decideLeaving decides about an object that is being deleted and that others hold: if it is as the chart has it, nobody waits
// for them. Otherwise it is made again when they have let it go.
func (p *planning) decideLeaving(ctx context.Context, t *target, desired, live *unstructured.Unstructured, adopting bool, again Change) (verdict, error) {
	v, err := p.decideUpdate(ctx, t, desired, live, adopting)
	return v.finally(err, func(c Change, err error) (Change, error) {
		switch {
		case err != nil && !errors.As(err, new(*Rejection)):
			return Change{}, err
		case err != nil || c.Action != Unchanged:
			t.progress.wasAbsent = true
			return again, nil
		}
		c.Reason = "it is being deleted, when its finalizers are gone (" + strings.Join(t.othersHold(live), ", ") + "); deploy again after that to have it back"
		c.writes, c.manifestHash = nil, ""
		p.warnings.add(t.id, t.source, "%s", c.Reason)
		return c, nil
	})
}

// decideCreation decides, by a dry run, about an object that seems to be absent.
func (p *planning) decideCreation(ctx context.Context, t *target, desired *unstructured.Unstructured, s observation) (verdict, error) {
	c := p.newCreation(t, desired)
	c.writes = []write{{verb: createObject}}
	t.progress.wasAbsent = s.absent
	if p.a.opts.Gate == GateOff && s.absent {
		c.Unverified = "no dry run (--gate off)"
		return verdict{change: c}, nil
	}
	return verdict{next: &question{try: &c.writes[0], body: desired, then: func(a answer) (verdict, error) {
		switch err := a.err; {
		case err == nil:
			c.Predicted, t.progress.wasAbsent = a.result, true
			if c.Fields, err = p.predictor.fieldsChangedByServer(ctx, t, desired, a.result); err != nil {
				return verdict{}, err
			}
			if p.predictor.warnOfDropped(t, c.Fields) {
				c.manifestHash = "" // no fingerprint: the cluster may have the fields later
			}
			return verdict{change: c}, nil
		case kube.IsConflict(err) || kube.IsAlreadyExists(err):
			return p.decideUnobserved(t, s)
		case verify.MissingPermission(err, "") != nil && t.fromCRDs && t.id.IsCRD() && p.a.opts.CRDs.leavesExisting() && len(p.req.Revisions) > 0:
			return verdict{change: p.keepAsItIs(t, desired, "there is no permission to create the definition, and an upgrade with --crds create doesn't need it")}, nil
		case verify.MissingPermission(err, t.id.Namespace) != nil && !s.absent && !s.forbidden:
			return verdict{next: &question{then: func(now answer) (verdict, error) {
				switch {
				case now.err != nil:
					return verdict{}, now.err
				case now.found.full != nil:
					return p.decideBy(ctx, t, now.found)
				}
				return p.decideRefused(t, c, err)
			}}}, nil
		}
		return p.decideRefused(t, c, a.err)
	}}}, nil
}

// decideUnobserved decides about an object that turned out to exist: it lacks Helm's
// label, or was created after the observation.
func (p *planning) decideUnobserved(t *target, s observation) (verdict, error) {
	if s.forbidden {
		return verdict{}, rejectf(t.id, t.source, "", "allow the account that deployer runs as to get "+t.mapping.Resource.Resource,
			"exists, but there is no permission to read it, so its owner is unknown")
	}
	if t.progress.attempts == maxAttempts {
		return verdict{}, rejectf(t.id, t.source, "", "try again", "is being created or deleted by another client at the moment")
	}
	t.progress.attempts++
	return lookAgain(t.progress.attempts - 1), nil // after a pause if it vanished and came back
}

// decideRefused decides what a refusal of a dry run means for the plan.
func (p *planning) decideRefused(t *target, c Change, err error) (verdict, error) {
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
	case decide.EstimateLocally:
		c = p.permissions.markEstimated(t, c, verify.MissingPermission(err, t.id.Namespace))
	case decide.AwaitConverter:
		c = p.deferChange(t, c, t.conversionDeferral())
	case decide.AwaitKind: // settle defers an object; a hook's own turn tells
		if t.isHook {
			c.Deferral, c.Unverified = &Deferral{Reason: changingKind, Until: []kube.ID{t.definition()}}, changingKind
		}
	case decide.AskForSchema:
		p.schemas.distrust(t.mapping.GVK.GroupVersion())
		return lookAgain(0), nil
	case decide.ReadAgainAfterPause:
		t.progress.attempts++
		return lookAgain(t.progress.attempts), nil
	case decide.ReadAgain:
		t.progress.attempts++
		return lookAgain(0), nil
	case decide.Fail:
		return verdict{}, &ObjectError{ID: t.id, Source: t.source, Doing: "asking the server about", Err: err}
	default:
		return verdict{}, t.reject(verify.AsServerError(t.obj, err))
	}
	return verdict{change: c}, nil
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
