package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// newChange returns a change of a target, without its live and its desired object. What is kept or given back, and hooks, get no
// hash of their manifest: the next release compares them again.
func (p *planning) newChange(t *target, action decide.Action) Change {
	c := Change{ID: t.id, Source: t.source, Action: action, DependsOn: t.ordering.dependencies, Weight: t.ordering.weight}
	if action != decide.Keep && action != decide.GiveBack && !t.isHook {
		c.manifestHash = p.definitions.fingerprintInput(t)
	}
	return c
}

// decideObject decides about an object of the chart.
func (p *planning) decideObject(t *target, f *facts) (Change, error) {
	isDefinition := t.fromCRDs && t.id.IsCRD()
	stays := f.full != nil && f.full.GetDeletionTimestamp() == nil
	d := p.prerequisites.deferralOf(t)
	switch {
	case t.fromCRDs && p.a.opts.CRDs.leavesExisting() && stays:
		c := p.newChange(t, decide.Unchanged)
		c.Live, c.Reason = f.full, "exists already; --crds create leaves it as it is"
		c.manifestHash = "" // no fingerprint: its content hasn't been compared
		return c, nil
	case f.forbidden && isDefinition && f.isServed:
		return p.keepAsItIs(t, nil, f.desired, "there is no permission to read the definition; the API server has its kind", ""), nil
	case d != nil:
		return p.decideLater(t, f, d)
	case f.unconverted:
		return p.updateLater(t, f), nil
	case f.full == nil:
		return p.decideCreation(t, f)
	case isDefinition && stays:
		return p.decideDefinition(t, f)
	}
	return p.decideExisting(t, f)
}

// decideLater puts the decision about an object off that the server can't be asked about yet. What can be known of it now is checked.
func (p *planning) decideLater(t *target, f *facts, d *Deferral) (Change, error) {
	live, err := f.inOtherVersion.get(p.lookInOtherVersion(t))
	if err != nil {
		return Change{}, err
	}
	c := p.newCreation(t, f)
	if live != nil && live.DeletionTimestamp == nil {
		switch p.claims.DecideExisting(p.existing(t, live)).Action {
		case decide.Update:
			c.Action = decide.Update
		case decide.Create, decide.Keep, decide.GiveBack:
		default:
			return Change{}, p.notOurs(t, live)
		}
	}
	return p.checkBefore(t, f, c.deferred(d))
}

// updateLater puts the decision about an object off that nobody converts yet.
func (p *planning) updateLater(t *target, f *facts) Change {
	c := p.newChange(t, decide.Update)
	c.Desired, c.Reason = f.desired, f.replacement.reason
	return c.deferred(t.conversionDeferral())
}

// newCreation returns a change that creates an object, before the server is asked.
func (p *planning) newCreation(t *target, f *facts) Change {
	c := p.newChange(t, decide.Create)
	c.Desired, c.Reason = f.desired, f.replacement.reason
	return c
}

// existing says what is known of a target that is there.
func (p *planning) existing(t *target, live metav1.Object) decide.Existing {
	_, wasHook := p.history.hooks[t.id]
	out := decide.Existing{
		ID: t.id, Live: live, Desired: t.obj.GetAnnotations(), FromCRDs: t.fromCRDs, WasHook: wasHook, Provenance: p.history.provenance[t.id],
		OursUnowned: p.req.BackTo != 0 && slices.Contains(p.req.MovedToCRDs, t.id) || slices.Contains(namespaceIDs(p.req.NewNamespaces), t.id),
	}
	switch isOpen := p.a.owner.IsHalfOn(live) || provenance.IsNobodys(live); {
	case isOpen && p.history.isOnRecord(t.id):
		out.OursUnowned, out.WhyOurs = true, "somebody has made it anew, or removed its ownership"
	case isOpen && p.ours[t.id]:
		out.OursUnowned, out.WhyOurs = true, "a hook, or somebody else, has made it since the plan"
	}
	return out
}

