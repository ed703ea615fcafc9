package track

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/pods"
	"deployer/track/rules"
)

const servedRecheck = 500 * time.Millisecond // between two checks whether a new kind is served

// lookUpDetails reads what the watches of the objects don't show: pods and events of slow
// rollouts, and whether new kinds are served.
func (w *wait) lookUpDetails(now time.Time) {
	for _, obj := range w.objects {
		if obj.status.State.IsFinal() || obj.target.Until == UntilGone || obj.clock.isPaused() {
			continue
		}
		if at := w.nextLookupAt(obj); !at.IsZero() && !now.Before(at) {
			w.lookUpObject(obj, now)
		}
		w.readExecError(obj)
		w.lookAtOldPods(obj, now)
		if obj.needsPods() && obj.observed.object != nil && obj.newPods.isOutdated {
			obj.newPods.isOutdated = false
			w.pods.request(obj)
		}
	}
	w.events.readQueued()
	w.pods.findRevisions(now)
	w.pods.update(now)
}

// needsPods reports whether the object has pods and they are watched: because its rollout is
// slow, or for their logs.
func (t *trackedObject) needsPods() bool {
	return t.hasPods() && (t.lookups.isSlow || t.showsLogs())
}

// nextLookupAt returns when to look up the next detail of an object; zero for never.
func (w *wait) nextLookupAt(obj *trackedObject) time.Time {
	switch {
	case obj.observed.object == nil || obj.target.Until == UntilGone:
		return time.Time{}
	case obj.lookups.isSlow || obj.awaitsServing():
	case !obj.timers.readySince.IsZero():
		return time.Time{} // it is ready, and only has to stay so
	default:
		return obj.clock.shown(obj.timers.appliedAt.Add(slowRolloutAfter))
	}
	if obj.lookups.inFlight {
		return time.Time{}
	}
	at, _ := obj.nextEventRead()
	if obj.awaitsServing() || at.IsZero() && obj.needsRevision() {
		return obj.lookups.nextAt
	}
	return at
}

// lookUpObject asks whether a new kind is served, or follows the events of a slow object.
func (w *wait) lookUpObject(obj *trackedObject, now time.Time) {
	if obj.awaitsServing() {
		w.checkServed(obj, now)
		return
	}
	obj.lookups.isSlow = true
	w.events.addOwner(obj.observed.object.GetUID(), obj, "")
	w.events.watch(obj.target.ID.Namespace)
	if at, uid := obj.nextEventRead(); !at.IsZero() && !now.Before(at) {
		obj.lookups.eventReads++
		w.events.queueRead(obj, uid)
	}
}

// nextEventRead returns when events are read next, zero for never, and about which UID: about the
// object, or about one of its pods that can't be scheduled.
func (t *trackedObject) nextEventRead() (time.Time, types.UID) {
	times, uid, since := kinds[t.gk].eventsReadAt, t.observed.object.GetUID(), t.timers.appliedAt
	if p := t.status.Finding; p != nil && t.gk != kube.ServiceKind {
		switch p.Class {
		case class.Unschedulable, class.NoNodeFits, class.WaitingForNode:
			for pod, history := range t.newPods.byUID {
				if !history.Pod.Scheduling.Done {
					times, uid, since = unscheduledReadTimes, pod, t.clock.at(p.Since)
				}
			}
		}
	}
	if t.lookups.eventReads >= len(times) {
		return time.Time{}, ""
	}
	return t.clock.shown(since.Add(times[t.lookups.eventReads])), uid
}

// awaitsServing reports whether the object is a CustomResourceDefinition that is
// established but whose kind isn't served yet.
func (t *trackedObject) awaitsServing() bool {
	return t.gk == kube.CRDKind && t.status.Message == notServedMessage
}

const notServedMessage = "established, not served yet"

// checkServed asks discovery whether the new kind is served.
func (w *wait) checkServed(obj *trackedObject, now time.Time) {
	group, _, _ := unstructured.NestedString(obj.observed.object.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(obj.observed.object.Object, "spec", "names", "plural")
	version := servedVersion(obj.observed.object)
	obj.lookups.inFlight, obj.lookups.nextAt = true, now.Add(servedRecheck)
	w.tasks.group.Go(func() {
		found, err := w.typed.Discovery().ServerResourcesForGroupVersionWithContext(w.tasks.ctx, group+"/"+version)
		served := version == "" || err == nil && slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == plural })
		w.tasks.send(func() {
			obj.lookups.inFlight, obj.observed.isServed = false, served
			if served {
				w.cluster.ForgetKinds()
			}
			obj.schedule.isDue = true
		})
	})
}

// servedVersion is the first version that a definition serves; empty when it serves none.
func servedVersion(definition *unstructured.Unstructured) string {
	for _, version := range rules.Items(definition, "spec", "versions") {
		if served, _ := version["served"].(bool); served {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

// execErrorLimit is enough for a line that says why a command was not executed.
const execErrorLimit = 1 << 10

// readExecError finds out from the log, once for each container that crashes and whose status
// says no reason, why its command was not executed. runc starts the container before the
// kernel executes the command; when the kernel refuses, as for a program of another
// platform, only the log says so.
func (s *session) readExecError(obj *trackedObject) {
	p := obj.status.Finding
	if p == nil || p.Class != class.CrashLoop || obj.gk == kube.JobKind || obj.lookups.execErrorsRead[p.Container] {
		return
	}
	for _, h := range obj.newPods.byUID {
		c := h.UnexplainedCrash(p.Container)
		if c == nil {
			continue
		}
		obj.lookups.execErrorsRead[p.Container] = true
		pod, container := h.Pod, *c
		s.tasks.group.Go(func() {
			text := s.execErrorOf(pod, container)
			s.tasks.send(func() { h.SetExecError(container.Name, text); obj.schedule.isDue = true })
		})
		return
	}
}

// execErrorOf returns the log of a container's last crashed run if it is a single line;
// empty when it is longer, or can't be read.
func (s *session) execErrorOf(pod pods.Pod, c pods.Container) string {
	ctx, stop := context.WithTimeout(s.tasks.ctx, lookupTimeout)
	defer stop()
	text, err := s.typed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: c.PlainName, Previous: c.Running, LimitBytes: new(int64(execErrorLimit)),
	}).DoRaw(ctx)
	line := strings.TrimSpace(string(text))
	if err != nil || strings.Contains(line, "\n") {
		return ""
	}
	return line
}
