package deploy

import (
	"context"
	"time"

	"deployer/internal/kube"
)

// cleanTimeout bounds what is still done after a run was stopped, from the moment
// it was: an answer that is awaited, and the deletion of hooks. Two seconds more,
// and the end is to be recorded.
const cleanTimeout = 8 * time.Second

type afterKey struct{}

// outlast gives ctx something for sweeping: a context that ends a little later.
func outlast(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := kube.Outlast(ctx, by)
	return context.WithValue(ctx, afterKey{}, after), cancel
}

// sweeping gives the context of what is still done after the run was stopped: ctx
// itself as long as it wasn't.
func sweeping(ctx context.Context) context.Context {
	if after, ok := ctx.Value(afterKey{}).(context.Context); ok && ctx.Err() != nil {
		return after
	}
	return ctx
}
