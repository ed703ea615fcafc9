package track

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
	"deployer/track/class"
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
	class.Class
	finding pods.Finding // of the pod that is nearest to being final
	pod     *pods.History
	members []*pods.History
	finalAt time.Time // earliest; zero for never
}

// podSummary counts the new pods.
type podSummary struct {
	total, ready int
	failing      int // not ready, with a problem that fails
	final        int // of these, with one that is final for the pod
	groups       map[class.Class]*problemGroup
	recheckAt    time.Time // when time alone may add a problem; zero for never
}

// podProblem returns the worst problem of the new pods; nil when there is none. FinalAt says
// when it fails the workload.
func (t *trackedObject) podProblem(now time.Time) *Problem {
	summary := t.summarizePods(now)
	var worst *Problem
	for _, k := range slices.Sorted(maps.Keys(summary.groups)) {
		p := t.problemOf(summary.groups[k], summary, now)
		if p != nil && (worst == nil || isWorse(p, worst, now)) {
			worst = p
		}
	}
	return worst
}

func (t *trackedObject) summarizePods(now time.Time) podSummary {
	summary := podSummary{groups: map[class.Class]*problemGroup{}}
	r := t.podPolicy()
	for _, history := range t.newPods.byUID {
		if history.Pod.Deleting {
			continue
		}
		summary.total++
		found := history.Findings(r, now)
		if history.Pod.Ready {
			summary.ready++
			continue
		}
		failing, final := false, false
		for _, f := range found {
			failing = summary.addFinding(f, history, now) || failing
			final = final || f.Final
		}
		if failing {
			summary.failing++
		}
		if failing && final {
			summary.final++
		}
	}
	t.timers.recheckBy(summary.recheckAt)
	return summary
}

// addFinding adds a finding to the group of its class and reports whether it can fail a
// workload.
func (c *podSummary) addFinding(f pods.Finding, history *pods.History, now time.Time) bool {
	if at := history.ReadinessOverdueAt(f); f.Class == class.ReadinessProbeFailed && now.Before(at) {
		if c.recheckAt.IsZero() || at.Before(c.recheckAt) {
			c.recheckAt = at
		}
		return false
	}
	g := c.groups[f.Class]
	if g == nil {
		g = &problemGroup{Class: f.Class}
		c.groups[f.Class] = g
	}
	if n := len(g.members); n == 0 || g.members[n-1] != history {
		g.members = append(g.members, history)
	}
	if g.pod == nil || isNearerToFinal(f, history, g) {
		g.finding, g.pod = f, history
	}
	if !f.FinalAt.IsZero() && (g.finalAt.IsZero() || f.FinalAt.Before(g.finalAt)) {
		g.finalAt = f.FinalAt
	}
	return class.InfoOf(f.Class).Scope != class.Informational
}

func isNearerToFinal(f pods.Finding, history *pods.History, g *problemGroup) bool {
	if f.Final != g.finding.Final {
		return f.Final
	}
	if f.Attempts != g.finding.Attempts {
		return f.Attempts > g.finding.Attempts
	}
	return history.Pod.Name < g.pod.Pod.Name
}

func (t *trackedObject) problemOf(g *problemGroup, summary podSummary, now time.Time) *Problem {
	f := g.finding
	p := &Problem{
		Class:            g.Class,
		Title:            titleOf(g.Class),
		Message:          f.Message,
		Since:            f.Since,
		ContainerFailure: ContainerFailure{Container: f.Container, Image: f.Image, Attempts: f.Attempts, Limit: f.Limit, ExitCode: f.ExitCode, Reason: f.Reason},
		AffectedPods:     AffectedPods{PodCount: len(g.members), PodTotal: summary.total},
	}
	p.addPods(g.members, summary)
	p.FinalAt = t.finalAt(g, summary, now)
	if what, isMissing := g.pod.Pod.Missing(f.Message); isMissing {
		p.MissingObject, p.MissingKey = &Ref{Kind: what.Kind, Name: what.Name}, what.Key
		if at, ok := t.missingFinalAt(g, summary, what, now); ok {
			p.FinalAt = at
		}
	}
	if t.updatesInOrder() && !p.FinalAt.IsZero() {
		p.Advice = "delete pod " + g.pod.Pod.Name + " after the fix: a StatefulSet doesn't replace a broken pod by itself"
	}
	t.timers.recheckBy(p.FinalAt)
	return p
}

// addPods names the pods and their nodes, and a node that they all share.
func (p *Problem) addPods(members []*pods.History, summary podSummary) {
	nodes := map[string]bool{}
	for _, history := range members {
		p.Pods = append(p.Pods, history.Pod.Name)
		if history.Pod.Node != "" {
			nodes[history.Pod.Node] = true
		}
	}
	slices.Sort(p.Pods)
	if len(p.Pods) > maxPodsNamed {
		p.Pods = p.Pods[:maxPodsNamed]
	}
	p.Nodes = slices.Sorted(maps.Keys(nodes))
	if len(p.Nodes) == 1 && summary.ready > 0 {
		p.SuspectNode = p.Nodes[0]
	}
}

