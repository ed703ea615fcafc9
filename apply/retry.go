package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"deployer/internal/kube"
)

// youngWindow is how long a kind or a namespace just created may be unknown to
// some of the API servers. kubernetes#62725: five seconds and more.
const youngWindow = time.Minute

// doubtWindow is how long a failure of the server that it says nothing about is
// retried. Most pass at once; that which doesn't is not worth minutes.
const doubtWindow = 10 * time.Second

// A budget is how long all objects of a release together may be kept waiting by
// failures that pass, so that what doesn't pass after all isn't waited for by
// each of a thousand objects.
type budget struct {
	mu   sync.Mutex
	left time.Duration
}

// take reports whether there is something left, and takes d of it.
func (b *budget) take(d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= d
	return b.left > 0
}

// try calls f until it succeeds, fails for good, or Options.RetryTimeout is over.
func (a *Applier) try(ctx context.Context, f func() error) error {
	return a.tryWhile(ctx, a.opts.RetryTimeout, transient, f)
}

// tryFor is try for a request about t. Where it had to wait for its kind or
// namespace, these have just been made, and the server may not know them yet. A conflict about a ResourceQuota that
// isn't the object itself is admission's own, and passes.
func (a *Applier) tryFor(ctx context.Context, t *target, f func() error) error {
	deadline := time.Now().Add(youngWindow)
	return a.tryWhile(ctx, a.opts.RetryTimeout, func(err error) bool {
		switch {
		case transient(err):
			return !t.unconverted(err)
		case t.deferral != nil && unknownYet(err):
			return time.Now().Before(deadline)
		}
		return t.id.Kind != "ResourceQuota" && quotaConflict(err)
	}, a.telling(t, f))
}

// unconverted says that an object can't be had because nobody converts its kind,
// which the release may be about to mend. Before its turn that is only waited
// for as long as for failures without a reason.
func (t *target) unconverted(err error) bool {
	return err != nil && len(t.converter) > 0 && strings.Contains(err.Error(), conversionFailed)
}

// patience is how often a request may fail before anybody is told.
const patience = 3

// telling is f that tells what it fails of when that doesn't pass at once: each
// reason is told once, whichever of a thousand objects has it.
func (a *Applier) telling(t *target, f func() error) func() error {
	failures := 0
	return func() error {
		err := f()
		if err == nil {
			return nil
		}
		if failures++; failures == patience && a.opts.Warn != nil {
			if _, told := a.told.LoadOrStore(err.Error(), true); !told {
				a.opts.Warn(fmt.Sprintf("%s: trying again for up to %s, the server says: %s", t.id, a.opts.RetryTimeout, concealed(t.obj, err.Error())))
			}
		}
		return err
	}
}

func quotaConflict(err error) bool {
	return apierrors.IsConflict(err) && strings.Contains(err.Error(), "resourcequotas") &&
		strings.Contains(err.Error(), "object has been modified")
}

func (a *Applier) tryWhile(ctx context.Context, limit time.Duration, again func(error) bool, f func() error) error {
	const first, most = 250 * time.Millisecond, 8 * time.Second
	began := time.Now()
	for pause := first; ; pause = min(2*pause, most) {
		asked := time.Now()
		err := f()
		doubt := doubtful(err) && !again(err)
		// A deadline that isn't the caller's is that of one request: no answer.
		silent := errors.Is(err, context.DeadlineExceeded)
		if err == nil || ctx.Err() != nil || !again(err) && !doubt && !silent {
			return err
		}
		end := began.Add(limit)
		if doubt {
			end = began.Add(min(limit, doubtWindow))
		}
		wait := pause/2 + rand.N(pause/2)
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
		if time.Now().Add(wait).After(end) || !a.budget.take(time.Since(asked)+wait) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// hopeless are the server's words for what no repetition will change, in answers
// of code 500.
var hopeless = []string{
	"failed to create typed patch object", "duplicate entries for key", "field not declared in schema",
	": expected ", "failed to convert", "request to convert CR", "etcdserver: request is too large",
	"trying to send message larger than max",
}

const conversionFailed = "conversion webhook for"

// passing are the server's words for a state that ends by itself, whatever
// the code of the answer.
var passing = []string{
	"etcdserver: leader changed", "etcdserver: request timed out", "etcdserver: too many requests",
	"failed calling webhook", conversionFailed, "rpc error: code = Unavailable",
	"context deadline exceeded", "transport is closing", "http2: server sent GOAWAY", "stream error: stream ID",
}

// doubtful says whether an answer of code 500 gives no reason that we know: a
// proxy's, or that of a server in trouble.
func doubtful(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == 500 && !contains(err.Error(), hopeless)
}

// transient says whether the same request may succeed later.
func transient(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return networkFailure(err)
	}
	text := err.Error()
	switch code := status.Status().Code; {
	case code == 429, code == 502, code == 503, code == 504:
		return !contains(text, []string{"exceeded quota"})
	case code == 500:
		return !contains(text, hopeless) && contains(text, passing) // others are doubtful
	case code >= 500:
		return !contains(text, hopeless)
	}
	return false
}

func networkFailure(err error) bool {
	var timeout net.Error
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsTimeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) ||
		errors.As(err, &timeout) && timeout.Timeout() || contains(err.Error(), passing)
}

// unknownYet says that an API server doesn't know of a new kind or namespace.
func unknownYet(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	return status.Status().Code == 404 && !isOf(err) ||
		contains(err.Error(), []string{"no matches for kind", "failed to convert", "no corresponding type", "unable to find api field"})
}

// vanished says that an answer is about an object that isn't there, and not about
// its kind or namespace.
func vanished(err error, id kube.ID) bool {
	return isOf(err) && !noNamespace(err, id)
}

// isOf says whether the server misses an object: of a kind that it doesn't serve
// it gives no answer of its own, or names no object.
// k8s.io/apimachinery/pkg/api/errors, NewNotFound and NewGenericServerResponse
func isOf(err error) bool {
	var status apierrors.APIStatus
	if !notFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name != "" && len(details.Causes) == 0 && details.Kind != "namespaces"
}

func contains(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
