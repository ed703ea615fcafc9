package deploy

import (
	"context"
	"fmt"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/internal/program"
	"deployer/release"
	"deployer/track"
)

// TrackRevision tracks the objects of a revision until all are ready, one has failed, or the
// timeout of the settings has passed. It changes nothing and needs no lock. It calls
// onEvent with the same events as the wait of an upgrade. The error is that of
// track.Tracker.Wait, or says which objects are missing.
func (d *Deployer) TrackRevision(ctx context.Context, record *release.Record, onEvent EventHandler) error {
	op := &Operation{Verb: Watch, Release: record.Name, Namespace: d.Namespace, Place: d.Place(), Next: record, Plan: &apply.Plan{}}
	r := &run{Deployer: d, op: op, emit: serial(onEvent), began: time.Now(), tracker: d.newTracker()}
	r.tell(Began, Event{Operation: op})
	err := r.trackRevision(ctx)
	if err != nil {
		err = r.stoppedError(ctx, err)
	}
	r.tell(Ended, Event{Operation: op, Record: record, Took: time.Since(r.began), Err: err})
	return err
}

func (r *run) trackRevision(ctx context.Context) error {
	record := r.op.Next
	if record.Info.Status == helmrelease.StatusUninstalled {
		return uninstalledError(record.Namespace, record.Name, record.Version)
	}
	reading, done := LimitStep(ctx, StepObserve, r.Settings.Timeout)
	objects, err := r.readLiveObjects(reading, r.tracker, record)
	if err = done(err); err != nil {
		return err
	}
	pending := record.Info.Status.IsPending()
	if pending {
		r.warn(fmt.Sprintf("revision %d is %s: objects that its run hasn't applied yet are shown as they were before", record.Version, record.Info.Status))
	}
	var missing []string
	var targets []track.Target
	for _, o := range objects {
		switch {
		case o.Status.State == track.Gone && !pending:
			missing = append(missing, "\n  "+o.ID.String()+" is not in the cluster")
		case o.Object == nil && o.Status.State == track.Ready:
		default:
			targets = append(targets, targetOf(o))
		}
	}
	if len(missing) > 0 {
		return program.WithHint(fmt.Errorf("release %s lacks %d of its objects:%s", record.Name, len(missing), strings.Join(missing, "")),
			fmt.Sprintf("to put them back, deploy it again: "+program.OnCluster+" upgrade -n %s %s CHART", record.Namespace, record.Name))
	}
	return r.waitFor(ctx, targets)
}

// targetOf returns a target for an object that wasn't just applied: its conditions
// count as up to date. One that isn't there is the pending run's to create.
func targetOf(o LiveObject) track.Target {
	target := track.Target{ID: o.ID, GVK: o.GVK, Baseline: o.Object, MayAppearLater: o.Status.State == track.Gone}
	if o.Object != nil {
		target.GVK = o.Object.GroupVersionKind()
	}
	return target
}
