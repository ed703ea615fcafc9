package deploy

import (
	"context"
	"fmt"
	"strings"
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

// A LiveObject is an object of a revision's manifest as it is in the cluster now.
type LiveObject struct {
	ID     kube.ID
	GVK    schema.GroupVersionKind    // as in the manifest
	Object *unstructured.Unstructured // nil: it isn't there, or can't be read
	Status track.Status               // Gone when it isn't there
}

// LiveObjects reads the objects of a revision and computes the status of each by its own
// fields, in the order of the manifest. An unreadable object is Waiting, and its message
// says why. It changes nothing.
func (d *Deployer) LiveObjects(ctx context.Context, record *release.Record) ([]LiveObject, error) {
	return d.readLiveObjects(ctx, track.New(d.Cluster, d.Settings.Track), record)
}

func (d *Deployer) readLiveObjects(ctx context.Context, tracker *track.Tracker, record *release.Record) ([]LiveObject, error) {
	manifests, err := chart.Parse(record.Manifest)
	if err != nil {
		return nil, err
	}
	out := make([]LiveObject, len(manifests))
	_ = kube.ForEach(len(manifests), kube.ParallelRequests, func(i int) error {
		out[i] = d.readLiveObject(ctx, record.Namespace, manifests[i].Object) // its status says what can't be read
		return nil
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	fillInStatuses(ctx, tracker, out)
	d.collectHidden([]*release.Record{record}, nil, manifests)
	d.hideIn(out)
	return out, nil
}

// fillInStatuses works out the status of the objects that are there.
func fillInStatuses(ctx context.Context, tracker *track.Tracker, objects []LiveObject) {
	var found []*unstructured.Unstructured
	var entries []*LiveObject
	for i := range objects {
		if o := &objects[i]; o.Object != nil {
			found, entries = append(found, o.Object), append(entries, o)
		}
	}
	for i, status := range tracker.ComputeStatus(ctx, found) {
		entries[i].Status = status
	}
}

// hideIn hides confidential values in the statuses of live objects.
func (d *Deployer) hideIn(objects []LiveObject) {
	for _, o := range objects {
		d.Hidden.AddObject(o.Object)
	}
	for i := range objects {
		s := &objects[i].Status
		s.Message = d.Hidden.Hide(s.Message)
		for j, note := range s.Notes {
			s.Notes[j] = d.Hidden.Hide(note)
		}
		if s.Finding != nil {
			s.Finding.Message = d.Hidden.Hide(s.Finding.Message)
		}
	}
}

// readLiveObject reads an object of a release in a namespace.
func (d *Deployer) readLiveObject(ctx context.Context, namespace string, object *unstructured.Unstructured) LiveObject {
	id := kube.IDOf(object)
	mapping, err := d.Cluster.Mapping(ctx, object.GroupVersionKind(), true)
	if err == nil {
		switch {
		case !mapping.Namespaced:
			id.Namespace = ""
		case id.Namespace == "":
			id.Namespace = namespace
		}
	}
	live, err := d.Cluster.Get(ctx, id)
	out := LiveObject{ID: id, GVK: object.GroupVersionKind(), Object: live, Status: track.Status{ID: id, State: track.Waiting}}
	switch {
	case err != nil:
		out.Status.Message = err.Error()
	case live != nil: // fillInStatuses computes its status
	case kube.IsDeletedWhenFinished(object):
		out.Status.State, out.Status.Unverified, out.Status.Message = track.Ready, true, "no longer in the cluster: it is deleted some time after it finishes"
	default:
		out.Status.State, out.Status.Message = track.Gone, "not in the cluster"
	}
	return out
}

// TrackRevision tracks the objects of a revision until all are ready, one has failed, or the
// timeout of the settings has passed. It changes nothing and needs no lock. It calls
// onEvent with the same events as the wait of an upgrade. The error is that of
// track.Tracker.Wait, or says which objects are missing.
func (d *Deployer) TrackRevision(ctx context.Context, record *release.Record, onEvent EventHandler) error {
	op := &Operation{Verb: Watch, Release: record.Name, Namespace: d.Namespace, Place: d.Place(), Next: record, Plan: &apply.Plan{}}
	r := &run{d: d, op: op, emit: serial(onEvent), began: time.Now(), tracker: track.New(d.Cluster, d.Settings.Track)}
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
	reading, done := LimitStep(ctx, StepObserve, r.d.Settings.Timeout)
	objects, err := r.d.readLiveObjects(reading, r.tracker, record)
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
