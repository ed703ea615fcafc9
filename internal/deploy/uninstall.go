package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/chart"
	"deployer/internal/kube"
	"deployer/release"
	"deployer/track"
)

// An UninstallRequest asks to delete all objects of a release.
type UninstallRequest struct {
	Name        string
	KeepHistory bool
	Description string

	undoes *Operation // see Operation
}

// Uninstall decides an uninstall. It only reads.
func (d *Deployer) Uninstall(ctx context.Context, req UninstallRequest) (*Operation, error) {
	history, record, err := d.latestRecord(ctx, req.Name)
	if err != nil {
		return nil, err
	}
	op := d.newOperation(Uninstall, history).undoing(req.undoes)
	op.Next, op.Removal = record, Removal{KeepHistory: req.KeepHistory, Description: req.Description, Cascade: d.Settings.Propagation}
	if op.removesOnlyRecords() {
		if req.KeepHistory {
			return nil, fmt.Errorf("the release named %q is already deleted", req.Name)
		}
		op.Plan = &apply.Plan{} // only records are left to remove
		return op, nil
	}
	if req.undoes == nil { // an undo warns of what it keeps
		op.Warnings = append(op.Warnings, keptDefinitions(record)...)
	}
	return op, d.planObjects(ctx, op, readEarlierRevisions(ctx, history))
}

// keptDefinitions warns that the definitions that a release has applied from crds/ stay, as with Helm.
func keptDefinitions(record *release.Record) []string {
	var names []string
	for _, m := range appliedCRDs(record, &chart.Parser{}) {
		names = append(names, m.Object.GetName())
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the definitions of crds/ stay, as do the objects of their kinds: %s; to delete a definition and all objects of its kind: kubectl delete crd NAME", strings.Join(names, ", "))}
}

// removesOnlyRecords reports whether the operation uninstalls a release that has nothing else any more.
func (o *Operation) removesOnlyRecords() bool {
	return o.Verb == Uninstall && o.Next.Info.Status == helmrelease.StatusUninstalled
}

// Admission may refuse to write the lock or the record of a release because of a policy or webhook that its own uninstall deletes. The
// uninstall then goes on without the record, whose end is tried again until what refused it isn't heeded any more.

// endsRefusal reports whether the operation uninstalls what has refused to write the lock or the record.
func (o *Operation) endsRefusal(err error) bool {
	return o != nil && o.Verb == Uninstall && o.changesRefuser(err)
}

// changesRefuser reports whether the operation makes, changes or deletes what has refused to write the lock or the record.
func (o *Operation) changesRefuser(err error) bool {
	if !kube.IsRefused(err) || errors.As(err, new(*release.HistoryChangedError)) {
		return false
	}
	for c := range o.Plan.Changes() {
		if c.Refused(err) {
			return true
		}
	}
	return false
}

// goUnrecorded lets an uninstall go on although admission refuses to record that it begins, or that the run before it has ended.
func (o *Operation) goUnrecorded() {
	pending := o.pendingWarning()
	o.Warnings = slices.DeleteFunc(o.Warnings, func(text string) bool { return text == pending })
	o.unrecorded = true
}

// untilHeeded writes a record, again where what refuses that is of the release itself: the API server takes its time to heed that it is
// deleted, or to see the parameters of a policy.
func (r *run) untilHeeded(ctx context.Context, write func() error) error {
	for began := time.Now(); ; {
		err := write()
		if err == nil || !r.op.changesRefuser(err) || time.Since(began) > apply.AdmissionLag || kube.Sleep(ctx, time.Second/2) != nil {
			return err
		}
	}
}

// waitUntilGone waits until what an uninstall has deleted is gone. The error is about objects that it leaves only because they
// couldn't be read: without the records nobody would find them again.
func (r *run) waitUntilGone(ctx context.Context) error {
	if r.op.Verb != Uninstall {
		return nil
	}
	var targets []track.Target
	var unreadable []error
	for _, c := range r.op.Plan.Prune {
		switch {
		case c.IsUnreadable():
			unreadable = append(unreadable, &apply.ObjectError{ID: c.ID, Source: c.Source, Doing: "deleting", Err: errors.New(c.Reason)})
		case c.Action == decide.Delete && c.Live != nil:
			targets = append(targets, track.Target{ID: c.ID, GVK: c.Live.GroupVersionKind(), Until: track.UntilGone, Baseline: c.Live})
		}
	}
	if len(unreadable) > 0 || !r.op.wait {
		return errors.Join(unreadable...)
	}
	return r.runStep(ctx, StepWait, len(targets), func() error {
		err := r.track(ctx, targets, nil)
		timeout, ok := errors.AsType[*track.TimeoutError](err)
		waitsForMore := func(s track.Status) bool { return s.ID.IsCRD() || len(apply.ForeignFinalizers(s.Finalizers)) == 0 }
		if !ok || ctx.Err() != nil || slices.ContainsFunc(timeout.NotReady, waitsForMore) {
			return err
		}
		// The release is uninstalled as far as that is for us to do, as with Helm, which doesn't look.
		for _, s := range timeout.NotReady {
			r.warn(fmt.Sprintf("%s: still exists, %s: %s", s.ID, s.Message, apply.HowToLetGo(s.ID)))
		}
		return nil
	})
}
