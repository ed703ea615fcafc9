package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// decideHook asks the server whether it would create one hook.
func (p *planning) decideHook(ctx context.Context, t *target) (verdict, error) {
	c := p.newChange(t, Create)
	desired, err := p.predictor.normalise(ctx, t)
	if err != nil {
		return verdict{}, err
	}
	c.Desired, c.manifestHash = desired, ""
	if decide.HasDeletePolicy(decide.DeletePolicies(t.obj.GetAnnotations()), "hook-succeeded") { // without it, the run would fail after the hook has succeeded
		if err := p.permissions.denyUnlessAllowed(ctx, &c, "delete", t.mapping); err != nil {
			return verdict{}, err
		}
	}
	if d := p.prerequisites.deferralOf(t); d != nil {
		c = p.deferChange(t, c, d)
		err := p.checkDeferred(ctx, t, &c)
		return verdict{change: c}, err
	}
	if p.a.opts.Gate == GateOff {
		c.Unverified = "no dry run (--gate off)"
		return verdict{change: c}, nil
	}
	return p.tryHook(ctx, t, c, 0), nil
}

// tryHook asks the server what it would create. If the name is taken by an object that is gone
// when it is read, such as a Job after its TTL, the server is asked again. Races are those that were lost.
func (p *planning) tryHook(ctx context.Context, t *target, c Change, races int) verdict {
	return verdict{next: &question{try: &write{verb: createHook}, body: c.Desired, pause: races, then: func(a answer) (verdict, error) {
		refusal, exists := a.err, kube.IsAlreadyExists(a.err)
		if !exists && !verify.IsHeldByAnother(refusal) || races == maxAttempts {
			return p.decideTriedHook(ctx, t, c, a)
		}
		return verdict{next: &question{then: func(a answer) (verdict, error) {
			switch {
			case a.err != nil:
				return verdict{}, a.err
			case a.found.forbidden:
				return p.decideRefused(t, c, a.found.refusal)
			case a.found.full != nil:
				return p.replaceHook(ctx, t, c, a.found.full)
			case !exists:
				return p.decideRefused(t, c, refusal)
			}
			return p.tryHook(ctx, t, c, races+1), nil
		}}}, nil
	}}}
}

// decideTriedHook decides about a hook by the answer to its dry run.
func (p *planning) decideTriedHook(ctx context.Context, t *target, c Change, a answer) (verdict, error) {
	if a.err != nil {
		return p.decideRefused(t, c, a.err)
	}
	var err error
	c.Predicted = a.result
	c.Fields, err = p.predictor.fieldsChangedByServer(ctx, t, c.Desired, c.Predicted)
	return verdict{change: c}, err
}

// replaceHook decides about a hook whose name is taken by a live object: if that may be removed,
// the server is asked about the hook under another name.
func (p *planning) replaceHook(ctx context.Context, t *target, c Change, live *unstructured.Unstructured) (verdict, error) {
	c.Live = live
	if why := p.claims.WhyInTheWay(p.existing(t, live)); why != "" {
		return verdict{}, t.reject(&HookExistsError{Why: why})
	}
	c.Reason = "the hook of an earlier run is deleted first"
	if !decide.IsHook(live) { // an object of the release, which the chart has made a hook
		c.Reason = "the object of this name, which was not a hook before, is deleted first"
	}
	if err := p.permissions.denyUnlessAllowed(ctx, &c, "delete", t.mapping); err != nil {
		return verdict{}, err
	}
	return verdict{next: &question{try: &write{verb: createHook}, body: c.Desired, beside: true, then: func(a answer) (verdict, error) {
		if verify.CannotRenameForDryRun(a.err) {
			c.Unverified = noDryRunBeside(t, a.err)
			return verdict{change: c}, nil
		}
		return p.decideTriedHook(ctx, t, c, a)
	}}}, nil
}
