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
	suspectNode   = 2 * time.Minute // how long one pod may fail while others of the revision are fine
	evictionsFail = 3               // evictions that are no bad luck any more
	maxPods       = 20              // named in a problem
	pendingAgain  = 2 * time.Second // until it is looked again whether what is missing is on its way
)

// A group is one class of problem with the pods that have it.
type group struct {
	class.Class
	lead    pods.Finding // of the pod that is nearest to a verdict
	pod     *pods.Memory
	members []*pods.Memory
	finalAt time.Time // earliest; zero for never
}

// census counts the new pods.
type census struct {
	total, ready int
	failing      int // not ready, with a problem that fails
	groups       map[class.Class]*group
	again        time.Time // when time alone makes a problem of something; zero for never
}

// podProblem finds the worst problem of the new pods, final when the pods that
// have it speak for the workload.
func (s *subject) podProblem(now time.Time) *Problem {
	c := s.census(now)
	var worst *Problem
	keys := make([]string, 0, len(c.groups))
	for k := range c.groups {
		keys = append(keys, string(k))
	}
	sort.Strings(keys)
	for _, k := range keys {
		p := s.problem(c.groups[class.Class(k)], c, now)
		if p != nil && (worst == nil || worse(p, worst, now)) {
			worst = p
		}
	}
	return worst
}

func (s *subject) census(now time.Time) census {
	c := census{groups: map[class.Class]*group{}}
	r := s.podRules()
	for _, m := range s.pods {
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
			failing = c.add(f, m, now) || failing
		}
		if failing {
			c.failing++
		}
	}
	s.wakeAt(c.again)
	return c
}

// add files a finding and reports whether it can fail a workload.
func (c *census) add(f pods.Finding, m *pods.Memory, now time.Time) bool {
	if at := m.SlowAt(f); f.Class == class.Readiness && now.Before(at) {
		if c.again.IsZero() || at.Before(c.again) {
			c.again = at
		}
		return false
	}
	g := c.groups[f.Class]
	if g == nil {
		g = &group{Class: f.Class}
		c.groups[f.Class] = g
	}
	if n := len(g.members); n == 0 || g.members[n-1] != m {
		g.members = append(g.members, m)
	}
	if g.pod == nil || nearer(f, m, g) {
		g.lead, g.pod = f, m
	}
	if !f.FinalAt.IsZero() && (g.finalAt.IsZero() || f.FinalAt.Before(g.finalAt)) {
		g.finalAt = f.FinalAt
	}
	return class.Of(f.Class).Scope != class.Informational
}

func nearer(f pods.Finding, m *pods.Memory, g *group) bool {
	if f.Final != g.lead.Final {
		return f.Final
	}
	if f.Attempts != g.lead.Attempts {
		return f.Attempts > g.lead.Attempts
	}
	return m.Pod.Name < g.pod.Pod.Name
}

func (s *subject) problem(g *group, c census, now time.Time) *Problem {
	f := g.lead
	p := &Problem{Class: g.Class, Title: titleOf(g.Class), Message: f.Message, Container: f.Container, Image: f.Image,
		PodCount: len(g.members), PodTotal: c.total, Attempts: f.Attempts, Limit: f.Limit, ExitCode: f.Code,
		Reason: f.Reason, Since: f.Since}
	if kind, name, ok := pods.Missing(f.Message); ok {
		p.Needs = &Ref{Kind: kind, Name: name}
	}
	p.where(g.members, c)
	p.FinalAt = s.finalAt(g, c, p.Needs, now)
	if s.orderly() && !p.FinalAt.IsZero() {
		p.Advice = "delete pod " + g.pod.Pod.Name + " after the fix: a StatefulSet doesn't replace a broken pod by itself"
	}
	s.wakeAt(p.FinalAt)
	return p
}

// where names the pods and their nodes, and a node that they all share.
func (p *Problem) where(members []*pods.Memory, c census) {
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
		p.Suspect = p.Nodes[0]
	}
}

