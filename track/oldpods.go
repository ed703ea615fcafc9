package track

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
	"deployer/track/pods"
	"deployer/track/rules"
)

// oldPodsCheck is how long a rollout makes no progress before it is looked whether old pods are the reason, and until it is
// looked again.
const oldPodsCheck = 20 * time.Second

// oldPods are the pods of a workload that its rollout waits for: those that are being deleted, and those of earlier revisions.
type oldPods struct {
	lookedAt time.Time // by the object's clock, as all times here
	lookAt   time.Time // when to look again; zero before the first time is known
	inFlight bool
	byUID    map[types.UID]oldPod
}

// An oldPod is one of them, as it was when it was looked at.
type oldPod struct {
	pods.Pod
	leavesWithin time.Duration // the grace period of its deletion
	finalizers   []string
	node         string    // what is wrong with its node; empty when nothing is, or that isn't known
	since        time.Time // when it was first seen as it is
}

// update takes what was found.
func (o *oldPods) update(found []oldPod, now time.Time) {
	before := o.byUID
	o.lookedAt, o.byUID = now, map[types.UID]oldPod{}
	for _, pod := range found {
		pod.since = now
		if known, seen := before[pod.UID]; seen && known.Deleting == pod.Deleting && known.Ready == pod.Ready {
			pod.since = known.since
		}
		o.byUID[pod.UID] = pod
	}
}

// areLeaving reports whether pods are being deleted, and have time to end.
func (o *oldPods) areLeaving(now time.Time) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(o.byUID)), func(p oldPod) bool {
		return p.Deleting && now.Before(p.since.Add(p.leavesWithin+class.InfoOf(class.OldPodStays).Grace))
	})
}

// waitsForOldPods reports whether the controller of a workload makes a new pod only when an old one has gone, or new pods need
// what an old one has.
func (e *evaluation) waitsForOldPods(problem *Finding) bool {
	strategy, _, _ := unstructured.NestedString(e.obj.observed.object.Object, "spec", "strategy", "type")
	needs := problem != nil && slices.Contains([]Class{class.MultiAttach, class.WaitingForRoom, class.Unschedulable, class.NoNodeFits}, problem.Class)
	return e.obj.gk == kube.StatefulSetKind || e.obj.gk == kube.DaemonSetKind || e.obj.gk == kube.DeploymentKind && (strategy == "Recreate" || needs)
}

// oldPodProblem is the finding of the old pod for which a rollout waits the longest; nil when it waits for none. The next look at
// them is asked for.
func (e *evaluation) oldPodProblem(problem *Finding) *Finding {
	if !e.waitsForOldPods(problem) {
		return nil
	}
	old := &e.obj.oldPods
	if old.lookAt.IsZero() {
		old.lookAt = e.obj.timers.progressedAt.Add(oldPodsCheck)
	}
	e.checkBy(old.lookAt)
	var worst *Finding
	for _, pod := range slices.SortedFunc(maps.Values(old.byUID), func(a, b oldPod) int { return strings.Compare(a.Name, b.Name) }) {
		message, advice, patience := e.heldUpBy(&pod)
		f := new(finding.Of(class.OldPodStays, message))
		if f.Since = pod.since.Add(patience); message == "" || e.now.Before(f.Since) {
			e.checkBy(f.Since)
			continue
		}
		f.Pods, f.PodCount, f.PodTotal, f.Advice = []string{pod.Name}, 1, len(old.byUID), advice
		if pod.Node != "" {
			f.Nodes = []string{pod.Node}
		}
		f.FinalAt = oldPodFinalAt(f.Since, e.now, old.lookedAt)
		worst = worse(worst, f)
	}
	return worst
}

