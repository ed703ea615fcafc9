package release

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"deployer/internal/kube"
)

const (
	// maxTries is how often a request is tried while it fails by transient errors.
	maxTries = 8

	// restartTime is how long a server that refuses connections may take to restart. A Lease lasts
	// as long.
	restartTime = 30 * time.Second

	// firstPause before the second try; it doubles up to maxPause.
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second

	// maxRequestTime is how long one request may take before it is sent again, if
	// the context has no earlier end.
	maxRequestTime = 30 * time.Second
)

// errRetry asks retry for another try. It reaches the user when all tries were in vain.
var errRetry = errors.New("another client changed the record at every try")

// retry calls do until it succeeds or fails permanently. do must be safe to repeat,
// because an answer may be lost.
func retry(ctx context.Context, do func(context.Context) error) error {
	wait, began := firstPause, time.Now()
	for n := 1; ; n++ {
		err := tryOnce(ctx, do)
		isLast := n >= maxTries && !mayBeRestarting(err, began)
		if err == nil || ctx.Err() != nil || isLast || !isTransient(err) {
			return err
		}
		if kube.Sleep(ctx, wait) != nil {
			return err // more informative than the end of ctx
		}
		wait = min(2*wait, maxPause)
	}
}

// mayBeRestarting reports whether an error of requests made since began says that the server is
// down, and not yet for longer than a restart takes.
func mayBeRestarting(err error, began time.Time) bool {
	return utilnet.IsConnectionRefused(err) && time.Since(began) < restartTime
}

// tryOnce limits one try to half of the remaining time, so that a request that hangs
// leaves time for another.
func tryOnce(ctx context.Context, do func(context.Context) error) error {
	limit := maxRequestTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// isTransient reports whether the same request may succeed later. It is more patient than
// package apply is with objects: a record that isn't written leaves the release pending.
func isTransient(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if kube.IsDenial(err) {
			return false // with whatever code
		}
		if details := status.Status().Details; kube.IsConflict(err) && details != nil && details.Kind == "resourcequotas" {
			return true // another object is being counted
		}
		return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
			apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsUnexpectedServerError(err) ||
			status.Status().Code >= 500
	}
	// Our own errors are permanent; all others come from the connection to the server.
	var ours interface{ Hint() string }
	if !errors.As(err, &ours) {
		return true
	}
	_, isUnreachable := ours.(*kube.UnreachableError) // it may be restarting
	return isUnreachable && !errors.As(err, new(*tls.CertificateVerificationError))
}
