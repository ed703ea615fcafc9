package track

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/track/class"
)

type ctx = context.Context

const servedRecheck = 500 * time.Millisecond // between two questions whether a new kind is served

// lookCloser looks closer at what is slow: its pods, its events, and what only a
// question can tell.
func (s *session) lookCloser(now time.Time) {
	for _, sub := range s.objects {
		if sub.status.State.IsFinal() || sub.Until == UntilGone || sub.timers.arePaused() {
			continue
		}
		if at := s.nextLookAt(sub); !at.IsZero() && !now.Before(at) {
			s.lookAt(sub, now)
		}
		if (sub.lookups.isSlow || s.logs.isLive(sub)) && sub.isWorkload() && sub.observed.object != nil && sub.newPods.isOutdated {
			sub.newPods.isOutdated = false
			s.pods.want(sub)
		}
	}
	s.events.readQueued()
	s.pods.findRevisions(now)
	s.pods.update(now)
}

// nextLookAt is when to look at an object next; zero for never.
func (s *session) nextLookAt(sub *trackedObject) time.Time {
	if sub.observed.object == nil || sub.Until == UntilGone {
		return time.Time{}
	}
	if sub.awaitsServing() {
		if sub.lookups.inFlight {
			return time.Time{}
		}
		return latest(sub.lookups.nextAt, sub.timers.appliedAt)
	}
	if !sub.lookups.isSlow {
		if sub.gk.Kind == "PersistentVolumeClaim" {
			return sub.timers.appliedAt.Add(eventReadTimes["PersistentVolumeClaim"][0])
		}
		return sub.timers.appliedAt.Add(slowRolloutAfter)
	}
	if times, _, since := s.lookTimes(sub); sub.lookups.eventReads < len(times) && !sub.lookups.inFlight {
		return since.Add(times[sub.lookups.eventReads])
	}
	if sub.gk.Kind == "Deployment" && sub.newPods.revision == "" && !sub.lookups.inFlight && sub.isObserved() {
		return latest(sub.lookups.nextAt, sub.timers.appliedAt)
	}
	return time.Time{}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *session) lookAt(sub *trackedObject, now time.Time) {
	if sub.awaitsServing() {
		s.checkServed(sub, now)
		return
	}
	sub.lookups.isSlow = true
	s.events.addOwner(sub.observed.object.GetUID(), sub, "")
	s.events.watch(sub.ID.Namespace)
	if times, uid, since := s.lookTimes(sub); sub.lookups.eventReads < len(times) && !now.Before(since.Add(times[sub.lookups.eventReads])) {
		sub.lookups.eventReads++
		s.events.queueRead(sub, uid)
	}
}

// lookTimes are when to read whose events: of the object, or of one of its
// pods that finds no node.
func (s *session) lookTimes(sub *trackedObject) ([]time.Duration, types.UID, time.Time) {
	if p := sub.status.Problem; p != nil && sub.gk.Kind != "Service" {
		switch p.Class {
		case class.Unschedulable, class.NoNodeFits, class.WaitingForNode:
			for uid, m := range sub.newPods.byUID {
				if !m.Pod.Scheduling.Done {
					return eventReadTimes["Pod"], uid, p.Since
				}
			}
		}
	}
	if sub.gk == podKind {
		return nil, "", time.Time{}
	}
	return eventReadTimes[sub.gk.Kind], sub.observed.object.GetUID(), sub.timers.appliedAt
}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// awaitsServing reports whether the object is a CustomResourceDefinition of which
// nothing is missing but that the API server answers for its kind.
func (s *trackedObject) awaitsServing() bool {
	return s.gk == definitionKind && s.status.Message == notServedMessage
}

const notServedMessage = "established, not served yet"

// checkServed asks whether the new kind answers.
func (s *session) checkServed(sub *trackedObject, now time.Time) {
	typed, err := s.tracker.cluster.Typed()
	if err != nil {
		return
	}
	group, _, _ := unstructured.NestedString(sub.observed.object.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(sub.observed.object.Object, "spec", "names", "plural")
	version := servedVersion(sub.observed.object)
	sub.lookups.inFlight, sub.lookups.nextAt = true, now.Add(servedRecheck)
	s.tasks.group.Go(func() {
		found, err := typed.Discovery().ServerResourcesForGroupVersionWithContext(s.tasks.ctx, group+"/"+version)
		served := version == ""
		if err == nil {
			for _, r := range found.APIResources {
				served = served || r.Name == plural
			}
		}
		s.tasks.send(func() {
			sub.lookups.inFlight, sub.observed.isServed = false, served
			if served {
				s.tracker.cluster.ForgetKinds()
			}
			s.dirty[sub] = true
		})
	})
}

// servedVersion is the newest version that a definition serves; empty when it
// serves none.
func servedVersion(definition *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if served, _ := m["served"].(bool); served {
			name, _ := m["name"].(string)
			return name
		}
	}
	return ""
}

const (
	// What controllers make may come some time after they say that they are ready.
	madeByControllerWithin = 30 * time.Second
	// A kubelet that has looked too early looks again after ten to fifteen seconds.
	// k8s.io/kubernetes/pkg/kubelet/pod_workers.go
	noticedByKubeletWithin = 20 * time.Second
)

// willCreate reports whether something that is on its way will make the object:
// another target, or the controller of one.
func (s *session) willCreate(namespace string, ref Ref) bool {
	for _, sub := range s.objects {
		if sub.observed.object == nil || sub.ID.Namespace != namespace || !slices.Contains(createdObjects(sub.observed.object), ref) {
			continue
		}
		patience := madeByControllerWithin
		if sub.ID.Kind == ref.Kind {
			patience = noticedByKubeletWithin
		}
		recent := sub.status.State == Ready && s.opts.Now().Sub(sub.timers.appliedAt)-sub.status.Waited < patience
		if recent || !sub.status.State.IsFinal() {
			return true
		}
	}
	return false
}

// createdObjects are the objects that come with an object, in its namespace.
func createdObjects(o *unstructured.Unstructured) []Ref {
	at := func(path ...string) string { v, _, _ := unstructured.NestedString(o.Object, path...); return v }
	own := Ref{Kind: o.GetKind(), Name: o.GetName()}
	secret := ""
	switch o.GetKind() {
	case "Certificate":
		secret = at("spec", "secretName")
	case "ExternalSecret":
		secret = at("spec", "target", "name")
	}
	switch {
	case secret == "" && (o.GetKind() == "ExternalSecret" || o.GetKind() == "SealedSecret"):
		secret = o.GetName()
	case secret == "":
		return []Ref{own}
	}
	return []Ref{own, {Kind: "Secret", Name: secret}}
}