// heldUpBy says why a rollout waits for an old pod, what to do, and how long that is to be expected; empty when it doesn't. In a
// StatefulSet that updates in order a pod that isn't ready stops the update, whatever its revision.
// https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback
func (e *evaluation) heldUpBy(pod *oldPod) (message, advice string, patience time.Duration) {
	switch {
	case pod.Deleting && len(pod.finalizers) > 0:
		return "it is being deleted" + finalizersText(pod.finalizers), "find out why that finalizer of pod " + pod.Name + " isn't removed", pod.leavesWithin
	case pod.Deleting:
		return rules.JoinText("it is being deleted, and its node hasn't ended it", pod.node),
			"if its node is gone for good, delete pod " + pod.Name + " with --force --grace-period=0", pod.leavesWithin
	case !pod.Ready && e.obj.updatesInOrder():
		why, policy := pod.node, pods.Policy{Unchanged: true, Now: e.now}
		history := pods.NewHistory(pod.Pod, policy)
		history.Update(pod.Pod)
		for _, s := range history.Symptoms(policy, e.now) {
			why = s.Text()
		}
		return rules.JoinText("it is of an earlier revision and isn't ready, which stops an update in order", why),
			"delete pod " + pod.Name + ": a StatefulSet doesn't replace a broken pod by itself", rules.LongestSilence(e.obj.observed.object)
	}
	return "", "", 0
}

// lookAtOldPods lists the old pods of a workload whose rollout doesn't go on.
func (w *wait) lookAtOldPods(obj *trackedObject, now time.Time) {
	old := &obj.oldPods
	at := obj.clock.at(now)
	if old.lookAt.IsZero() || at.Before(old.lookAt) || old.inFlight || !obj.lookups.isSlow {
		return
	}
	if old.lookAt = obj.timers.progressedAt.Add(oldPodsCheck); at.Before(old.lookAt) {
		return // it has gone on
	}
	selector, err := selectorOf(obj.observed.object)
	if old.lookAt = at.Add(oldPodsCheck); err != nil {
		return
	}
	old.inFlight = true
	namespace, isOld := obj.target.ID.Namespace, obj.oldPodsFilter()
	w.tasks.group.Go(func() {
		found, err := w.listOldPods(namespace, selector, isOld)
		w.tasks.send(func() {
			old.inFlight, obj.schedule.isDue = false, true
			if err == nil { // without a permission nothing is known of them
				old.update(found, obj.clock.at(w.opts.Now()))
			}
		})
	})
}

// oldPodsFilter reports whether a pod is one of the object's that leaves, or of an earlier revision. It may be called by any goroutine.
func (t *trackedObject) oldPodsFilter() func(pods.Pod) bool {
	uid, name, revision, newSet, ofSets := t.observed.object.GetUID(), t.target.ID.Name+"-", t.newPods.revision, t.newReplicaSet(), t.gk == kube.DeploymentKind
	return func(p pods.Pod) bool {
		isOwn := p.Owner.UID == uid || ofSets && strings.HasPrefix(p.Owner.Name, name)
		isNew := p.Owner.Revision == revision || ofSets && p.Owner.Name == newSet
		return isOwn && (p.Deleting || !isNew && revision != "")
	}
}

// listOldPods lists old pods, with what is wrong with the nodes of those that aren't ready.
func (w *wait) listOldPods(namespace, selector string, isOld func(pods.Pod) bool) ([]oldPod, error) {
	ctx, stop := context.WithTimeout(w.tasks.ctx, lookupTimeout)
	defer stop()
	list, err := w.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var out []oldPod
	for i := range list.Items {
		p := &list.Items[i]
		pod := oldPod{Pod: pods.Trim(p), finalizers: p.Finalizers}
		if !isOld(pod.Pod) {
			continue
		}
		if p.DeletionGracePeriodSeconds != nil {
			pod.leavesWithin = time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
		}
		if pod.Node != "" && (pod.Deleting || !pod.Ready) {
			node, err := w.typed.CoreV1().Nodes().Get(ctx, pod.Node, metav1.GetOptions{})
			pod.node = nodeTrouble(pod.Node, node, err)
		}
		out = append(out, pod)
	}
	return out, nil
}

// nodeTrouble says what is wrong with a node; empty when nothing is, or that isn't known.
func nodeTrouble(name string, node *corev1.Node, err error) string {
	if apierrors.IsNotFound(err) {
		return "node " + name + " isn't there any more"
	}
	if err == nil {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return fmt.Sprintf("node %s isn't ready: %s", name, rules.OneLine(c.Message))
			}
		}
	}
	return ""
}
