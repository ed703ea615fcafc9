package track

import (
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/track/class"
	"deployer/track/pods"
	"deployer/track/rules"
)

const (
	badNodeGrace   = 2 * time.Minute // how long one pod may fail while others of the revision are fine
	maxEvictions   = 3               // evictions that are no bad luck any more
	maxPods        = 20              // named in a problem
	pendingRecheck = 2 * time.Second // until it is looked again whether what is missing is on its way
)

// A group is one class of problem with the pods that have it.
type podProblem struct {
	class.Class
	finding pods.Finding // of the pod that is nearest to a verdict
	pod     *pods.History
	members []*pods.History
	finalAt time.Time // earliest; zero for never
}

// podSummary counts the new pods.
type podSummary struct {
	total, ready int
	failing      int // not ready, with a problem that fails
	problems     map[class.Class]*podProblem
	recheckAt    time.Time // when time alone makes a problem of something; zero for never
}

// podProblem finds the worst problem of the new pods, final when the pods that
// have it speak for the workload.
func (s *trackedObject) podProblem(now time.Time) *Problem {
	c := s.summarizePods(now)
	var worst *Problem
	keys := make([]string, 0, len(c.problems))
	for k := range c.problems {
		keys = append(keys, string(k))
	}
	sort.Strings(keys)
	for _, k := range keys {
		p := s.problemOf(c.problems[class.Class(k)], c, now)
		if p != nil && (worst == nil || isWorse(p, worst, now)) {
			worst = p
		}
	}
	return worst
}

func (s *trackedObject) summarizePods(now time.Time) podSummary {
	c := podSummary{problems: map[class.Class]*podProblem{}}
	r := s.podPolicy()
	for _, m := range s.newPods.byUID {
		if m.Pod.Deleting {
			continue
		}
		c.total++
		found := m.Findings(r, now)
		if m.Pod.Ready {
			c.ready++
			continue
		}
		failing := false
		for _, f := range found {
			failing = c.addFinding(f, m, now) || failing
		}
		if failing {
			c.failing++
		}
	}
	s.timers.recheckBy(c.recheckAt)
	return c
}

// addFinding files a finding and reports whether it can fail a workload.
func (c *podSummary) addFinding(f pods.Finding, m *pods.History, now time.Time) bool {
	if at := m.SlowSince(f); f.Class == class.Readiness && now.Before(at) {
		if c.recheckAt.IsZero() || at.Before(c.recheckAt) {
			c.recheckAt = at
		}
		return false
	}
	g := c.problems[f.Class]
	if g == nil {
		g = &podProblem{Class: f.Class}
		c.problems[f.Class] = g
	}
	if n := len(g.members); n == 0 || g.members[n-1] != m {
		g.members = append(g.members, m)
	}
	if g.pod == nil || isNearerToFinal(f, m, g) {
		g.finding, g.pod = f, m
	}
	if !f.FinalAt.IsZero() && (g.finalAt.IsZero() || f.FinalAt.Before(g.finalAt)) {
		g.finalAt = f.FinalAt
	}
	return class.Of(f.Class).Scope != class.Informational
}

func isNearerToFinal(f pods.Finding, m *pods.History, g *podProblem) bool {
	if f.Final != g.finding.Final {
		return f.Final
	}
	if f.Attempts != g.finding.Attempts {
		return f.Attempts > g.finding.Attempts
	}
	return m.Pod.Name < g.pod.Pod.Name
}

func (s *trackedObject) problemOf(g *podProblem, c podSummary, now time.Time) *Problem {
	f := g.finding
	p := &Problem{
		Class:            g.Class,
		Title:            titleOf(g.Class),
		Message:          f.Message,
		Since:            f.Since,
		ContainerFailure: ContainerFailure{Container: f.Container, Image: f.Image, Attempts: f.Attempts, Limit: f.Limit, ExitCode: f.ExitCode, Reason: f.Reason},
		AffectedPods:     AffectedPods{PodCount: len(g.members), PodTotal: c.total},
	}
	if kind, name, ok := pods.MissingObject(f.Message); ok {
		p.MissingObject = &Ref{Kind: kind, Name: name}
	}
	p.addPods(g.members, c)
	p.FinalAt = s.finalAt(g, c, p.MissingObject, now)
	if s.updatesInOrder() && !p.FinalAt.IsZero() {
		p.Advice = "delete pod " + g.pod.Pod.Name + " after the fix: a StatefulSet doesn't replace a broken pod by itself"
	}
	s.timers.recheckBy(p.FinalAt)
	return p
}

// addPods names the pods and their nodes, and a node that they all share.
func (p *Problem) addPods(members []*pods.History, c podSummary) {
	nodes := map[string]bool{}
	for _, m := range members {
		p.Pods = append(p.Pods, m.Pod.Name)
		if m.Pod.Node != "" {
			nodes[m.Pod.Node] = true
		}
	}
	sort.Strings(p.Pods)
	if len(p.Pods) > maxPods {
		p.Pods = p.Pods[:maxPods]
	}
	for n := range nodes {
		p.Nodes = append(p.Nodes, n)
	}
	sort.Strings(p.Nodes)
	if len(p.Nodes) == 1 && c.ready > 0 {
		p.SuspectNode = p.Nodes[0]
	}
}