// decideExisting decides about an object that is there.
func (p *planning) decideExisting(t *target, f *facts) (Change, error) {
	live := f.full
	d := p.claims.DecideExisting(p.existing(t, live))
	c := p.newChange(t, d.Action)
	c.Live, c.Desired, c.Reason = live, f.desired, d.Reason
	switch d.Action {
	case decide.Update:
		return p.decideUpdate(t, f, d)
	case decide.Keep:
		return c, nil
	case decide.GiveBack:
		c.Provenance = p.history.provenance[t.id]
		c.writes, c.needs = []write{{verb: giveBackObject, precondition: precondition{uid: live.GetUID()}}}, []string{"patch"}
		c.orphan = newOrphan(t.id, decide.FromTemplate, p.history.latestDeclared(t.id))
		return f.givenBack.get(func(ctx context.Context) (Change, error) {
			err := p.prepareGivingBack(ctx, &c)
			return c, err
		})
	case decide.Create:
		c.Unverified = "no dry run while the existing object is being deleted"
		c.writes = []write{{verb: awaitGone, precondition: precondition{uid: live.GetUID()}}, f.replacement.creation()}
		if len(t.foreignFinalizers(live)) > 0 {
			return p.decideLeaving(t, f, d, c)
		}
		c.makes = true
		return c, nil
	}
	return Change{}, p.notOurs(t, live)
}

// notOurs rejects a target that exists and belongs to others.
func (p *planning) notOurs(t *target, live metav1.Object) error {
	return t.reject(&OwnershipError{ID: t.id, Owner: p.a.owner.OwnerOf(live), Text: p.a.owner.Mismatch(live)})
}

// foreignFinalizers returns the finalizers of an object that is being deleted for which somebody else has to act. What is in a
// namespace or of a definition goes too.
func (t *target) foreignFinalizers(live *unstructured.Unstructured) []string {
	if t.id.IsNamespace() || t.id.IsCRD() {
		return nil
	}
	return ForeignFinalizers(live.GetFinalizers())
}

// decideLeaving decides about an object that is being deleted and that others hold. If it is as the chart has it, nobody waits for
// them. Otherwise it is made again if they let it go soon, and else changed as it is.
func (p *planning) decideLeaving(t *target, f *facts, claim decide.Decision, again Change) (Change, error) {
	c, err := p.decideUpdate(t, f, claim)
	switch {
	case err != nil && !errors.As(err, new(*Rejection)):
		return Change{}, err
	case err != nil || c.Deferral != nil || c.Action != decide.Unchanged && c.Action != decide.Update:
		again.makes = true
		return again, nil
	}
	c.manifestHash = ""
	c.Reason = "it is being deleted, when its finalizers are gone (" + strings.Join(t.foreignFinalizers(f.full), ", ") + "); deploy again after that to have it back"
	switch {
	case c.Action == decide.Unchanged:
		c.writes = nil
		p.warnings.add(t.id, t.source, "%s", c.Reason)
	case t.progress.waitedForFinalizers:
		c.Warning = c.Reason
	default:
		c.Reason += fmt.Sprintf(", unless that takes less than %s", finalizerPatience)
		c.writes = []write{{verb: awaitFinalizers, precondition: precondition{uid: f.full.GetUID()}}}
		p.warnings.add(t.id, t.source, "%s", c.Reason)
	}
	return c, nil
}

// decideCreation decides, by a dry run, about an object that seems to be absent.
func (p *planning) decideCreation(t *target, f *facts) (Change, error) {
	c := p.newCreation(t, f)
	c.writes = []write{f.replacement.creation()}
	if p.a.opts.Gate == GateOff && f.absent {
		c.Unverified = "no dry run (--gate off)"
		return c, nil
	}
	said, err := p.try(t, f, trial{write: c.writes[0], body: f.desired})
	if err != nil {
		return Change{}, err
	}
	switch missing := verify.MissingPermission(said.refusal, t.id.Namespace); {
	case said.refusal == nil:
		c.Predicted, c.makes = said.result, true
		c.Fields = changedByServer(f.converter, f.desired, said.result)
		if p.warnings.warnOfDropped(t, c.Fields) {
			c.manifestHash = "" // no fingerprint: the cluster may have the fields later
		}
		return c, nil
	case kube.IsConflict(said.refusal) || kube.IsAlreadyExists(said.refusal):
		return Change{}, p.unobserved(t, f)
	case missing != nil && t.fromCRDs && t.id.IsCRD() && p.a.opts.CRDs.leavesExisting() && len(p.req.Revisions) > 0:
		return p.keepAsItIs(t, nil, f.desired, "there is no permission to create the definition, and an upgrade with --crds create doesn't need it", ""), nil
	case missing != nil && !f.absent && !f.forbidden:
		switch now, err := f.now.get(p.observer.look(t)); {
		case err != nil:
			return Change{}, err
		case now.full != nil:
			f.observation = now
			return p.decideObject(t, f)
		}
	}
	return p.decideRefused(t, f, c, said.refusal)
}

