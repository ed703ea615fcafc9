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
	groups := map[collection][]deletedObject{}
	for _, d := range gone {
		at := collection{mapping: d.mapping, namespace: d.id.Namespace}
		groups[at] = append(groups[at], d)
	}
	var out []Change
	var mu sync.Mutex
	var jobs []func() error
	look := func(d deletedObject, meta *metav1.PartialObjectMetadata) {
		if meta == nil || meta.UID == d.uid {
			return // gone, or still being deleted
		}
		if c := d.pruner.decideOrphan(d.orphan, meta); c.Action == Delete && c.execution != nil {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, c)
		}
	}
	lookAtEach := func(ctx context.Context, list []deletedObject) error {
		return a.forEach(ctx, len(list), func(i int) error {
			meta, err := a.getMeta(ctx, list[i].mapping, list[i].id)
			look(list[i], meta)
			return err
		})
	}
	for at, group := range groups {
		var single []deletedObject
		if len(group) >= minObjectsToList {
			jobs = append(jobs, func() error {
				metas, all, err := group[0].pruner.observer.listMeta(ctx, at, mostListedFor(len(group))) // what is ours has Helm's label
				if err == nil && !all && !group[0].pruner.observer.isUnlistable(at) {
					return lookAtEach(ctx, group)
				}
				for _, d := range group {
					look(d, metas[d.id.Name])
				}
				return err
			})
		}
		for _, d := range group {
			if len(group) < minObjectsToList || ordering.IsAggregated(d.lastDeclared.obj) {
				single = append(single, d)
			}
		}
		jobs = append(jobs, func() error { return lookAtEach(ctx, single) })
	}
	err := a.forEach(ctx, len(jobs), func(i int) error { return jobs[i]() })
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out, err
}
