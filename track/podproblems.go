package track

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
	"deployer/track/pods"
	"deployer/track/rules"
)

const (
	badNodeGrace    = 2 * time.Minute  // how long one pod may fail while others of the revision are fine
	othersHealGrace = 20 * time.Second // how long pods that may still heal are awaited when others can't
	maxEvictions    = 3                // evictions that are no bad luck any more
	maxPodsNamed    = 20               // named in a problem
	pendingRecheck  = 2 * time.Second  // until it is looked again whether what is missing is on its way
)

// A problemGroup is one class of problem with the pods that have it.
type problemGroup struct {
	symptom pods.Symptom // of the pod that is nearest to being final
	pod     *pods.History
	members []*pods.History
	finalAt time.Time // earliest; zero for never
}

// podSummary counts the new pods.
type podSummary struct {
	eval         *evaluation
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
	summary := &podSummary{eval: e, groups: map[class.Class]*problemGroup{}}
	r := e.obj.podPolicy(e.rollout)
	r.Now = e.obj.clock.shown(e.now)
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
	if at := f.Since.Add(f.StartWindow); s.eval.now.Before(at) {
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
	p.Fatal, p.FinalAt = false, s.finalAt(g)
	s.addPods(p, g)
	if s.runsAreCounted(g) {
		p.Limit = 0
	}
	if what, isMissing := g.pod.Pod.Missing(f.Message); isMissing {
		p.Missing = &what
		if at, ok := s.missingFinalAt(g, what); ok {
			p.FinalAt = at
		}
	}
	if s.awaitsPullSecret(g) {
		for _, history := range g.members {
			history.RestartTimer(f, s.eval.now)
		}
		p.FinalAt = time.Time{}
		s.eval.checkBy(s.eval.now.Add(pendingRecheck))
	}
	if s.eval.obj.updatesInOrder() && !p.FinalAt.IsZero() {
		p.Advice = "delete pod " + g.pod.Pod.Name + " after the fix: a StatefulSet doesn't replace a broken pod by itself"
	}
	s.eval.checkBy(p.FinalAt)
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

// finalAt returns when a problem of pods fails the workload; zero for never.
func (s *podSummary) finalAt(g *problemGroup) time.Time {
	c := g.symptom.Class
	scope := class.InfoOf(c).Scope
	switch {
	case s.eval.obj.gk == kube.PodKind && (c == class.Evicted || c == class.PodFailed):
		return s.eval.now
	case s.runsAreCounted(g):
		return time.Time{}
	case c == class.Evicted && len(g.members) >= maxEvictions && s.replacementsHaveIt(g):
		return s.eval.now
	case scope == class.Informational, g.finalAt.IsZero():
		return time.Time{}
	case c == class.PodFailed:
		return time.Time{} // the controller makes another pod
	case !s.affectsAllPods(g, scope) && !s.replacementsHaveIt(g):
		return g.finalAt.Add(badNodeGrace)
	case pods.IsCrash(c) && s.final < s.failing:
		s.eval.checkBy(g.finalAt) // it may be final for all of them then
		return g.finalAt.Add(othersHealGrace)
	}
	return g.finalAt
}

// runsAreCounted reports whether a problem is one of runs that the object's controller counts itself, as that of Jobs does.
func (s *podSummary) runsAreCounted(g *problemGroup) bool {
	return s.eval.obj.gk == kube.JobKind && runFailures.Has(g.symptom.Class) && g.symptom.Reason != notCreated
}

// replacementsHaveIt reports whether more pods have a problem than are wanted at a time, so that also one that
// replaced another has it. A node that goes may take many pods with it, once.
func (s *podSummary) replacementsHaveIt(g *problemGroup) bool {
	r := s.eval.rollout
	return r != nil && len(g.members) > r.Desired
}

// runFailures are the problems of containers that have run: a Job's controller counts those
// against its backoffLimit.
var runFailures = sets.New(class.CrashLoop, class.OOMKilled, class.LivenessProbeFailed, class.BadCommand, class.ContainerEnded, class.PodFailed, class.Evicted)

// notCreated is the reason of a container that its runtime doesn't even create, as CRI-O with a command that
// isn't there: the kubelet tries again for ever, and the pod of a Job never fails.
const notCreated = "CreateContainerError"

// affectsAllPods reports whether a problem fails the whole workload. For a class that is
// deterministic one failing pod is enough, unless another pod got past the problem. For
// other classes all new pods must fail. In a StatefulSet that updates in order the first
// failing pod is enough, because the update stops there.
func (s *podSummary) affectsAllPods(g *problemGroup, scope class.Scope) bool {
	if s.eval.obj.updatesInOrder() {
		return true
	}
	mayAffectOne := scope != class.Deterministic
	for _, history := range s.eval.obj.newPods.byUID {
		mayAffectOne = mayAffectOne || history.HasPassed(g.symptom.Class, g.symptom.Container)
	}
	return !mayAffectOne || s.ready == 0 && s.failing >= s.total-s.ended
}

// updatesInOrder reports whether the object is a StatefulSet that updates one pod
// after the other.
func (t *trackedObject) updatesInOrder() bool {
	if t.gk != kube.StatefulSetKind || t.observed.object == nil {
		return false
	}
	policy, _, _ := unstructured.NestedString(t.observed.object.Object, "spec", "podManagementPolicy")
	return policy != "Parallel"
}

// creationProblem returns why a controller can't create pods; nil when it can. For a
// Deployment or ReplicaSet a condition says so, for other kinds events do.
func (e *evaluation) creationProblem(r *Rollout) *Finding {
	if e.obj.gk == kube.DeploymentKind || e.obj.gk == kube.ReplicaSetKind {
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
	p.Since, p.Attempts = failure.since, failure.count
	if info := class.InfoOf(c); info.Scope != class.Informational {
		p.FinalAt = failure.since.Add(info.Grace)
	}
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
