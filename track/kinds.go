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
	podsOf       func(*trackedObject) revisionPods // how the pods of its new revision are found; nil: it has none
	runsToEnd    bool                              // its pods end, and its controller counts those that fail; others may be controllers of other objects
	saysNoPods   bool                              // a condition says that it can't create pods; otherwise events do
	eventsReadAt []time.Duration                   // after which times events of an object are read that waits; normal ones tell of load balancers and volumes
	scales       string                            // field of spec that names the workload without which its objects do nothing
}

// kinds are those of which anything is known.
var kinds = map[schema.GroupKind]kind{
	kube.DeploymentKind:            {podsOf: podsOfDeployment, saysNoPods: true},
	kube.ReplicaSetKind:            {podsOf: podsOfReplicaSet, saysNoPods: true},
	kube.StatefulSetKind:           {podsOf: podsOfStatefulSet},
	kube.DaemonSetKind:             {podsOf: podsOfDaemonSet},
	kube.JobKind:                   {podsOf: podsOfJob, runsToEnd: true},
	argoRollout:                    {podsOf: podsOfArgoRollout},
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
func (t *trackedObject) hasPods() bool { return kinds[t.gk].podsOf != nil }

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
	if !t.hasPods() {
		return revisionPods{}
	}
	found := kinds[t.gk].podsOf(t)
	found.query.namespace = t.target.ID.Namespace
	return found
}

// podsAreOutdated reports whether the pods that are watched are of another revision than the present one, as soon as the workload
// itself says so: its events and those of its pods come in any order.
func (t *trackedObject) podsAreOutdated(of revisionPods) bool {
	return t.newPods.owner != "" && (of.owner != "" && of.owner != t.newPods.owner || t.newPods.revision == "")
}

func podsOfDeployment(t *trackedObject) revisionPods {
	return podsOfReplicaSets(t, "pod-template-hash", t.newPods.revision)
}

// podsOfArgoRollout goes by what its controller says of the newest revision.
// https://argo-rollouts.readthedocs.io/en/stable/features/specification/
func podsOfArgoRollout(t *trackedObject) revisionPods {
	return podsOfReplicaSets(t, "rollouts-pod-template-hash", t.observedRevision("currentPodHash"))
}

func podsOfReplicaSets(t *trackedObject, label, hash string) revisionPods {
	if hash == "" {
		return revisionPods{}
	}
	return revisionPods{podQuery{label: label}, hash, replicaSetKey(t.target.ID.Namespace, t.target.ID.Name+"-"+hash)}
}

func podsOfReplicaSet(t *trackedObject) revisionPods {
	selector, err := selectorOf(t.observed.object)
	if err != nil {
		return revisionPods{}
	}
	name := t.observed.object.GetName()
	return revisionPods{podQuery{selector: selector}, name, replicaSetKey(t.target.ID.Namespace, name)}
}

func podsOfStatefulSet(t *trackedObject) revisionPods {
	return podsOfRevision(t, t.observedRevision("updateRevision"))
}

// podsOfDaemonSet goes by a number that the API server raises with each change of the template, so the
// answer to the apply has it already.
// k8s.io/kubernetes/pkg/registry/apps/daemonset/strategy.go
func podsOfDaemonSet(t *trackedObject) revisionPods {
	return podsOfRevision(t, t.observed.object.GetAnnotations()["deprecated.daemonset.template.generation"])
}

func podsOfRevision(t *trackedObject, revision string) revisionPods {
	if revision == "" {
		return revisionPods{}
	}
	return revisionPods{podQuery{label: pods.RevisionLabels[t.gk.Kind]}, revision, ownerKey(t.observed.object.GetUID(), revision)}
}

// observedRevision is what a field of the status says of the newest revision, once the controller has seen the change.
func (t *trackedObject) observedRevision(field string) string {
	if !rules.ChangeObserved(t.observed.object, t.target.Baseline) {
		return ""
	}
	revision, _, _ := unstructured.NestedString(t.observed.object.Object, "status", field)
	return revision
}

func podsOfJob(t *trackedObject) revisionPods {
	uid := t.observed.object.GetUID()
	return revisionPods{podQuery{label: jobLabel}, string(uid), ownerKey(uid, "")}
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
