package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A StayedError lists the objects that a rollback has left as they are, because they can't go back. All others have.
type StayedError struct {
	BackTo  int
	Objects []Rejection
}

func (e *StayedError) Error() string {
	text := fmt.Sprintf("all else is back at revision %d, but what can't go back stays as it is:", e.BackTo)
	for _, r := range e.Objects {
		text += "\n  " + r.Error()
	}
	return text
}

// Hint says what to do about each.
func (e *StayedError) Hint() string { return (&RejectedError{Rejections: e.Objects}).Hint() }

// A stayError is why an object stays, and what to do.
type stayError struct{ decide.Stay }

func (e *stayError) Error() string { return e.Why }

// Hint says what to do about it.
func (e *stayError) Hint() string { return e.Advice }

// Stayed returns an error about the objects that stay as they are although they should have gone back; nil when
// there is none. Those that are ahead and do no harm aren't in it.
func (p *Plan) Stayed(backTo int) error {
	out := &StayedError{BackTo: backTo}
	for c := range p.Changes() {
		if c.Stays != nil && !c.Stays.Harmless {
			out.Objects = append(out.Objects, Rejection{ID: c.ID, Source: c.Source, Err: &stayError{*c.Stays}})
		}
	}
	if len(out.Objects) == 0 {
		return nil
	}
	out.Objects = sorted(out.Objects)
	return out
}

// isRefusal reports whether the way back is barred by what an object is, or by who judges it: not by the lack of an
// answer, a permission or an owner.
func isRefusal(err error) bool {
	switch verify.Read(err).Kind {
	case verify.Conflict, verify.Permission, verify.WebhookDown, verify.Passing:
		return false
	case verify.Unknown:
		server, isAnswer := errors.AsType[*verify.ServerError](err)
		return errors.As(err, new(*ImmutableError)) || isAnswer && (server.Code == http.StatusForbidden || server.Code == http.StatusRequestEntityTooLarge)
	}
	return true
}

// mayStayBehind reports whether an object needn't go back that is refused for a reason. t is nil for an orphan.
func (p *planning) mayStayBehind(t *target, why error) bool {
	return t != nil && !t.isHook && why != nil && p.req.BackTo != 0 && isRefusal(why)
}

// stayBehind decides about an object that can't go back to the revision that is rolled back to: it doesn't hold up the
// others. It reports false where that isn't so, and the rejection remains.
func (p *planning) stayBehind(ctx context.Context, t *target, why error) (bool, error) {
	if !p.mayStayBehind(t, why) {
		return false, nil
	}
	found, err := p.observer.read(ctx, t)
	if err != nil && !errors.As(why, new(*kube.NoKindMatchError)) {
		return false, err
	}
	stay, instead := decide.StayAhead(found.full, t.obj)
	c := p.newChange(t, decide.Keep)
	switch {
	case instead != nil:
		t.obj = instead
		if c, err = p.decide(ctx, t, found); errors.As(err, new(*Rejection)) {
			stay, c = nil, p.newChange(t, decide.Keep) // there are other reasons
		} else if err != nil {
			return false, err
		}
		c.Reason = joinReasons(c.Reason, "stays ahead of the revision")
	case found.full == nil:
		c.Reason = "can't be created again"
	case stay == nil:
		c.Reason = "can't go back"
	}
	if stay == nil {
		stay = p.stayFor(why)
	}
	c.Reason = joinReasons(c.Reason, stay.Why)
	c.Stays, c.manifestHash = stay, "" // no fingerprint: the next release looks again
	if c.Live == nil {
		c.Live = found.full
	}
	if stay.Harmless {
		c.Warning = c.Reason
	} else {
		c.Reason += "; " + stay.Advice
	}
	t.setDecided(c)
	return true, nil
}

func joinReasons(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), ": ")
}

// stayFor returns the stay of an object that can't go back, with what to do about it.
func (p *planning) stayFor(why error) *decide.Stay {
	immutable, ok := errors.AsType[*ImmutableError](why)
	stay := &decide.Stay{Why: why.Error(), Advice: fmt.Sprintf("when nothing refuses it any more: roll back to revision %d again", p.req.BackTo)}
	switch {
	case errors.As(why, new(*kube.NoKindMatchError)):
		stay.Advice = fmt.Sprintf("when the cluster has the kind again: roll back to revision %d again", p.req.BackTo)
	case ok && immutable.Advice != "":
		stay.Advice = immutable.Advice
	case ok && (immutable.Never || immutable.Destroys != "" || immutable.ID.GroupKind() == kube.PersistentVolumeClaimKind):
		stay.Advice = "it isn't deleted, because its data would go with it, or it is to be kept: if it isn't needed, delete it yourself and roll back again"
	case ok:
		stay.Advice = fmt.Sprintf("to recreate it: roll back to revision %d with --allow-recreate", p.req.BackTo)
	}
	return stay
}

// leaveBehind makes of a change that was refused when it was carried out one that stays. It reports false where the
// refusal is to end the run.
func (p *planning) leaveBehind(t *target, c *Change, err error) bool {
	if !p.mayStayBehind(t, err) {
		return false
	}
	c.Stays = p.stayFor(withoutObject(err))
	c.keep(joinReasons("can't go back", c.Stays.Why) + "; " + c.Stays.Advice)
	return true
}

// withoutObject returns why a change failed, without saying of which object.
func withoutObject(err error) error {
	if object, ok := errors.AsType[*ObjectError](err); ok {
		return object.Err
	}
	return err
}