// finalAt returns when a problem of pods fails the workload; zero for never.
func (t *trackedObject) finalAt(g *problemGroup, summary podSummary, now time.Time) time.Time {
	info := class.InfoOf(g.Class)
	switch {
	case g.Class == class.Evicted && t.gk != kube.PodKind:
		if len(g.members) >= maxEvictions {
			return now
		}
		return time.Time{}
	case t.gk == kube.PodKind && (g.Class == class.Evicted || g.Class == class.PodFailed):
		return now
	case info.Scope == class.Informational, t.gk == kube.JobKind && isRunFailure(g.Class):
		return time.Time{} // a Job's controller counts failed runs itself
	case g.Class == class.PodFailed:
		return time.Time{} // its controller makes another one
	case g.finalAt.IsZero():
		return time.Time{}
	}
	switch {
	case !t.affectsAllPods(g, summary, info):
		return g.finalAt.Add(badNodeGrace)
	case pods.IsCrash(g.Class) && summary.final < summary.failing:
		return g.finalAt.Add(othersHealGrace)
	}
	return g.finalAt
}

// isRunFailure reports whether a class is about containers that have run: a Job's
// controller counts those against its backoffLimit.
func isRunFailure(c class.Class) bool {
	switch c {
	case class.CrashLoop, class.OOMKilled, class.LivenessProbeFailed, class.BadCommand, class.PodFailed, class.Evicted:
		return true
	}
	return false
}

// affectsAllPods reports whether a problem fails the whole workload. For a class that is
// deterministic one failing pod is enough, unless another pod got past the problem. For
// other classes all new pods must fail. In a StatefulSet that updates in order the first
// failing pod is enough, because the update stops there.
func (t *trackedObject) affectsAllPods(g *problemGroup, summary podSummary, info class.Info) bool {
	if t.updatesInOrder() {
		return true
	}
	if info.Scope == class.Deterministic {
		for _, history := range t.newPods.byUID {
			if history.GotPast(g.Class, g.finding.Container) {
				return summary.ready == 0 && summary.failing >= summary.total
			}
		}
		return true
	}
	return summary.ready == 0 && summary.failing >= summary.total
}

// updatesInOrder reports whether the object is a StatefulSet that updates one pod
// after the other.
func (t *trackedObject) updatesInOrder() bool {
	if t.gk.Kind != "StatefulSet" || t.observed.object == nil {
		return false
	}
	policy, _, _ := unstructured.NestedString(t.observed.object.Object, "spec", "podManagementPolicy")
	return policy != "Parallel"
}

// creationProblem returns why a controller can't create pods; nil when it can. For a
// Deployment or ReplicaSet a condition says so, for other kinds events do.
func (t *trackedObject) creationProblem(r *Rollout, now time.Time) *Problem {
	if t.gk.Kind == "Deployment" || t.gk.Kind == "ReplicaSet" {
		message := rules.PodCreationFailure(t.observed.object, t.newReplicaSet())
		switch {
		case message == "":
			t.newPods.creationFailure = nil
		case t.newPods.creationFailure == nil || pods.CreationFailureClass(t.newPods.creationFailure.message) != pods.CreationFailureClass(message):
			t.newPods.creationFailure = &podCreationFailure{message: message, since: now, podsBefore: t.podsCreated()}
		default:
			t.newPods.creationFailure.message = message
		}
	}
	if t.newPods.creationFailure == nil {
		return nil
	}
	if t.podsCreated() > t.newPods.creationFailure.podsBefore {
		t.newPods.creationFailure = nil // a pod was created after all
		return nil
	}
	c := pods.CreationFailureClass(t.newPods.creationFailure.message)
	p := &Problem{Message: t.newPods.creationFailure.message, Since: t.newPods.creationFailure.since, ContainerFailure: ContainerFailure{Attempts: t.newPods.creationFailure.count}}
	if c == class.QuotaExceeded && r != nil {
		switch {
		case r.Terminating > 0:
			c, t.newPods.creationFailure.since = class.WaitingForRoom, now // the timer starts when they have left
		case r.Updated == 0 && r.Old > 0 && t.gk.Kind == "Deployment":
			c = class.QuotaDeadlock
		}
	}
	p.Class, p.Title = c, titleOf(c)
	if info := class.InfoOf(c); info.Scope != class.Informational {
		p.FinalAt = t.newPods.creationFailure.since.Add(info.Grace)
	}
	return p
}

func (t *trackedObject) newReplicaSet() string {
	if t.newPods.revision == "" || t.gk.Kind != "Deployment" {
		return ""
	}
	return t.ID.Name + "-" + t.newPods.revision
}

// withoutPodNames writes a message without what differs from pod to pod.
func withoutPodNames(message string) string {
	fields := strings.Fields(message)
	for i, f := range fields {
		if strings.ContainsAny(f, "0123456789") && !strings.Contains(f, "/") {
			fields[i] = "#"
		}
	}
	return strings.Join(fields, " ")
}
