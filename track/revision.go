package track

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"deployer/track/pods"
	"deployer/track/rules"
)

const revisionRecheck = 5 * time.Second // for the ReplicaSet of a Deployment

// refreshRevision finds out the new revision of a workload and says how to find its pods; owner
// is empty while that isn't known.
func refreshRevision(obj *trackedObject) (query podQuery, value, owner string) {
	o := obj.observed.object
	query.namespace = obj.ID.Namespace
	switch obj.gk.Kind {
	case "Deployment":
		if obj.newPods.revisionNumber != revisionNumberOf(o) { // another ReplicaSet is the newest one
			obj.newPods.revision = ""
			clear(obj.newPods.byUID)
		}
		if obj.newPods.revision == "" {
			obj.setRevision(revisionByMessage(obj))
		}
		if obj.newPods.revision == "" {
			return query, "", ""
		}
		query.label = "pod-template-hash"
		return query, obj.newPods.revision, replicaSetKey(query.namespace, obj.newReplicaSet())
	case "StatefulSet":
		value, _, _ = unstructured.NestedString(o.Object, "status", "updateRevision")
		if value == "" || !obj.observed.isCurrent() {
			return query, "", ""
		}
	case "DaemonSet":
		// The API server raises it with each change of the template, so the
		// answer to the apply has it already.
		// k8s.io/kubernetes/pkg/registry/apps/daemonset/strategy.go
		value = o.GetAnnotations()["deprecated.daemonset.template.generation"]
	case "Job":
		query.label, value = "batch.kubernetes.io/controller-uid", string(o.GetUID())
		return query, value, ownerKey(o.GetUID(), "")
	case "ReplicaSet":
		selector, err := selectorOf(o)
		if err != nil {
			return query, "", ""
		}
		query.selector = selector
		return query, o.GetName(), replicaSetKey(query.namespace, o.GetName())
	}
	if value == "" {
		return query, "", ""
	}
	query.label = pods.RevisionLabels[obj.gk.Kind]
	return query, value, ownerKey(o.GetUID(), value)
}

func selectorOf(o *unstructured.Unstructured) (string, error) {
	raw, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return "", err
	}
	return metav1.FormatLabelSelector(&selector), nil
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
	if !obj.observed.isCurrent() {
		return ""
	}
	message := progressingMessage(obj.observed.object)
	if obj.Changed && obj.Baseline != nil && message == progressingMessage(obj.Baseline) && revisionNumberOf(obj.observed.object) != revisionNumberOf(obj.Baseline) {
		return ""
	}
	for _, word := range strings.Split(message, `"`) {
		if hash, ok := strings.CutPrefix(word, obj.ID.Name+"-"); ok && !strings.ContainsAny(hash, " -") {
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
	s := p.session
	unknown := map[string][]*trackedObject{}
	for _, obj := range s.objects {
		if (obj.lookups.isSlow || obj.showsLogs()) && obj.gk.Kind == "Deployment" && obj.newPods.revision == "" && !obj.status.State.IsFinal() && !obj.timers.arePaused() &&
			!obj.lookups.inFlight && !now.Before(obj.lookups.nextAt) && obj.observed.object != nil && obj.observed.isCurrent() {
			unknown[obj.ID.Namespace] = append(unknown[obj.ID.Namespace], obj)
		}
	}
	for namespace, objects := range unknown {
		if again := p.revisionsListedAt[namespace].Add(revisionRecheck); now.Before(again) {
			for _, obj := range objects {
				obj.lookups.nextAt = again // together with Deployments that are found until then
			}
			continue
		}
		p.revisionsListedAt[namespace] = now
		p.findRevisionsIn(namespace, objects)
	}
}

func (p *podWatches) findRevisionsIn(namespace string, objects []*trackedObject) {
	s := p.session
	client, err := s.tracker.cluster.Metadata()
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
	s.tasks.group.Go(func() {
		found, err := client.Resource(appsv1.SchemeGroupVersion.WithResource("replicasets")).Namespace(namespace).List(s.tasks.ctx, opts)
		s.tasks.send(func() {
			again := s.opts.Now().Add(revisionRecheck)
			if apierrors.IsForbidden(err) {
				again = again.Add(24 * time.Hour)
				s.warn("pod details unavailable: no permission to list replicasets in namespace " + namespace)
			}
			for _, obj := range objects {
				obj.lookups.inFlight, obj.lookups.nextAt = false, again
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