// finalAt decides when a problem of pods fails the workload: zero for never.
func (s *trackedObject) finalAt(g *podProblem, c podSummary, needs *Ref, now time.Time) time.Time {
	info := class.Of(g.Class)
	switch {
	case g.Class == class.Evicted && s.gk != podKind:
		if len(g.members) >= maxEvictions {
			return now
		}
		return time.Time{}
	case s.gk == podKind && (g.Class == class.Evicted || g.Class == class.PodFailed):
		return now
	case info.Scope == class.Informational, s.gk.Kind == "Job" && isRunFailure(g.Class):
		return time.Time{} // a Job's controller counts failed runs itself
	case g.Class == class.PodFailed:
		return time.Time{} // its controller makes another one
	case g.finalAt.IsZero():
		return time.Time{}
	}
	if needs != nil && s.release.willCreate != nil && s.release.willCreate(*needs) {
		s.timers.recheckAfter(now, pendingRecheck)
		return now.Add(class.Of(g.Class).Grace + 20*time.Second)
	}
	if s.affectsAllPods(g, c, info) {
		return g.finalAt
	}
	return g.finalAt.Add(badNodeGrace)
}

// isRunFailure reports whether a class is about containers that have run: a Job's
// controller counts those against its backoffLimit.
func isRunFailure(c class.Class) bool {
	switch c {
	case class.CrashLoop, class.OOMKilled, class.Liveness, class.BadCommand, class.PodFailed, class.Evicted:
		return true
	}
	return false
}

// affectsAllPods is the quorum: a template that can't work needs one pod to show
// it, unless another one shows the contrary; else all unready new pods must
// fail and none be ready. An orderly StatefulSet stops at its first bad pod.
func (s *trackedObject) affectsAllPods(g *podProblem, c podSummary, info class.Info) bool {
	if s.updatesInOrder() {
		return true
	}
	if info.Scope == class.Deterministic {
		for _, m := range s.newPods.byUID {
			if m.GotPast(g.Class, g.finding.Container) {
				return c.ready == 0 && c.failing >= c.total
			}
		}
		return true
	}
	return c.ready == 0 && c.failing >= c.total
}

// updatesInOrder reports whether the object is a StatefulSet that updates one pod
// after the other.
func (s *trackedObject) updatesInOrder() bool {
	if s.gk.Kind != "StatefulSet" || s.observed.object == nil {
		return false
	}
	policy, _, _ := unstructured.NestedString(s.observed.object.Object, "spec", "podManagementPolicy")
	return policy != "Parallel"
}

// creationProblem tells why a controller makes no pods: by a condition of the
// Deployment or ReplicaSet, by events for the other kinds.
func (s *trackedObject) creationProblem(r *Rollout, now time.Time) *Problem {
	if s.gk.Kind == "Deployment" || s.gk.Kind == "ReplicaSet" {
		message := rules.PodCreationFailure(s.observed.object, s.newReplicaSet())
		switch {
		case message == "":
			s.newPods.creationFailure = nil
		case s.newPods.creationFailure == nil || pods.CreationFailureClass(s.newPods.creationFailure.message) != pods.CreationFailureClass(message):
			s.newPods.creationFailure = &podCreationFailure{message: message, since: now, podsBefore: s.podsCreated()}
		default:
			s.newPods.creationFailure.message = message
		}
	}
	if s.newPods.creationFailure == nil {
		return nil
	}
	if s.podsCreated() > s.newPods.creationFailure.podsBefore {
		s.newPods.creationFailure = nil // it could be made after all
		return nil
	}
	c := pods.CreationFailureClass(s.newPods.creationFailure.message)
	p := &Problem{Message: s.newPods.creationFailure.message, Since: s.newPods.creationFailure.since, ContainerFailure: ContainerFailure{Attempts: s.newPods.creationFailure.count}}
	if c == class.Quota && r != nil {
		switch {
		case r.Terminating > 0:
			c, s.newPods.creationFailure.since = class.WaitingForRoom, now // the clock starts when they have left
		case r.Updated == 0 && r.Old > 0 && s.gk.Kind == "Deployment":
			c = class.QuotaDeadlock
		}
	}
	p.Class, p.Title = c, titleOf(c)
	if info := class.Of(c); info.Scope != class.Informational {
		p.FinalAt = s.newPods.creationFailure.since.Add(info.Grace)
	}
	return p
}

func (s *trackedObject) newReplicaSet() string {
	if s.newPods.revision == "" || s.gk.Kind != "Deployment" {
		return ""
	}
	return s.ID.Name + "-" + s.newPods.revision
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