// finalAt decides when a problem of pods fails the workload: zero for never.
func (s *subject) finalAt(g *group, c census, needs *Ref, now time.Time) time.Time {
	info := class.Of(g.Class)
	switch {
	case g.Class == class.Evicted && s.gk != podKind:
		if len(g.members) >= evictionsFail {
			return now
		}
		return time.Time{}
	case s.gk == podKind && (g.Class == class.Evicted || g.Class == class.PodFailed):
		return now
	case info.Scope == class.Informational, s.gk.Kind == "Job" && runs(g.Class):
		return time.Time{} // a Job's controller counts failed runs itself
	case g.Class == class.PodFailed:
		return time.Time{} // its controller makes another one
	case g.finalAt.IsZero():
		return time.Time{}
	}
	if needs != nil && s.pending != nil && s.pending(*needs) {
		s.wake(now, pendingAgain)
		return now.Add(class.Of(g.Class).Grace + 20*time.Second)
	}
	if s.speaksForAll(g, c, info) {
		return g.finalAt
	}
	return g.finalAt.Add(suspectNode)
}

// runs reports whether a class is about containers that have run: a Job's
// controller counts those against its backoffLimit.
func runs(c class.Class) bool {
	switch c {
	case class.CrashLoop, class.OOMKilled, class.Liveness, class.BadCommand, class.PodFailed, class.Evicted:
		return true
	}
	return false
}

// speaksForAll is the quorum: a template that can't work needs one pod to show
// it, unless another one shows the contrary; else all unready new pods must
// fail and none be ready. An orderly StatefulSet stops at its first bad pod.
func (s *subject) speaksForAll(g *group, c census, info class.Info) bool {
	if s.orderly() {
		return true
	}
	if info.Scope == class.Deterministic {
		for _, m := range s.pods {
			if m.Passed(g.Class, g.lead.Container) {
				return c.ready == 0 && c.failing >= c.total
			}
		}
		return true
	}
	return c.ready == 0 && c.failing >= c.total
}

// orderly reports whether the object is a StatefulSet that updates one pod
// after the other.
func (s *subject) orderly() bool {
	if s.gk.Kind != "StatefulSet" || s.object == nil {
		return false
	}
	policy, _, _ := unstructured.NestedString(s.object.Object, "spec", "podManagementPolicy")
	return policy != "Parallel"
}

// creationProblem tells why a controller makes no pods: by a condition of the
// Deployment or ReplicaSet, by events for the other kinds.
func (s *subject) creationProblem(r *Rollout, now time.Time) *Problem {
	if s.gk.Kind == "Deployment" || s.gk.Kind == "ReplicaSet" {
		message := rules.Failure(s.object, s.replicaSet())
		switch {
		case message == "":
			s.creation = nil
		case s.creation == nil || pods.Creation(s.creation.message) != pods.Creation(message):
			s.creation = &told{message: message, since: now, created: s.created()}
		default:
			s.creation.message = message
		}
	}
	if s.creation == nil {
		return nil
	}
	if s.created() > s.creation.created {
		s.creation = nil // it could be made after all
		return nil
	}
	c := pods.Creation(s.creation.message)
	p := &Problem{Message: s.creation.message, Since: s.creation.since, Attempts: s.creation.count}
	if c == class.Quota && r != nil {
		switch {
		case r.Terminating > 0:
			c, s.creation.since = class.WaitingForRoom, now // the clock starts when they have left
		case r.Updated == 0 && r.Old > 0 && s.gk.Kind == "Deployment":
			c = class.QuotaDeadlock
		}
	}
	p.Class, p.Title = c, titleOf(c)
	if info := class.Of(c); info.Scope != class.Informational {
		p.FinalAt = s.creation.since.Add(info.Grace)
	}
	return p
}

func (s *subject) replicaSet() string {
	if s.revision == "" || s.gk.Kind != "Deployment" {
		return ""
	}
	return s.ID.Name + "-" + s.revision
}

// normal writes a message without what differs from pod to pod.
func normal(message string) string {
	fields := strings.Fields(message)
	for i, f := range fields {
		if strings.ContainsAny(f, "0123456789") && !strings.Contains(f, "/") {
			fields[i] = "#"
		}
	}
	return strings.Join(fields, " ")
}
