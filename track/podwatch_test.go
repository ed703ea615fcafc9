package track

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/watch"
)

// TestPodsOfAnEarlierRevision: when a workload gets another revision while it is tracked, as by
// kubectl set image, pods of the one before are new no longer, whatever their watch still tells.
func TestPodsOfAnEarlierRevision(t *testing.T) {
	const statefulSet = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, namespace: prod, uid: web, generation: %[2]d, resourceVersion: "%[2]d"},
  spec: {replicas: 1}, status: {observedGeneration: %[2]d, updateRevision: %[1]s}}`
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: prod, uid: web, generation: %[2]d, resourceVersion: "%[2]d",
  annotations: {deployment.kubernetes.io/revision: "%[2]d"}}, spec: {replicas: 1},
  status: {observedGeneration: %[2]d, conditions: [{type: Progressing, message: 'ReplicaSet "web-%[1]s" is progressing.'}]}}`
	const daemonSet = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web, namespace: prod, uid: web, generation: %[2]d, resourceVersion: "%[2]d",
  annotations: {deprecated.daemonset.template.generation: "%[2]d"}}, status: {observedGeneration: %[2]d}}`
	for name, test := range map[string]struct {
		manifest  string
		owner     metav1.OwnerReference // of the pods; of a Deployment the kind alone
		label     string
		revisions [2]string
	}{
		"StatefulSet": {statefulSet, metav1.OwnerReference{Kind: "StatefulSet", Name: "web", UID: "web"}, "controller-revision-hash", [2]string{"old", "new"}},
		"Deployment":  {deployment, metav1.OwnerReference{Kind: "ReplicaSet"}, "pod-template-hash", [2]string{"old", "new"}},
		"DaemonSet":   {daemonSet, metav1.OwnerReference{Kind: "DaemonSet", Name: "web", UID: "web"}, "pod-template-generation", [2]string{"1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := stage(t, fmt.Sprintf(test.manifest, test.revisions[0], 1))
			obj, now := s.objects[0], s.opts.Now()
			changed := func(revision string) watch.Event {
				owner := test.owner
				owner.Controller = new(true)
				if owner.Kind == "ReplicaSet" {
					owner.Name, owner.UID = "web-"+revision, types.UID("set-"+revision)
				}
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: revision, UID: types.UID(revision), Namespace: "prod",
					Labels: map[string]string{test.label: revision}, OwnerReferences: []metav1.OwnerReference{owner}}}
				return watch.Event{Kind: watch.Changed, Object: trimPod(pod)}
			}
			s.pods.request(obj)
			before := &podWatch{stop: func() {}, outage: outage{activity: "watching pods", objects: []*trackedObject{obj}}}
			s.pods.open = append(s.pods.open, before)
			s.pods.handle(before, changed(test.revisions[0]))
			if len(obj.newPods.byUID) != 1 {
				t.Fatalf("new pods = %v, want that of the first revision", obj.newPods.byUID)
			}
			s.pods.handle(before, watch.Event{Kind: watch.Unreachable, Err: fmt.Errorf("no answer")})

			obj.update(normalisedYAML(t, fmt.Sprintf(test.manifest, test.revisions[1], 2)), now)
			if s.pods.handle(before, changed(test.revisions[0])); len(obj.newPods.byUID) != 0 { // told in the same batch
				t.Errorf("new pods = %v before those of the second revision are asked for, want none", obj.newPods.byUID)
			}
			s.pods.request(obj)
			if obj.clock.isPaused() {
				t.Error("its timers wait for the watch of the revision before")
			}
			after := &podWatch{stop: func() {}, outage: outage{activity: "watching pods", objects: []*trackedObject{obj}}}
			s.pods.handle(after, changed(test.revisions[1]))
			s.pods.handle(before, changed(test.revisions[0]))
			if obj.newPods.byUID[types.UID(test.revisions[1])] == nil || len(obj.newPods.byUID) != 1 {
				t.Errorf("new pods = %v, want that of the second revision", obj.newPods.byUID)
			}
			s.pods.handle(before, watch.Event{Kind: watch.Listed, UIDs: map[types.UID]bool{}})
			if len(obj.newPods.byUID) != 1 {
				t.Error("a list of the pods of the revision before drops those of the new one")
			}
			s.pods.nextOpen = now.Add(time.Hour)
			if s.pods.update(now); len(s.pods.open) != 0 {
				t.Error("the watch of the revision before stays open for nobody")
			}
		})
	}
}

// TestRecreatedObjectHasNoPodsYet: those of the one before say nothing of it.
func TestRecreatedObjectHasNoPodsYet(t *testing.T) {
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	web := func(uid string) *unstructured.Unstructured {
		return normalised(t, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "prod", "uid": uid,
			"annotations": map[string]any{"deployment.kubernetes.io/revision": "1"}}})
	}
	obj := newTrackedObject(Target{ID: kube.IDOf(web("1")), Baseline: web("1"), MayAppearLater: true}, &Options{}, begin)
	obj.setRevision("5c7")
	obj.updatePod((&actor{Name: "web-1", Waiting: []string{"InvalidImageName"}}).pod(begin))
	obj.markGone(nil)
	obj.update(web("2"), begin.Add(time.Minute))
	if status, _ := obj.evaluate(begin.Add(2 * time.Minute)); status.Finding != nil || obj.newPods.revision != "" {
		t.Errorf("status = %+v, revision %q, want no pods of the one before", status, obj.newPods.revision)
	}
}
