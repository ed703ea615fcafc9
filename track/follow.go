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

const servedAgain = 500 * time.Millisecond // between two questions whether a new kind is served

// follow looks closer at what is slow: its pods, its events, and what only a
// question can tell.
func (s *session) follow(now time.Time) {
	for _, sub := range s.subjects {
		if sub.status.State.Done() || sub.Until == UntilGone || !sub.frozen.IsZero() {
			continue
		}
		if at := s.followAt(sub); !at.IsZero() && !now.Before(at) {
			s.look(sub, now)
		}
		if (sub.slow || s.logs.live(sub)) && sub.workload() && sub.object != nil && sub.moved {
			sub.moved = false
			s.lookAtPods(sub)
		}
	}
	s.readEvents()
	s.askRevisions(now)
	s.openPods(now)
}

// followAt is when to look at an object next; zero for never.
func (s *session) followAt(sub *subject) time.Time {
	if sub.object == nil || sub.Until == UntilGone {
		return time.Time{}
	}
	if sub.unserved() {
		if sub.asking {
			return time.Time{}
		}
		return later(sub.askAt, sub.applied)
	}
	if !sub.slow {
		if sub.gk.Kind == "PersistentVolumeClaim" {
			return sub.applied.Add(looks["PersistentVolumeClaim"][0])
		}
		return sub.applied.Add(slowAfter)
	}
	if times, _, since := s.lookTimes(sub); sub.looks < len(times) && !sub.asking {
		return since.Add(times[sub.looks])
	}
	if sub.gk.Kind == "Deployment" && sub.revision == "" && !sub.asking && sub.observed() {
		return later(sub.askAt, sub.applied)
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *session) look(sub *subject, now time.Time) {
	if sub.unserved() {
		s.askServed(sub, now)
		return
	}
	sub.slow = true
	s.events.know(sub.object.GetUID(), sub, "")
	s.watchEvents(sub.ID.Namespace)
	if times, uid, since := s.lookTimes(sub); sub.looks < len(times) && !now.Before(since.Add(times[sub.looks])) {
		sub.looks++
		s.askEvents(sub, uid)
	}
}

// lookTimes are when to read whose events: of the object, or of one of its
// pods that finds no node.
func (s *session) lookTimes(sub *subject) ([]time.Duration, types.UID, time.Time) {
	if p := sub.status.Problem; p != nil && sub.gk.Kind != "Service" {
		switch p.Class {
		case class.Unschedulable, class.NoNodeFits, class.WaitingForNode:
			for uid, m := range sub.pods {
				if !m.Pod.Scheduled {
					return looks["Pod"], uid, p.Since
				}
			}
		}
	}
	if sub.gk == podKind {
		return nil, "", time.Time{}
	}
	return looks[sub.gk.Kind], sub.object.GetUID(), sub.applied
}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// unserved reports whether the object is a CustomResourceDefinition of which
// nothing is missing but that the API server answers for its kind.
func (s *subject) unserved() bool {
	return s.gk == definitionKind && s.status.Message == notServed
}

const notServed = "established, not served yet"

// askServed asks whether the new kind answers.
func (s *session) askServed(sub *subject, now time.Time) {
	typed, err := s.tracker.cluster.Typed()
	if err != nil {
		return
	}
	group, _, _ := unstructured.NestedString(sub.object.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(sub.object.Object, "spec", "names", "plural")
	version := servedVersion(sub.object)
	sub.asking, sub.askAt = true, now.Add(servedAgain)
	s.group.Go(func() {
		found, err := typed.Discovery().ServerResourcesForGroupVersionWithContext(s.ctx, group+"/"+version)
		served := version == ""
		if err == nil {
			for _, r := range found.APIResources {
				served = served || r.Name == plural
			}
		}
		s.send(func() {
			sub.asking, sub.served = false, served
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
	madeLater = 30 * time.Second
	// A kubelet that has looked too early looks again after ten to fifteen seconds.
	// k8s.io/kubernetes/pkg/kubelet/pod_workers.go
	seenLater = 20 * time.Second
)

// pending reports whether something that is on its way will make the object:
// another target, or the controller of one.
func (s *session) pending(namespace string, ref Ref) bool {
	for _, sub := range s.subjects {
		if sub.object == nil || sub.ID.Namespace != namespace || !slices.Contains(makes(sub.object), ref) {
			continue
		}
		patience := madeLater
		if sub.ID.Kind == ref.Kind {
			patience = seenLater
		}
		recent := sub.status.State == Ready && s.opts.Now().Sub(sub.applied)-sub.status.Waited < patience
		if recent || !sub.status.State.Done() {
			return true
		}
	}
	return false
}

// makes are the objects that come with an object, in its namespace.
func makes(o *unstructured.Unstructured) []Ref {
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
