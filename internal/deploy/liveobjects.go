package deploy

import (
	"context"
	"fmt"
	"sync"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply"
	"deployer/chart"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/release"
	"deployer/track"
)

// maxParallelReads is how many objects are read at a time.
const maxParallelReads = 8

// A Live object is one of a revision's manifest as the cluster has it now.
type LiveObject struct {
	ID     kube.ID
	GVK    schema.GroupVersionKind    // as in the manifest
	Object *unstructured.Unstructured // nil: it isn't there, or can't be read
	Status track.Status               // Gone when it isn't there
}

// LiveObjects reads the objects of a revision and judges each by its own fields, in
// the order of the manifest. What can't be read is Waiting, and its message
// says why. It changes nothing.
func (d *Deployer) LiveObjects(ctx context.Context, record *release.Record) ([]LiveObject, error) {
	return d.readLiveObjects(ctx, d.newTracker(), record)
}

func (d *Deployer) newTracker() *track.Tracker { return track.New(d.Cluster, d.Settings.Track) }

func (d *Deployer) readLiveObjects(ctx context.Context, tracker *track.Tracker, record *release.Record) ([]LiveObject, error) {
	manifests, err := chart.Parse(record.Manifest)
	if err != nil {
		return nil, err
	}
	out := make([]LiveObject, len(manifests))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(maxParallelReads, len(manifests)) {
		wg.Go(func() {
			for i := range next {
				out[i] = d.readLiveObject(ctx, manifests[i].Object)
			}
		})
	}
	for i := range manifests {
		next <- i
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	fillInStatuses(ctx, tracker, out)
	d.hide([]*release.Record{record}, nil, manifests)
	d.hideIn(out)
	return out, nil
}

// fillInStatuses works out the status of the objects that are there.
func fillInStatuses(ctx context.Context, tracker *track.Tracker, objects []LiveObject) {
	var there []*unstructured.Unstructured
	var whose []*LiveObject
	for i := range objects {
		if o := &objects[i]; o.Object != nil {
			there, whose = append(there, o.Object), append(whose, o)
		}
	}
	for i, status := range tracker.ComputeStatus(ctx, there) {
		whose[i].Status = status
	}
}

// hideIn takes what is confidential out of what is said of live objects.
func (d *Deployer) hideIn(objects []LiveObject) {
	for _, o := range objects {
		d.Hidden.Object(o.Object)
	}
	for i := range objects {
		s := &objects[i].Status
		s.Message = d.Hidden.Hide(s.Message)
		for j, note := range s.Notes {
			s.Notes[j] = d.Hidden.Hide(note)
		}
		if s.Problem != nil {
			s.Problem.Message = d.Hidden.Hide(s.Problem.Message)
		}
	}
}

func (d *Deployer) readLiveObject(ctx context.Context, object *unstructured.Unstructured) LiveObject {
	id := kube.IDOf(object)
	mapping, err := d.Cluster.Mapping(ctx, object.GroupVersionKind(), true)
	if err == nil {
		switch {
		case !mapping.Namespaced:
			id.Namespace = ""
		case id.Namespace == "":
			id.Namespace = d.Namespace
		}
	}
	live, err := d.Cluster.Get(ctx, id)
	out := LiveObject{ID: id, GVK: object.GroupVersionKind(), Object: live, Status: track.Status{ID: id, State: track.Waiting}}
	switch {
	case err != nil:
		out.Status.Message = err.Error()
	case live != nil: // judged together with the others
	case isDeletedWhenFinished(object):
		out.Status.State, out.Status.Unverified, out.Status.Message = track.Ready, true, "no longer there: it goes some time after it has finished"
	default:
		out.Status.State, out.Status.Message = track.Gone, "not in the cluster"
	}
	return out
}

// isDeletedWhenFinished tells whether the cluster deletes an object when it has finished.
// https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/
func isDeletedWhenFinished(object *unstructured.Unstructured) bool {
	_, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "ttlSecondsAfterFinished")
	return found && err == nil && kube.IDOf(object).Kind == "Job"
}

// A MissingError says that objects of a release are not in the cluster.
type MissingError struct {
	Release string
	Objects []kube.ID
}

func (e *MissingError) Error() string {
	text := fmt.Sprintf("release %s lacks %d of its objects:", e.Release, len(e.Objects))
	for _, id := range e.Objects {
		text += "\n  " + id.String() + " is not in the cluster"
	}
	return text
}

// Hint says what to do about it.
func (e *MissingError) Hint() string {
	return fmt.Sprintf("to put them back, deploy it again: "+program.Name+" upgrade %s CHART", e.Release)
}

// Watch follows the objects of a revision until all are ready, one has failed,
// or the timeout of the settings is over. It changes nothing and needs no lock;
// observe hears of it as of the wait of an upgrade. The error is that of
// track.Tracker.Wait, or a *MissingError.
func (d *Deployer) Watch(ctx context.Context, record *release.Record, observe Observer) error {
	op := &Operation{Verb: Watch, Release: record.Name, Namespace: d.Namespace, Next: record, Plan: &apply.Plan{}}
	r := &run{Deployer: d, op: op, observe: Serial(observe), began: time.Now(), tracker: d.newTracker()}
	r.observe(Began{Operation: op})
	err := r.watch(ctx)
	if err != nil {
		err = r.orStopped(ctx, err)
	}
	r.observe(Ended{Operation: op, Record: record, Took: time.Since(r.began), Err: err})
	return err
}

func (r *run) watch(ctx context.Context) error {
	record := r.op.Next
	if record.Info.Status == helmrelease.StatusUninstalled {
		return &UninstalledError{Name: record.Name, Revision: record.Version}
	}
	objects, err := r.readLiveObjects(ctx, r.tracker, record)
	if err != nil {
		return err
	}
	pending := record.Info.Status.IsPending()
	if pending {
		r.observe(Warned{Text: fmt.Sprintf("revision %d is %s: what its run hasn't applied yet is judged as it was before", record.Version, record.Info.Status)})
	}
	missing := &MissingError{Release: record.Name}
	var targets []track.Target
	for _, o := range objects {
		switch {
		case o.Status.State == track.Gone && !pending:
			missing.Objects = append(missing.Objects, o.ID)
		case o.Object == nil && o.Status.State == track.Ready:
		default:
			targets = append(targets, watchTarget(o))
		}
	}
	if len(missing.Objects) > 0 {
		return missing
	}
	return r.runStep(ctx, StepWait, len(targets), func() error { return r.track(ctx, targets) })
}

// watchTarget is a target for an object that nobody has just applied: its
// conditions are taken for what they say.
func watchTarget(o LiveObject) track.Target {
	target := track.Target{ID: o.ID, GVK: o.GVK, Baseline: o.Object}
	if o.Object != nil {
		target.GVK = o.Object.GroupVersionKind()
	}
	return target
}
