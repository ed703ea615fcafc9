package apply

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/apply/verify"
	"deployer/internal/kube"
)

// discoveryLagWindow is how long a kind or a namespace just created may be unknown to
// some of the API servers. kubernetes#62725: five seconds and more.
const discoveryLagWindow = time.Minute

// unexplainedErrorWindow limits the retries of a server error without a reason. Most of these pass
// at once; one that lasts isn't worth minutes.
const unexplainedErrorWindow = 10 * time.Second

// A retriable says of an answer whether the request is worth repeating now.
type retriable func(verify.Answer) bool

// isTransient is the retriable of requests that wait for nothing.
func isTransient(said verify.Answer) bool { return said.IsTransient }

// answerTo is tryWhile for a request that is answered with a value.
func answerTo[T any](ctx context.Context, r *requester, worthRepeating retriable, request func() (T, error)) (answer T, err error) {
	err = r.tryWhile(ctx, worthRepeating, func() (err error) {
		answer, err = request()
		return err
	})
	return answer, err
}

// tryFor is tryWhile for a request about t. If t had to wait for its kind or namespace, these
// are new, and the server may not know them yet: that is retried like transient failures. So is a conflict
// about a ResourceQuota other than t, which admission has and which passes, and a quota that is used up while this release changes it.
func (r *requester) tryFor(ctx context.Context, t *target, m mode, f func() error) error {
	began := time.Now()
	return r.tryWhile(ctx, func(said verify.Answer) bool {
		var during time.Duration
		switch {
		case m.isFinal && said.RefusesWrite():
		case m.quotaChanges && said.Kind == verify.Quota:
			during = AdmissionLag
		case said.Detail == verify.Uncounted, t.waits.webhook && said.Kind == verify.WebhookDown:
			during = unexplainedErrorWindow / 2 // a controller is about to say; it comes with this release
		case !m.isDryRun && slices.ContainsFunc(t.needs(), func(id kube.ID) bool { return said.LacksObject(id.Name) }):
			during = AdmissionLag // this run has made it; admission is told of it a little later
		case !m.isDryRun && said.Kind == verify.Held:
			during = AdmissionLag // ports and addresses are let go a little after the object that had them is gone
		case said.IsTransient && !t.failsConversion(said), t.id.Kind != "ResourceQuota" && said.Detail == verify.QuotaRaced:
			during = r.opts.RetryTimeout
		case !said.IsTransient && t.waits.deferral != nil && said.LacksKindOrNamespace():
			during = discoveryLagWindow
		}
		return time.Since(began) < during
	}, r.warnWhenRetrying(t, f))
}

// failsConversion reports whether an object can't be read or written because the conversion
// webhook of its kind, which this release brings or its hooks may mend, doesn't answer. Before the object's turn that isn't
// asked again: it is decided when the webhook is there.
func (t *target) failsConversion(said verify.Answer) bool {
	return said.Detail == verify.NotConverted && len(t.waits.converter)+len(t.waits.hooks) > 0 || said.Detail == verify.NotPruned && len(t.waits.converter) > 0
}

// isTransient reports whether a read of the object failed in a way that is worth repeating now.
func (t *target) isTransient(said verify.Answer) bool {
	return said.IsTransient && !t.failsConversion(said)
}

// silentFailures is how many failures of a request pass before one is reported.
const silentFailures = 3

// warnWhenRetrying wraps f. After silentFailures failures it passes the error to Options.Warn. Each distinct
// error is reported once for all objects.
func (r *requester) warnWhenRetrying(t *target, f func() error) func() error {
	failures := 0
	return func() error {
		err := f()
		if err == nil {
			return nil
		}
		if failures++; failures == silentFailures && r.opts.Warn != nil {
			if _, alreadyReported := r.reported.LoadOrStore(err.Error(), true); !alreadyReported {
				r.opts.Warn(fmt.Sprintf("%s: retrying for up to %s, the server says: %s", t.id, r.opts.RetryTimeout, verify.Conceal(t.obj, err.Error())))
			}
		}
		return err
	}
}

// tryWhile calls f until it succeeds, fails with an error that isn't retriable, or
// Options.RetryTimeout is over.
func (r *requester) tryWhile(ctx context.Context, worthRepeating retriable, f func() error) error {
	const first, most = 250 * time.Millisecond, 8 * time.Second
	began := time.Now()
	for pause := first; ; pause = min(2*pause, most) {
		asked := time.Now()
		err := f()
		said := verify.Read(err)
		repeats := err != nil && worthRepeating(said)
		unexplained := said.IsUnexplained && !repeats
		// A deadline that isn't the caller's is that of one request: no answer.
		timedOut := errors.Is(err, context.DeadlineExceeded)
		if err == nil || ctx.Err() != nil || !repeats && !unexplained && !timedOut {
			return err
		}
		end := began.Add(r.opts.RetryTimeout)
		if unexplained {
			end = began.Add(min(r.opts.RetryTimeout, unexplainedErrorWindow))
		}
		wait := pause/2 + rand.N(pause/2)
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
		if time.Now().Add(wait).After(end) || r.budget.Add(-int64(time.Since(asked)+wait)) <= 0 {
			return err
		}
		if kube.Sleep(ctx, wait) != nil {
			return err
		}
	}
}
