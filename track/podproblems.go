package track

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
	"deployer/track/pods"
	"deployer/track/rules"
)

const maxPodsNamed = 20 // in a problem

// A problemGroup is one class of problem with the pods that have it.
type problemGroup struct {
	symptom pods.Symptom // of the pod that is nearest to being final
	pod     *pods.History
	members []*pods.History
	finalAt time.Time // earliest; zero for never
}

// mostOnANode is the largest number of pods with the problem that were on the same node, one after the other.
func (g *problemGroup) mostOnANode() (most int) {
	on := map[string]int{}
	for _, history := range g.members {
		on[history.Pod.Node]++
		most = max(most, on[history.Pod.Node])
	}
	return most
}

// podSummary counts the new pods.
type podSummary struct {
	eval         *evaluation // that it is for
	obj          *trackedObject
	now          time.Time
	total, ready int
	ended        int // failed or evicted: no pods that may still get ready
	failing      int // not ready and not ended, with a problem that fails
	final        int // of these, with one that is final for the pod
	groups       map[class.Class]*problemGroup
}

// podProblem returns the worst problem of the new pods; nil when there is none. FinalAt says
// when it fails the workload.
func (e *evaluation) podProblem() *Finding {
	summary := e.summarizePods()
	var worst *Finding
	for _, k := range slices.Sorted(maps.Keys(summary.groups)) {
		worst = worse(worst, summary.problemOf(summary.groups[k]))
	}
	return worst
}

func (e *evaluation) summarizePods() *podSummary {
	summary := &podSummary{eval: e, obj: e.obj, now: e.now, groups: map[class.Class]*problemGroup{}}
	r := e.obj.podPolicy(e.rollout)
	r.Now, r.OldPodsLeaving = e.obj.clock.shown(e.now), r.OldPodsLeaving || e.obj.oldPods.areLeaving(e.now)
	for _, history := range e.obj.newPods.byUID {
		if history.Pod.Deleting {
			continue
		}
		summary.total++
		found := history.Symptoms(r, e.now)
		if history.Pod.Ready {
			summary.ready++
			continue
		}
		failing, final := false, false
		for _, f := range found {
			f.FinalAt = finalInPod(&f)
			f.Fatal = f.IsFinal(e.now)
			failing = summary.addFinding(f, history) || failing
			final = final || f.Fatal
		}
		if history.Pod.Phase == corev1.PodFailed {
			summary.ended++
			continue
		}
		if failing {
			summary.failing++
		}
		if failing && final {
			summary.final++
		}
	}
	return summary
}

// addFinding adds a finding to the group of its class and reports whether it can fail a
// workload.
func (s *podSummary) addFinding(f pods.Symptom, history *pods.History) bool {
	if at := f.Since.Add(f.StartWindow); s.now.Before(at) {
		s.eval.checkBy(at)
		return false
	}
	g := s.groups[f.Class]
	if g == nil {
		g = &problemGroup{}
		s.groups[f.Class] = g
	}
	if n := len(g.members); n == 0 || g.members[n-1] != history {
		g.members = append(g.members, history)
	}
	if g.pod == nil || isNearerToFinal(f, history, g) {
		g.symptom, g.pod = f, history
	}
	g.finalAt = earliest(g.finalAt, f.FinalAt)
	return class.InfoOf(f.Class).Scope != class.Informational
}

func isNearerToFinal(f pods.Symptom, history *pods.History, g *problemGroup) bool {
	if f.Fatal != g.symptom.Fatal {
		return f.Fatal
	}
	if f.Attempts != g.symptom.Attempts {
		return f.Attempts > g.symptom.Attempts
	}
	return history.Pod.Name < g.pod.Pod.Name
}

func (s *podSummary) problemOf(g *problemGroup) *Finding {
	f := g.symptom
	p := new(f.Finding)
	if what, isMissing := g.pod.Pod.Missing(f.Message); isMissing {
		p.Missing = &what
	}
	d := s.podsDeadline(g, p.Missing)
	p.Fatal, p.FinalAt = false, d.finalAt
	s.eval.checkBy(d.finalAt)
	s.eval.checkBy(d.lookAt)
	s.addPods(p, g)
	if s.runsAreCounted(g) {
		p.Limit = 0
	}
	if s.awaitsPullSecret(g) {
		for _, history := range g.members {
			history.RestartTimer(f, s.now)
		}
	}
	if s.obj.updatesInOrder() && !p.FinalAt.IsZero() {
		p.Advice = "delete pod " + g.pod.Pod.Name + " after the fix: a StatefulSet doesn't replace a broken pod by itself"
	}
	return p
}

// addPods names the pods and their nodes, and a node that they all share.
func (s *podSummary) addPods(p *Finding, g *problemGroup) {
	p.PodCount, p.PodTotal = len(g.members), s.total
	nodes := map[string]bool{}
	for _, history := range g.members {
		p.Pods = append(p.Pods, history.Pod.Name)
		if history.Pod.Node != "" {
			nodes[history.Pod.Node] = true
		}
	}
	slices.Sort(p.Pods)
	p.Pods = p.Pods[:min(len(p.Pods), maxPodsNamed)]
	p.Nodes = slices.Sorted(maps.Keys(nodes))
	if len(p.Nodes) == 1 && s.ready > 0 {
		p.SuspectNode = p.Nodes[0]
	}
}

// creationProblem returns why a controller can't create pods; nil when it can. For a
// Deployment or ReplicaSet a condition says so, for other kinds events do.
func (e *evaluation) creationProblem(r *Rollout) *Finding {
	if kinds[e.obj.gk].saysNoPods {
		if message := rules.PodCreationFailure(e.obj.observed.object, e.obj.newReplicaSet()); message != "" {
			e.obj.newPods.recordCreationFailure(message, e.obj.observed.podsCreated(), e.now)
		} else {
			e.obj.newPods.creationFailure = nil
		}
	}
	failure := e.obj.newPods.creationFailure
	if failure == nil || e.obj.observed.podsCreated() > failure.podsBefore {
		e.obj.newPods.creationFailure = nil // a pod was created after all
		return nil
	}
	c := pods.CreationFailureClass(failure.message)
	if c == class.QuotaExceeded && r != nil {
		switch {
		case r.Terminating > 0, e.oldPodsAreLeaving(r):
			c, failure.since = class.WaitingForRoom, e.now // the timer starts when they have left
		case r.Updated == 0 && r.Old > 0 && e.obj.gk == kube.DeploymentKind:
			c = class.QuotaDeadlock
		}
	}
	p := new(finding.Of(c, failure.message))
	p.Since, p.Attempts, p.FinalAt = failure.since, failure.count, creationFinalAt(c, failure.since)
	return p
}

// oldPodsAreLeaving reports whether the rollout of a Deployment has begun to take old pods away, in a cluster that doesn't count
// those that terminate.
func (e *evaluation) oldPodsAreLeaving(r *Rollout) bool {
	if e.obj.gk != kube.DeploymentKind || r.CountsTerminating || e.obj.target.Baseline == nil {
		return false
	}
	before, _, _ := unstructured.NestedInt64(e.obj.target.Baseline.Object, "status", "replicas")
	return 0 < r.Old && r.Old < min(r.Desired, int(before))
}

func (t *trackedObject) newReplicaSet() string {
	if t.newPods.revision == "" || t.gk != kube.DeploymentKind {
		return ""
	}
	return t.target.ID.Name + "-" + t.newPods.revision
}
