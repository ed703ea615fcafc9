package pods

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"deployer/track/class"
)

// A Finding is something wrong with a pod.
type Finding struct {
	Class     class.Class
	Message   string
	Container string
	Image     string
	Attempts  int
	Limit     int
	Code      *int32
	Reason    string
	Since     time.Time // seen without a break since then
	FinalAt   time.Time // zero: never by itself
	Final     bool
}

// Rules change how patient a Memory is.
type Rules struct {
	Allowed   *int      // restarts that are no failure; nil is 2
	Unchanged bool      // the release changed nothing: what failed before counts
	Applied   time.Time // by the cluster's clock; zero when unknown
	Lowered   func(container string) bool
	Room      bool // old pods are on their way out and will make room
}

// A Memory follows one pod.
type Memory struct {
	Pod    Pod
	first  map[string]seen // by container, when first seen
	since  map[string]time.Time
	pulls  map[string]int
	ready  map[string]bool // containers that were ready in this rollout
	events map[class.Class]*Told
	scaled bool // the autoscaler adds a node
	stuck  bool // the autoscaler can't help
}

type seen struct{ restarts int }

// Told is what events say about one class.
type Told struct {
	Message string
	Count   int
	Since   time.Time
}

// Remember starts to follow a pod. Restarts of a pod that is older than the
// apply count from now.
func Remember(p Pod, r Rules) *Memory {
	m := &Memory{first: map[string]seen{}, since: map[string]time.Time{}, pulls: map[string]int{},
		ready: map[string]bool{}, events: map[class.Class]*Told{}}
	old := !r.Applied.IsZero() && p.Created.Before(r.Applied.Add(-time.Second))
	for i := range p.Containers {
		c := &p.Containers[i]
		if (old || r.Applied.IsZero()) && !r.Unchanged {
			m.first[c.Name] = seen{restarts: c.Restarts}
		}
	}
	return m
}

// See takes the pod's newest state.
func (m *Memory) See(p Pod) {
	for i := range p.Containers {
		c := &p.Containers[i]
		if pulling(c.Waiting.Reason) {
			before := m.Pod.container(c.Name)
			if m.pulls[c.Name] == 0 || c.Waiting.Reason == "ErrImagePull" && before != nil && before.Waiting.Reason != "ErrImagePull" {
				m.pulls[c.Name]++
			}
		}
		if c.Ready && !c.Init && c.Probe > 0 { // without a probe ready says no more than running
			m.ready[c.Name] = true
			m.first[c.Name] = seen{restarts: c.Restarts}
		}
	}
	m.Pod = p
}

// Tell takes an event about the pod.
func (m *Memory) Tell(reason, message string, count int, now time.Time) {
	switch reason {
	case "TriggeredScaleUp":
		m.scaled = true
	case "NotTriggerScaleUp":
		m.stuck = true
	}
	c := Mounting(reason, message)
	switch {
	case reason == "Unhealthy" && strings.HasPrefix(message, "Readiness"):
		c = class.Readiness
	case reason == "Unhealthy", reason == "Killing" && strings.Contains(message, "probe"):
		c = class.Liveness
	}
	if c == "" {
		return
	}
	told := m.events[c]
	if told == nil {
		told = &Told{Since: now}
		m.events[c] = told
	}
	told.Message, told.Count = cut(message), max(told.Count+1, count)
}

// Freeze moves the clocks on by a time in which nothing could be seen.
func (m *Memory) Freeze(d time.Duration) {
	for key, at := range m.since {
		m.since[key] = at.Add(d)
	}
	for _, told := range m.events {
		told.Since = told.Since.Add(d)
	}
}

func (p *Pod) container(name string) *Container {
	for i := range p.Containers {
		if p.Containers[i].Name == name {
			return &p.Containers[i]
		}
	}
	return nil
}

// Passed reports whether the pod got past what a class of problem is about,
// so that the template as such can't be its reason.
func (m *Memory) Passed(c class.Class, container string) bool {
	p := m.Pod
	own := p.container(container)
	switch c {
	case class.ImagePermanent, class.ImageName:
		return own != nil && (own.HasImage || own.started())
	case class.ConfigError, class.ContainerCreate, class.BadCommand:
		return own != nil && own.Running && own.Restarts == 0 || p.Ready
	}
	return p.Ready
}

