package kube

import (
	"context"
	"errors"
	"time"
)

// Sleep waits for d, or returns the cause of ctx's end when that comes first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WaitFor calls work that takes no context, as reads from a terminal and Helm's libraries don't, and returns its error. When
// ctx ends first, it returns, and work continues until its own timeouts: what it writes may be read only if there is no error.
func WaitFor(ctx context.Context, work func() error) error {
	if err := ctx.Err(); err != nil {
		return err // nothing is started
	}
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WithLimit limits a part of the work of ctx; a limit of 0 or less is none. Call the
// returned function with the error of that part at its end: an error that the limit
// caused is passed through late, any other returned as it is.
func WithLimit(ctx context.Context, limit time.Duration, late func(error) error) (context.Context, func(error) error) {
	if limit <= 0 {
		return ctx, func(err error) error { return err }
	}
	// The cause must not contain what late makes of it: errors of requests contain the cause.
	timeIsUp := errors.New("time is up")
	ctx, cancel := context.WithTimeoutCause(ctx, limit, timeIsUp)
	return ctx, func(err error) error {
		defer cancel()
		if err == nil || context.Cause(ctx) != timeIsUp {
			return err
		}
		return late(err)
	}
}

// WithGracePeriod returns a context that ends a while after ctx. If ctx has ended already, it
// ends with ctx.
func WithGracePeriod(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return context.WithCancel(ctx)
	}
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(by, cancel)
		context.AfterFunc(out, func() { timer.Stop() })
	})
	return out, func() {
		stop()
		cancel()
	}
}

// ParallelRequests is the limit for ForEach where each call makes a request.
const ParallelRequests = 8

// ForEach calls do for 0 to n-1, at most limit at once, and returns all errors joined.
func ForEach(n, limit int, do func(int) error) error {
	return ForEachUntil(context.Background(), n, func() int { return limit }, do)
}

// ForEachUntil is ForEach with a limit that may change meanwhile. When ctx ends, no call is begun any more, and its cause is
// one of the errors. It returns when all calls have returned.
func ForEachUntil(ctx context.Context, n int, limit func() int, do func(int) error) error {
	errs := make([]error, n+1) // all are wanted, and not only the first
	done := make(chan struct{})
	running := 0
	for i := range n {
		for ; running >= limit(); running-- {
			<-done
		}
		if ctx.Err() != nil {
			errs[n] = context.Cause(ctx)
			break
		}
		running++
		go func() {
			errs[i] = do(i)
			done <- struct{}{}
		}()
	}
	for range running {
		<-done
	}
	return errors.Join(errs...)
}
