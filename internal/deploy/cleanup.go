package deploy

import (
	"context"
	"time"

	"deployer/internal/kube"
)

// cleanupTimeout limits, from the moment that a run is stopped, the wait for pending
// answers and the deletion of hooks. Two seconds later the end has to be recorded.
const cleanupTimeout = 8 * time.Second

type cleanupKey struct{}

// withCleanup gives ctx a cleanupContext, which ends a little later.
func withCleanup(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := kube.WithGracePeriod(ctx, by)
	return context.WithValue(ctx, cleanupKey{}, after), cancel
}

// cleanupContext returns the context for cleaning up after the run was stopped; ctx
// itself while it runs.
func cleanupContext(ctx context.Context) context.Context {
	if after, ok := ctx.Value(cleanupKey{}).(context.Context); ok && ctx.Err() != nil {
		return after
	}
	return ctx
}
