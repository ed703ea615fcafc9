package apply

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// decideHook asks the server whether it would create one hook.
func (p *planning) decideHook(ctx context.Context, t *target) (Change, error) {
	ctx = p.warnings.withServerWarnings(ctx, t)
	c := p.newChange(t, Create)
	desired, err := p.predictor.normalise(ctx, t)
	if err != nil {
		return c, err
	}
	c.Desired, c.manifestHash = desired, ""
	if decide.HasDeletePolicy(decide.DeletePolicies(t.obj.GetAnnotations()), "hook-succeeded") { // without it, the run would fail after the hook has succeeded
		if err := p.permissions.denyUnlessAllowed(ctx, &c, "delete", t.mapping); err != nil {
			return c, err
		}
	}
	if d := p.prerequisites.deferralOf(t); d != nil {
		c = p.deferChange(t, c, d)
		return c, p.checkDeferred(ctx, t, &c)
	}
	if p.a.opts.Gate == GateOff {
		c.Unverified = "no dry run (--gate off)"
		return c, nil
	}
	c.Predicted, err = p.dryRunHook(ctx, t, &c)
	if err == nil {
		if c.Predicted != nil {
			c.Fields, err = p.predictor.fieldsChangedByServer(ctx, t, desired, c.Predicted)
		}
		return c, err
	}
	if errors.As(err, new(*HookExistsError)) {
		return c, t.reject(err)
	}
	return p.decideRefused(ctx, t, c, err)
}

// dryRunHook asks the server what it would create. If the name is taken by an object that is gone
// when it is read, such as a Job after its TTL, the server is asked again.
func (p *planning) dryRunHook(ctx context.Context, t *target, c *Change) (*unstructured.Unstructured, error) {
	for try := 0; ; try++ {
		predicted, err := p.a.post(ctx, t, c.Desired, asDryRun)
		exists := kube.IsAlreadyExists(err)
		if !exists && !verify.IsHeldByAnother(err) || try == maxAttempts {
			return predicted, err
		}
		live, getErr := p.a.get(ctx, t.mapping, t.id)
		if getErr != nil {
			return nil, getErr
		}
		if live != nil {
			return p.dryRunHookReplacement(ctx, t, c, live)
		}
		if !exists {
			return nil, err
		}
		pauseAfterRace(ctx, try)
	}
}

// dryRunHookReplacement is for a hook whose name is taken by a live object: if that may be removed,
// the server is asked about the hook under another name. It predicts nothing if the server can't be asked.
func (p *planning) dryRunHookReplacement(ctx context.Context, t *target, c *Change, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	c.Live = live
	if why := p.claims.WhyInTheWay(p.existing(t, live)); why != "" {
		return nil, &HookExistsError{Why: why}
	}
	c.Reason = "the hook of an earlier run is deleted first"
	if !decide.IsHook(live) { // an object of the release, which the chart has made a hook
		c.Reason = "the object of this name, which was not a hook before, is deleted first"
	}
	if err := p.permissions.denyUnlessAllowed(ctx, c, "delete", t.mapping); err != nil {
		return nil, err
	}
	predicted, err := dryRunUnderOtherName(ctx, t, c.Desired, p.a.post) // an apply would need another permission
	if verify.CannotRenameForDryRun(err) {
		c.Unverified = noDryRunBeside(t, err)
		return nil, nil
	}
	return predicted, err
}
