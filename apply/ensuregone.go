package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply/ordering"
)

// maxReturns is how often an object that keeps coming back is deleted again.
const maxReturns = 5

// ensureGone repeats deletions of objects that were recreated as this release's own while others
// were deleted. Objects that others created under the same names stay. The error names
// the objects that keep coming back.
func (a *Applier) ensureGone(ctx context.Context, gone []Change) error {
	for try := 0; len(gone) > 0; try++ {
		back, err := a.recreatedObjects(ctx, gone)
		if err != nil || len(back) == 0 {
			return err
		}
		if try == maxReturns {
			var errs []error
			for _, c := range back {
				errs = append(errs, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing(Delete),
					Err: fmt.Errorf("another client recreates it each time, %d times so far", try)})
			}
			return errors.Join(errs...)
		}
		pauseAfterRace(ctx, try)
		gone = slices.Clone(back)
		if err := errors.Join(a.executeAll(ctx, back, func(*Change) {})...); err != nil {
			return err
		}
	}
	return nil
}

// recreatedObjects returns deletions of the objects that exist again and may be deleted.
func (a *Applier) recreatedObjects(ctx context.Context, gone []Change) ([]Change, error) {
	lookups := make([]lookup, len(gone))
	for i, c := range gone {
		// What is ours has Helm's label, but for a ClusterRole that its controller recreates.
		o := c.execution.orphan
		lookups[i] = lookup{o.collection(), o.ID.Name, ordering.IsAggregated(o.Declared)}
	}
	var mu sync.Mutex
	var out []Change
	decide := func(c Change, meta *metav1.PartialObjectMetadata) {
		if meta == nil || meta.UID == c.Live.GetUID() {
			return // gone, or still being deleted
		}
		if c := c.execution.pruner.decideOrphan(*c.execution.orphan, meta); c.Action == Delete && c.execution != nil {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, c)
		}
	}
	listed := func(i int, meta *metav1.PartialObjectMetadata, complete bool) bool {
		decide(gone[i], meta)
		return meta != nil || complete
	}
	err := gone[0].execution.pruner.observer.listOrGet(ctx, lookups, listed, func(i int) error {
		meta, err := a.getMeta(ctx, gone[i].execution.mapping(ctx), gone[i].ID)
		decide(gone[i], meta)
		return err
	})
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out, err
}
