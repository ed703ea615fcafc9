package track

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
	"deployer/track/finding"
	"deployer/track/pods"
	"deployer/track/rules"
)

// A kind is what tracking has to know of a kind. When its objects are ready is in package rules.
type kind struct {
	newRevision  func(*trackedObject) string // the revision of its pods that are awaited; empty while it isn't known. nil: it has no pods
	podLabel     string                      // of its pods, with their revision; empty: its selector finds them
	makesSets    bool                        // of ReplicaSets, one for each revision, which own the pods
	runsToEnd    bool                        // its pods end, and its controller counts those that fail; others may be controllers of other objects
	saysNoPods   bool                        // a condition says that it can't create pods; otherwise events do
	eventsReadAt []time.Duration             // after which times events of an object are read that waits; normal ones tell of load balancers and volumes
	scales       string                      // field of spec that names the workload without which its objects do nothing
}

// kinds are those of which anything is known.
var kinds = map[schema.GroupKind]kind{
	kube.DeploymentKind:            {newRevision: deploymentRevision, podLabel: "pod-template-hash", makesSets: true, saysNoPods: true},
	argoRollout:                    {newRevision: statusRevision("currentPodHash"), podLabel: "rollouts-pod-template-hash", makesSets: true},
	kube.ReplicaSetKind:            {newRevision: onlyRevision, saysNoPods: true},
	kube.StatefulSetKind:           {newRevision: statusRevision("updateRevision"), podLabel: pods.RevisionLabels["StatefulSet"]},
	kube.DaemonSetKind:             {newRevision: daemonSetRevision, podLabel: pods.RevisionLabels["DaemonSet"]},
	kube.JobKind:                   {newRevision: onlyRevision, podLabel: jobLabel, runsToEnd: true},
	kube.PersistentVolumeClaimKind: {eventsReadAt: []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, time.Minute}},
	kube.ServiceKind:               {eventsReadAt: []time.Duration{20 * time.Second, 55 * time.Second}},

	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:      {scales: "scaleTargetRef"},
	{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}: {scales: "targetRef"},
	{Group: "keda.sh", Kind: "ScaledObject"}:                     {scales: "scaleTargetRef"},
	{Group: "flagger.app", Kind: "Canary"}:                       {scales: "targetRef"},
}

var argoRollout = schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}

// scaleTargetOf returns the workload that an object scales; false if it scales none.
func scaleTargetOf(o *unstructured.Unstructured) (finding.Missing, bool) {
	ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", kinds[o.GroupVersionKind().GroupKind()].scales)
	gvk := schema.FromAPIVersionAndKind(cmp.Or(ref["apiVersion"], "apps/v1"), cmp.Or(ref["kind"], "Deployment"))
	return finding.Missing{Group: gvk.Group, Kind: gvk.Kind, Name: ref["name"]}, ref["name"] != ""
}

// foreignTarget returns what an awaited object scales if the release doesn't declare that.
func (t *trackedObject) foreignTarget() (missingID, bool) {
	if t.observed.object == nil || t.target.Until == UntilGone || t.release.declares == nil {
		return missingID{}, false
	}
	what, scales := scaleTargetOf(t.observed.object)
	id := missingID{t.target.ID.Namespace, what}
	return id, scales && !t.release.declares(idOf(id.namespace, what))
}

// hasPods reports whether the pods of the object are watched.
func (t *trackedObject) hasPods() bool { return kinds[t.gk].newRevision != nil }

// isWorkload reports whether the object is one of Kubernetes' own workloads: no controller of the release is awaited for it.
func (t *trackedObject) isWorkload() bool { return t.hasPods() && !rules.IsCustom(t.gk) }

// mayBeController reports whether the object's pods may be the controller of other objects.
func (t *trackedObject) mayBeController() bool { return t.isWorkload() && !kinds[t.gk].runsToEnd }

// revisionPods say how to find the pods of a workload's new revision; owner is empty while the revision isn't known.
type revisionPods struct {
	query podQuery
	value string // of the label of the query
	owner string // key of the owner of the pods
}

func (t *trackedObject) revisionPods() revisionPods {
	k, id := kinds[t.gk], t.target.ID
	if k.newRevision == nil {
		return revisionPods{}
	}
	found := revisionPods{query: podQuery{namespace: id.Namespace, label: k.podLabel}, value: k.newRevision(t)}
	if k.podLabel == "" {
		var err error
		if found.query.selector, err = selectorOf(t.observed.object); err != nil {
			return revisionPods{}
		}
	}
	switch {
	case found.value == "":
	case k.makesSets:
		found.owner = replicaSetKey(id.Namespace, id.Name+"-"+found.value)
	default:
		found.owner = ownerKey(t.observed.object.GetUID(), found.value)
	}
	return found
}

// podsAreOutdated reports whether the pods that are watched are of another revision than the present one, as soon as the workload
// itself says so: its events and those of its pods come in any order.
func (t *trackedObject) podsAreOutdated(of revisionPods) bool {
	return t.newPods.owner != "" && (of.owner != "" && of.owner != t.newPods.owner || t.newPods.revision == "")
}

func deploymentRevision(t *trackedObject) string { return t.newPods.revision }

// onlyRevision is that of a controller that keeps the pods of one: see pods.Owner.
func onlyRevision(t *trackedObject) string { return string(t.observed.object.GetUID()) }

// daemonSetRevision is a number that the API server raises with each change of the template, so the answer to the apply has it
// already.
// k8s.io/kubernetes/pkg/registry/apps/daemonset/strategy.go
func daemonSetRevision(t *trackedObject) string {
	return t.observed.object.GetAnnotations()["deprecated.daemonset.template.generation"]
}

// statusRevision is what a field of the status says of the newest revision, once the controller has seen the change.
// https://argo-rollouts.readthedocs.io/en/stable/features/specification/
func statusRevision(field string) func(*trackedObject) string {
	return func(t *trackedObject) string {
		if !rules.ChangeObserved(t.observed.object, t.target.Baseline) {
			return ""
		}
		revision, _, _ := unstructured.NestedString(t.observed.object.Object, "status", field)
		return revision
	}
}

// jobLabel is the label of a Job's pods; its value is the Job's UID.
const jobLabel = "batch.kubernetes.io/controller-uid"

func selectorOf(o *unstructured.Unstructured) (string, error) {
	raw, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return "", err
	}
	return metav1.FormatLabelSelector(&selector), nil
}