// unobserved is the error of rules about an object that turned out to exist: it lacks Helm's label, or was created after the
// observation.
func (p *planning) unobserved(t *target, f *facts) error {
	if f.forbidden {
		return rejectf(t.id, t.source, "", "allow the account that deployer runs as to get "+t.mapping.Resource.Resource,
			"exists, but there is no permission to read it, so its owner is unknown")
	}
	if f.attempts == maxAttempts {
		return rejectf(t.id, t.source, "", "try again", "is being created or deleted by another client at the moment")
	}
	return p.lookAgain(t, f)
}

// decideRefused decides what a refusal of a dry run means for the plan.
func (p *planning) decideRefused(t *target, f *facts, c Change, err error) (Change, error) {
	said, missing, explained := verify.Read(err), verify.MissingPermission(err, t.id.Namespace), verify.AsServerError(t.obj, err)
	comesLater := slices.ContainsFunc(t.needs(), func(id kube.ID) bool {
		return said.LacksObject(id.Name) && (t.isHook || p.targetsByID[id] != nil)
	})
	mayReadAgain := !t.isHook && c.Live != nil && f.attempts < maxAttempts
	switch {
	case said.Detail == verify.NoDryRun: // the real request may be fine
		c.Unverified = "an admission webhook doesn't support dry runs"
		if !t.isHook {
			c.Unverified += ": " + explained.Error()
		}
	case missing != nil:
		c = p.permissions.markEstimated(t, c, missing)
	case t.failsConversion(said):
		c = c.deferred(t.conversionDeferral())
	case p.prerequisites.kindChanges(t) && !apierrors.IsForbidden(err): // decideBy defers an object; a hook's own turn tells
		if t.isHook {
			c = c.deferred(&Deferral{Reason: changingKind, Until: []kube.ID{t.definition()}})
		}
	case comesLater:
		c.Unverified = "it needs something that comes with this release: " + explained.Error()
	case mayReadAgain && (verify.IsVanished(err, t.id) || kube.IsConflict(err)): // a Job is gone by its TTL, or a controller has written the status
		return Change{}, p.lookAgain(t, f)
	case !t.isHook && said.Detail == verify.UnknownField && p.schemas.isBuiltin(t.mapping.GVK): // our schema is of a newer Kubernetes
		p.schemas.distrust(t.mapping.GVK.GroupVersion())
		return Change{}, p.lookAgain(t, f)
	case !errors.As(err, new(apierrors.APIStatus)):
		return Change{}, &ObjectError{ID: t.id, Source: t.source, Doing: "asking the server about", Err: err}
	default:
		holder, unknown := f.holder.get(p.a.holderOf(t, err))
		if unknown != nil {
			return Change{}, unknown
		}
		if known, ok := errors.AsType[*verify.ServerError](explained); ok {
			known.Holder = holder
		}
		rejected := t.reject(explained)
		rejected.ofCreation = c.Action == decide.Create
		return Change{}, rejected
	}
	return c, nil
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
	case t.id.Group == rbacGroup: // of a binding, for accounts that may only grant what they have
		return []kube.ID{named(t.id.Group, "Role", t.id.Namespace, "roleRef", "name"), named(t.id.Group, "ClusterRole", "", "roleRef", "name")}
	}
	return nil
}

// holderOf asks which object has what the API server refused an object for: a nodePort, or the place of the default
// PriorityClass. It is empty where that isn't the reason, and where the account can't see it.
func (r *requester) holderOf(t *target, refusal error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if verify.Read(refusal).Kind != verify.Held {
			return "", nil
		}
		list, err := r.list(ctx, collection{mapping: t.mapping}) // of all namespaces
		if err != nil {
			return "", ctx.Err()
		}
		wanted := decide.HoldingsOf(t.obj)
		for i := range list {
			id := kube.IDOf(&list[i])
			if id != t.id && holdTheSame(wanted, decide.HoldingsOf(&list[i])) {
				return id.String(), nil
			}
		}
		return "", nil
	}
}
