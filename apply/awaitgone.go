package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
)

// awaitGone waits until an object is gone or was replaced by another one. It polls: the
// wait takes from milliseconds to minutes, and a watch needs a permission that the
// account often lacks.
func (a *Applier) awaitGone(ctx context.Context, m kube.Mapping, id kube.ID, uid types.UID) error {
	if limit := a.opts.GoneTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it still exists after %s", limit))
		defer cancel()
	}
	var finalizers []string
	var failure error
	for pause := 50 * time.Millisecond; failure == nil; pause = min(2*pause, 2*time.Second) {
		obj, err := a.get(ctx, m, id)
		// An account that may delete but not read can't wait. The next deletion doesn't either; a
		// creation fails while the name is taken.
		if apierrors.IsForbidden(err) || err == nil && (obj == nil || obj.GetUID() != uid) {
			return nil
		}
		if failure = err; err == nil {
			finalizers, failure = obj.GetFinalizers(), kube.Sleep(ctx, pause)
		}
	}
	why := ""
	if ctx.Err() != nil {
		failure = context.Cause(ctx) // also when the end of ctx has cancelled the request
		if len(finalizers) > 0 {
			why = " (it has finalizers " + strings.Join(finalizers, ", ") + ")"
		}
	}
	return fmt.Errorf("waiting for the deletion of the old object%s: %w", why, failure)
}
