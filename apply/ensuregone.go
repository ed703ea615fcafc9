package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/ordering"
)

// A deletedObject is one that a run has deleted.
type deletedObject struct {
	orphan
	pruner *pruner
	uid    types.UID
}

// deletionsIn are the objects that changes are to delete.
func deletionsIn(changes []Change) []deletedObject {
	var out []deletedObject
	for _, c := range changes {
		if c.Action == Delete && c.execution != nil && c.execution.orphan != nil {
			out = append(out, deletedObject{*c.execution.orphan, c.execution.pruner, c.Live.GetUID()})
		}
	}
	return out
}

// maxReturns is how often an object that keeps coming back is deleted again.
const maxReturns = 5

// ensureGone deletes objects again that were recreated as this release's own while others
// were deleted. Objects that others created under the same names stay. The error names
// the objects that keep coming back.
func (a *Applier) ensureGone(ctx context.Context, gone []deletedObject) error {
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
		gone = deletionsIn(back)
		if err := errors.Join(a.executeAll(ctx, back, func(Change) {})...); err != nil {
			return err
		}
	}
	return nil
}

// recreatedObjects returns deletions of the objects that exist again and may be deleted.
func (a *Applier) recreatedObjects(ctx context.Context, gone []deletedObject) ([]Change, error) {
	lookups := make([]lookup, len(gone))
	for i, d := range gone {
		// What is ours has Helm's label, but for a ClusterRole that its controller recreates.
		lookups[i] = lookup{d.collection(), d.id.Name, ordering.IsAggregated(d.lastDeclared.obj)}
	}
	var mu sync.Mutex
	var out []Change
	decide := func(d deletedObject, meta *metav1.PartialObjectMetadata) {
		if meta == nil || meta.UID == d.uid {
			return // gone, or still being deleted
		}
		if c := d.pruner.decideOrphan(d.orphan, meta); c.Action == Delete && c.execution != nil {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, c)
		}
	}
	listed := func(i int, meta *metav1.PartialObjectMetadata, complete bool) bool {
		decide(gone[i], meta)
		return meta != nil || complete
	}
	err := gone[0].pruner.observer.listOrGet(ctx, lookups, listed, func(i int) error {
		meta, err := a.getMeta(ctx, gone[i].mapping, gone[i].id)
		decide(gone[i], meta)
		return err
	})
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out, err
}
