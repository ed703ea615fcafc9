package deploy

import (
	"context"
	"time"

	"deployer/internal/kube"
)

// cleanupTimeout bounds what is still done after a run was stopped, from the moment
// it was: an answer that is awaited, and the deletion of hooks. Two seconds more,
// and the end is to be recorded.
const cleanupTimeout = 8 * time.Second

type cleanupKey struct{}

// withCleanup gives ctx a cleanupContext, which ends a little later.
func withCleanup(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := kube.WithGracePeriod(ctx, by)
	return context.WithValue(ctx, cleanupKey{}, after), cancel
}

// cleanupContext gives the context of what is still done after the run was stopped: ctx
// itself as long as it wasn't.
func cleanupContext(ctx context.Context) context.Context {
	if after, ok := ctx.Value(cleanupKey{}).(context.Context); ok && ctx.Err() != nil {
		return after
	}
	return ctx
}
