package track

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/track/rules"
)

const revisionRecheck = 5 * time.Second // for the ReplicaSet of a Deployment

// findRevisions lists the ReplicaSets of Deployments whose status doesn't name
// the new one, as after a rollback: one list for each namespace.
func (p *podWatches) findRevisions(now time.Time) {
	unknown := map[string][]*trackedObject{}
	for _, obj := range p.objects {
		if obj.needsPods() && obj.needsRevision() && !obj.status.State.IsFinal() && !obj.timers.arePaused() && !now.Before(obj.lookups.nextAt) {
			unknown[obj.ID.Namespace] = append(unknown[obj.ID.Namespace], obj)
		}
	}
	for namespace, objects := range unknown {
		if at := p.revisionsListedAt[namespace].Add(revisionRecheck); now.Before(at) {
			for _, obj := range objects {
				obj.lookups.nextAt = at // together with Deployments that are found until then
			}
			continue
		}
		p.revisionsListedAt[namespace] = now
		p.findRevisionsIn(namespace, objects)
	}
}

// needsRevision reports whether the object is a Deployment that its controller has seen and whose new
// ReplicaSet isn't known or asked for yet.
func (t *trackedObject) needsRevision() bool {
	return t.gk.Kind == "Deployment" && t.newPods.revision == "" && !t.lookups.inFlight && t.observed.object != nil && rules.ChangeObserved(t.observed.object)
}

func (p *podWatches) findRevisionsIn(namespace string, objects []*trackedObject) {
	client, err := p.cluster.Metadata()
	if err != nil {
		return // Wait has used the connection already
	}
	var opts metav1.ListOptions
	if len(objects) == 1 {
		if opts.LabelSelector, err = selectorOf(objects[0].observed.object); err != nil {
			return
		}
	}
	for _, obj := range objects {
		obj.lookups.inFlight = true
	}
	p.tasks.group.Go(func() {
		found, err := client.Resource(appsv1.SchemeGroupVersion.WithResource("replicasets")).Namespace(namespace).List(p.tasks.ctx, opts)
		p.tasks.send(func() {
			nextAt := p.opts.Now().Add(revisionRecheck)
			if apierrors.IsForbidden(err) {
				nextAt = nextAt.Add(24 * time.Hour)
				p.warn("pod details unavailable: " + refusalText(err, "list replicasets", namespace))
			}
			for _, obj := range objects {
				obj.lookups.inFlight, obj.lookups.nextAt = false, nextAt
				if err == nil {
					obj.setRevision(newestHash(found.Items, obj))
				}
				obj.newPods.isOutdated, obj.timers.isDue = true, true
			}
		})
	})
}

// newestHash finds the hash of a Deployment's ReplicaSet of its present revision.
func newestHash(sets []metav1.PartialObjectMetadata, obj *trackedObject) string {
	for i := range sets {
		if metav1.IsControlledBy(&sets[i], obj.observed.object) && revisionNumberOf(&sets[i]) == revisionNumberOf(obj.observed.object) {
			return sets[i].Labels["pod-template-hash"]
		}
	}
	return ""
}
