package track

import (
	"cmp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/rules"
)

const revisionRecheck = 5 * time.Second // for the ReplicaSet of a Deployment

// podQuery is what one watch of pods can select by: a label with many values,
// or a selector of its own.
type podQuery struct{ namespace, label, selector string }

func (q podQuery) labelSelector(values []string) string {
	return cmp.Or(q.selector, q.label+" in ("+strings.Join(values, ",")+")")
}

// ownerKey identifies one revision of the controller of pods.
func ownerKey(uid types.UID, revision string) string { return string(uid) + "/" + revision }

// replicaSetKey identifies a ReplicaSet, which has one revision, by its name. That is known
// from the Deployment's status; its UID would cost a request.
func replicaSetKey(namespace, name string) string { return namespace + "/" + name }

// updateRevision finds out the new revision of a Deployment, as far as its status tells.
func (t *trackedObject) updateRevision() {
	if t.gk != kube.DeploymentKind {
		return
	}
	if t.newPods.revisionNumber != revisionNumberOf(t.observed.object) { // another ReplicaSet is the newest one
		t.newPods.revision = ""
	}
	if t.newPods.revision == "" {
		t.setRevision(revisionByMessage(t))
	}
}

// setRevision sets the pod-template-hash of a Deployment's new ReplicaSet.
func (t *trackedObject) setRevision(hash string) {
	if hash != "" {
		t.newPods.revision, t.newPods.revisionNumber = hash, revisionNumberOf(t.observed.object)
	}
}

// revisionNumberOf returns the revision number that the Deployment controller wrote to a
// Deployment or ReplicaSet.
func revisionNumberOf(o metav1.Object) string {
	return o.GetAnnotations()["deployment.kubernetes.io/revision"]
}

// revisionByMessage reads the name of the new ReplicaSet from the Deployment's
// progress. A message that was there before the change may be about an old one,
// unless the controller has seen the change and counts no new revision: then
// only the scale has changed.
// k8s.io/kubernetes/pkg/controller/deployment/progress.go
func revisionByMessage(obj *trackedObject) string {
	if !rules.ChangeObserved(obj.observed.object, obj.target.Baseline) {
		return ""
	}
	message := progressingMessage(obj.observed.object)
	if obj.target.Changed && obj.target.Baseline != nil && message == progressingMessage(obj.target.Baseline) && revisionNumberOf(obj.observed.object) != revisionNumberOf(obj.target.Baseline) {
		return ""
	}
	for _, word := range strings.Split(message, `"`) {
		if hash, ok := strings.CutPrefix(word, obj.target.ID.Name+"-"); ok && !strings.ContainsAny(hash, " -") {
			return hash
		}
	}
	return ""
}

func progressingMessage(o *unstructured.Unstructured) string {
	message, _ := rules.Condition(o, "Progressing")["message"].(string)
	return message
}

// findRevisions lists the ReplicaSets of Deployments whose status doesn't name
// the new one, as after a rollback: one list for each namespace.
func (p *podWatches) findRevisions(now time.Time) {
	unknown := map[string][]*trackedObject{}
	for _, obj := range p.objects {
		if obj.needsPods() && obj.needsRevision() && !obj.status.State.IsFinal() && !obj.clock.isPaused() && !now.Before(obj.lookups.nextAt) {
			unknown[obj.target.ID.Namespace] = append(unknown[obj.target.ID.Namespace], obj)
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
	return t.gk == kube.DeploymentKind && t.newPods.revision == "" && !t.lookups.inFlight && t.observed.object != nil && rules.ChangeObserved(t.observed.object, t.target.Baseline)
}

func (p *podWatches) findRevisionsIn(namespace string, objects []*trackedObject) {
	var opts metav1.ListOptions
	if len(objects) == 1 {
		var err error
		if opts.LabelSelector, err = selectorOf(objects[0].observed.object); err != nil {
			return
		}
	}
	for _, obj := range objects {
		obj.lookups.inFlight = true
	}
	p.tasks.group.Go(func() {
		found, err := p.cluster.Metadata().Resource(appsv1.SchemeGroupVersion.WithResource("replicasets")).Namespace(namespace).List(p.tasks.ctx, opts)
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
				obj.newPods.isOutdated, obj.schedule.isDue = true, true
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
