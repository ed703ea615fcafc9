package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/internal/kube"
)

// decideHook asks the server whether it would create one hook.
func (p *planning) decideHook(t *target, f facts) (verdict, error) {
	c := p.newChange(t, Create)
	c.Desired = f.desired
	if decide.HasDeletePolicy(decide.DeletePolicies(t.obj.GetAnnotations()), "hook-succeeded") { // without it, the run would fail after the hook has succeeded
		return ask(p.mayDo(c, "delete", t.mapping), func(c Change) (verdict, error) { return p.decideCreationOfHook(t, f, c) }), nil
	}
	return p.decideCreationOfHook(t, f, c)
}

func (p *planning) decideCreationOfHook(t *target, f facts, c Change) (verdict, error) {
	if d := p.prerequisites.deferralOf(t); d != nil {
		return p.checkedBefore(t, p.deferChange(t, c, d)), nil
	}
	if p.a.opts.Gate == GateOff {
		c.Unverified = "no dry run (--gate off)"
		return verdict{change: c}, nil
	}
	return p.tryHook(t, f, c), nil
}

// tryHook asks the server what it would create. If the name is taken by an object that is gone
// when it is read, such as a Job after its TTL, the server is asked again.
func (p *planning) tryHook(t *target, f facts, c Change) verdict {
	create := trial{write: write{verb: createHook}, body: c.Desired}
	return p.try(t, create, func(result *unstructured.Unstructured, refusal error) (verdict, error) {
		exists := kube.IsAlreadyExists(refusal)
		if !exists && !mayBeHeldByFormer(refusal) || t.progress.attempts == maxAttempts {
			return p.decideTriedHook(t, f, c, result, refusal)
		}
		return ask(p.look(t), func(now observation) (verdict, error) {
			switch {
			case now.forbidden:
				return p.decideRefused(t, c, now.refusal)
			case now.full != nil:
				return p.replaceHook(t, f, c, now.full)
			case !exists:
				return p.decideRefused(t, c, refusal)
			}
			return t.lookAgain(), nil
		}), nil
	})
}

// decideTriedHook decides about a hook by the answer to its dry run.
func (p *planning) decideTriedHook(t *target, f facts, c Change, result *unstructured.Unstructured, refusal error) (verdict, error) {
	if refusal != nil {
		return p.decideRefused(t, c, refusal)
	}
	c.Predicted, c.Fields = result, f.changedByServer(c.Desired, result)
	return verdict{change: c}, nil
}

// replaceHook decides about a hook whose name is taken by a live object: if that may be removed,
// the server is asked about the hook under another name.
func (p *planning) replaceHook(t *target, f facts, c Change, live *unstructured.Unstructured) (verdict, error) {
	c.Live = live
	if why := p.claims.WhyInTheWay(p.existing(t, live)); why != "" {
		return verdict{}, t.reject(&HookExistsError{Why: why})
	}
	c.Reason = "the hook of an earlier run is deleted first"
	if !decide.IsHook(live) { // an object of the release, which the chart has made a hook
		c.Reason = "the object of this name, which was not a hook before, is deleted first"
	}
	return ask(p.mayDo(c, "delete", t.mapping), func(c Change) (verdict, error) {
		beside := trial{write: write{verb: createHook}, body: c.Desired, beside: true}
		return p.try(t, beside, func(result *unstructured.Unstructured, refusal error) (verdict, error) {
			if isOnlyForFormer(refusal, live) {
				c.Unverified = noDryRunBeside(t, refusal)
				return verdict{change: c}, nil
			}
			return p.decideTriedHook(t, f, c, result, refusal)
		}), nil
	}), nil
}