// Findings tells what is wrong with the pod now. It moves the memory's clocks
// and so must be called for each state and each time of interest.
func (m *Memory) Findings(r Rules, now time.Time) []Finding {
	found := m.ofPod(r)
	for i := range m.Pod.Containers {
		if f, ok := m.ofContainer(&m.Pod.Containers[i], r); ok {
			found = append(found, f)
		}
	}
	found = append(found, m.ofEvents(found)...)
	held := map[string]bool{}
	for i := range found {
		m.time(&found[i], r, now)
		held[found[i].key()] = true
	}
	for key := range m.since {
		if !held[key] {
			delete(m.since, key)
		}
	}
	return found
}

// key joins what is the same problem in different words.
func (f *Finding) key() string { return string(f.Class) + " " + f.Container }

// time starts the problem's clock, or reads it.
func (m *Memory) time(f *Finding, r Rules, now time.Time) {
	at, ok := m.since[f.key()]
	if !ok {
		at = now
		m.since[f.key()] = at
	}
	f.Since = at
	info := class.Of(f.Class)
	if info.Scope == class.Informational {
		return
	}
	grace := info.Grace
	if f.Limit == 0 {
		f.Limit = info.Attempts
	}
	enough := f.Attempts >= f.Limit
	switch {
	case retried(f.Class) && !enough:
		grace += 10 * time.Second // by then the kubelet has tried again, seen or not
		enough = true
	case r.Unchanged && crashes(f.Class):
		grace = 30 * time.Second
	case crashes(f.Class) && m.ready[f.Container]:
		grace = time.Minute
	}
	if enough {
		f.FinalAt = at.Add(grace)
		f.Final = !now.Before(f.FinalAt)
	}
}

// retried reports whether the kubelet tries the same again every ten seconds and
// more: what it shows meanwhile may stay as it is.
func retried(c class.Class) bool { return c == class.ImagePermanent || c == class.ContainerCreate }

func crashes(c class.Class) bool {
	return c == class.CrashLoop || c == class.OOMKilled || c == class.Liveness
}

func (m *Memory) ofPod(r Rules) []Finding {
	p := &m.Pod
	switch {
	case p.Deleting:
		return nil
	case p.Phase == corev1.PodFailed:
		f := Finding{Class: class.PodFailed, Message: join(p.Reason, p.Message)}
		if evictions[p.Reason] || p.Disrupted != "" || strings.HasPrefix(p.Reason, "OutOf") {
			f.Class = class.Evicted
		}
		return []Finding{f}
	case p.Pending.Reason == "SchedulingGated":
		return []Finding{{Class: class.Gated, Message: p.Pending.Message}}
	case p.Pending.Reason == "" || p.Scheduled:
		return nil
	}
	f := Finding{Class: class.Unschedulable, Message: p.Pending.Message}
	switch {
	case strings.Contains(p.Pending.Message, unboundClaims):
		f.Class = class.ClaimUnbound
	case m.scaled:
		f.Class = class.WaitingForNode
	case Structural(p.Pending.Message), m.stuck:
		f.Class = class.NoNodeFits
	case r.Room && strings.Contains(p.Pending.Message, "Insufficient"):
		f.Class = class.WaitingForRoom
	}
	return []Finding{f}
}

// evictions are reasons of failed pods that say nothing about the pod.
var evictions = map[string]bool{
	"Evicted": true, "Preempting": true, "Preempted": true, "NodeAffinity": true, "UnexpectedAdmissionError": true,
	"Terminated": true, "NodeShutdown": true, "NodeLost": true, "Shutdown": true,
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}

// ofEvents are the problems that only events tell. Events come late and may be
// missing: they count while the pod still waits for its containers.
func (m *Memory) ofEvents(found []Finding) []Finding {
	creating := false
	for i := range m.Pod.Containers {
		reason := m.Pod.Containers[i].Waiting.Reason
		creating = creating || reason == "ContainerCreating" || reason == "PodInitializing"
	}
	unready := m.Pod.Phase == corev1.PodPending && m.Pod.Scheduled
	if !unready || len(found) > 0 || !creating && len(m.Pod.Containers) > 0 && m.Pod.Containers[0].Waiting.Reason != "" {
		return nil
	}
	for _, c := range []class.Class{class.MountMissing, class.Mount, class.MultiAttach, class.Sandbox} {
		if told := m.events[c]; told != nil {
			return []Finding{{Class: c, Message: told.Message, Attempts: told.Count}}
		}
	}
	return nil
}
