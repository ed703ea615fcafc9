package pods

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"deployer/internal/lazyregexp"
	"deployer/track/class"
	"deployer/track/finding"
	"deployer/track/rules"
)

// A Symptom is a finding about one pod, with what decides when it is final.
type Symptom struct {
	finding.Finding
	Certain     bool          // Attempts alone decide: there is nothing that time could heal
	Ended       bool          // the container has ended for good
	WasReady    bool          // the container was ready before, in this rollout
	MayHeal     bool          // the release hasn't changed the pod, and the container's next start may go well
	LacksDevice bool          // what devices are asked by isn't there
	StartWindow time.Duration // how long it may last while a container starts
	LastEventAt time.Time     // when the last event came, if only events tell of it; zero if the status does
}

func symptom(c class.Class, message string) Symptom {
	return Symptom{Finding: finding.Of(c, message)}
}

// ofContainer is a symptom of a container.
func ofContainer(c *Container, of class.Class, message string) Symptom {
	f := symptom(of, message)
	f.Container, f.Image = c.Name, c.pulled()
	return f
}

// A Policy says what counts of a pod, by its workload and the release.
type Policy struct {
	FailuresAllowed *int      // crashes of a container that are no failure; nil is 2
	Unchanged       bool      // the release changed nothing: what failed before counts
	AppliedAt       time.Time // by the cluster's clock; zero when unknown
	Now             time.Time // the time, also of outages
	MemoryLowered   func(container string) bool
	OldPodsLeaving  bool // old pods are terminating and will free resources
	OldPodsStay     bool // old pods go only when new ones are ready
}

// A History is what has happened to one pod so far.
type History struct {
	Pod                Pod
	IsGone             bool                         // it was deleted, and is kept to be counted
	containers         map[string]*containerHistory // by name; see of
	problemSince       map[string]time.Time         // by key
	pullEvents         map[imageClass]pulls
	events             map[class.Class]eventProblem
	MissingPullSecrets []string // names, that the kubelet missed when it pulled last
	scaleUpTriggered   bool     // the autoscaler adds a node
	scaleUpImpossible  bool     // the autoscaler can't help
}

// A containerHistory is what has happened to one container.
type containerHistory struct {
	crashesBefore  int    // those that don't count
	crashesAtFirst int    // all there were when it was first seen
	pulls          pulls  // as its states tell
	wasReady       bool   // in this rollout
	execError      string // the only line of the log of its crashed run
}

// of returns the history of a container.
func (h *History) of(container string) *containerHistory {
	known := h.containers[container]
	if known == nil {
		known = &containerHistory{}
		h.containers[container] = known
	}
	return known
}

// eventProblem is what events say about one class.
type eventProblem struct {
	message string
	count   int
	at      time.Time // when the last one came
}

// NewHistory starts to follow a pod. Crashes of a pod that is older than the
// apply count from now.
func NewHistory(p Pod, r Policy) *History {
	h := &History{containers: map[string]*containerHistory{}, problemSince: map[string]time.Time{}, pullEvents: map[imageClass]pulls{}, events: map[class.Class]eventProblem{}}
	isOld := r.AppliedAt.IsZero() || p.Created.Before(r.AppliedAt.Add(-time.Second))
	for i := range p.Containers {
		c := &p.Containers[i]
		own := h.of(c.Name)
		if own.crashesAtFirst = c.crashes(); isOld && !r.Unchanged {
			own.crashesBefore = own.crashesAtFirst
		}
	}
	return h
}

// Update sets the pod's newest state.
func (h *History) Update(p Pod) {
	for i := range p.Containers {
		c := &p.Containers[i]
		h.recordPull(c)
		if c.Ready && !c.Init && c.ReadinessWindow > 0 { // without a probe ready says no more than running
			own := h.of(c.Name)
			own.wasReady, own.crashesBefore = true, c.crashes()
		}
	}
	h.Pod = p
}

// AddEvent takes an event about the pod.
func (h *History) AddEvent(reason, message string, count int, now time.Time) {
	switch reason {
	case "TriggeredScaleUp":
		h.scaleUpTriggered = true
	case "NotTriggerScaleUp":
		h.scaleUpImpossible = true
	case "Failed":
		h.recordPullEvent(message, count)
	case "FailedToRetrieveImagePullSecret":
		h.MissingPullSecrets = missingPullSecrets(message)
	}
	if c := eventClass(reason, message); c != "" {
		h.events[c] = eventProblem{rules.OneLine(message), max(h.events[c].count+1, count), now}
	}
}

// RestartTimer lets the time of a problem begin anew.
func (h *History) RestartTimer(f Symptom, now time.Time) { h.problemSince[f.key()] = now }

// UnexplainedCrash returns a container that has crashed and whose status doesn't say why; nil
// when it hasn't. Its log may say that its command was never executed.
func (h *History) UnexplainedCrash(container string) *Container {
	c := h.Pod.container(container)
	if c == nil || h.crashes(c) == 0 {
		return nil
	}
	if last := c.lastRun(); last == nil || last.ExitCode == 0 || last.Reason != "Error" || last.Message != "" {
		return nil
	}
	return c
}

// SetExecError records the error that the log of a container shows for a command that was not
// executed.
func (h *History) SetExecError(container, text string) { h.of(container).execError = text }

func (p *Pod) container(name string) *Container {
	for i := range p.Containers {
		if p.Containers[i].Name == name {
			return &p.Containers[i]
		}
	}
	return nil
}

// HasPassed reports whether the pod has passed the point at which a class of problem occurs,
// so that the template can't be the reason.
func (h *History) HasPassed(c class.Class, container string) bool {
	p := h.Pod
	own := p.container(container)
	switch c {
	case class.ImagePullPermanent, class.InvalidImageName:
		return own != nil && (own.ImageID != "" || own.Running || own.lastRun() != nil)
	case class.ConfigError, class.ContainerCreateFailed, class.BadCommand, class.UserRefused:
		return own != nil && own.Running && own.Restarts == 0 || p.Ready
	}
	return p.Ready
}

// Symptoms returns the pod's problems at a time. It starts and stops their timers, so it
// must be called after each update.
func (h *History) Symptoms(r Policy, now time.Time) []Symptom {
	found := h.podProblems(r)
	for i := range h.Pod.Containers {
		if f := h.containerProblem(&h.Pod.Containers[i], r); f != nil {
			found = append(found, *f)
		}
	}
	found = append(found, h.eventProblems(found)...)
	current := map[string]bool{}
	for i := range found {
		h.startTimer(&found[i], r, now)
		current[found[i].key()] = true
	}
	maps.DeleteFunc(h.problemSince, func(key string, _ time.Time) bool { return !current[key] })
	return found
}

// key identifies a problem; its message may change. Of several things that are missing the kubelet names the
// first, and each has its own time to appear.
func (f *Symptom) key() string {
	key := string(f.Class) + " " + f.Container
	if f.Class == class.ConfigError {
		key += " " + f.Message
	}
	return key
}

// startTimer starts the timer of a finding unless it runs, and adds what decides when it is final.
func (h *History) startTimer(f *Symptom, r Policy, now time.Time) {
	at, ok := h.problemSince[f.key()]
	if !ok {
		at = now
		h.problemSince[f.key()] = at
	}
	f.Since = at
	if !f.Ended {
		f.Limit = cmp.Or(f.Limit, class.InfoOf(f.Class).Attempts)
	}
	f.WasReady, f.MayHeal = h.of(f.Container).wasReady, r.Unchanged && h.mayHeal(f)
	f.LacksDevice = f.Class == class.ResourceClaimUnallocated && missingDevice().MatchString(f.Message)
}

// mayHeal reports whether a pod has only crashed before somebody looked, or so long ago that three crashes are still to be seen.
func (h *History) mayHeal(f *Symptom) bool {
	first := h.of(f.Container).crashesAtFirst
	return f.Attempts == first || first >= f.Limit && f.Attempts < first+f.Limit
}

// IsKnownFromEvents reports whether only events tell of a problem, which don't say that it is over. What is missing
// can be asked for instead.
func (f *Symptom) IsKnownFromEvents() bool {
	return !f.LastEventAt.IsZero() && f.Class != class.MountedObjectMissing
}

func (h *History) podProblems(r Policy) []Symptom {
	p := &h.Pod
	switch {
	case p.Deleting:
		return nil
	case p.Phase == corev1.PodFailed:
		of := class.PodFailed
		switch {
		case p.IsRefused():
			of = class.NodeRefused
		case evictionReasons[p.Failure.Reason] || p.Disruption.Reason != "":
			of = class.Evicted
		}
		return []Symptom{symptom(of, rules.JoinText(p.Failure.Reason, p.Failure.Message))}
	case p.Scheduling.Reason == "SchedulingGated":
		return []Symptom{symptom(class.SchedulingGated, p.Scheduling.Message)}
	case p.Scheduling.Done && p.Gate.Reason != "" && p.areContainersReady():
		f := symptom(class.ReadinessGateUnmet, rules.JoinText(p.Gate.Reason, p.Gate.Message))
		f.StartWindow = gateWindow
		return []Symptom{f}
	case p.Scheduling.Done:
		return nil
	case p.Scheduling.Reason == "":
		if event, known := h.events[class.ResourceClaimUnallocated]; known { // the scheduler waits for the claim, without a word
			return []Symptom{symptom(class.ResourceClaimUnallocated, event.message)}
		}
		return nil
	}
	return []Symptom{h.schedulingProblem(r)}
}

// gateWindow is how long a readiness gate may take before it is a problem: a load balancer has to find the pod healthy first.
const gateWindow = 30 * time.Second

func (p *Pod) areContainersReady() bool {
	return !slices.ContainsFunc(p.Containers, func(c Container) bool { return !c.Init && !c.Ready })
}

func (h *History) schedulingProblem(r Policy) Symptom {
	message := h.Pod.Scheduling.Message
	switch {
	case strings.Contains(message, unboundClaims):
		return symptom(class.ClaimUnbound, message)
	case waitsForDevices().MatchString(message):
		return symptom(class.ResourceClaimUnallocated, rules.JoinText(message, h.events[class.ResourceClaimUnallocated].message))
	case h.scaleUpTriggered:
		return symptom(class.WaitingForNode, message)
	case r.OldPodsLeaving && heldByPods().MatchString(message):
		return symptom(class.WaitingForRoom, message)
	case excludesEveryNode(message), h.scaleUpImpossible:
		f := symptom(class.NoNodeFits, message)
		for held, what := range exclusive {
			if r.OldPodsStay && strings.Contains(message, held) {
				f.Advice = "old pods have the " + what + " until new ones are ready: let the update strategy be Recreate, or maxUnavailable 1"
			}
		}
		return f
	}
	return symptom(class.Unschedulable, message)
}

// evictionReasons are reasons of failed pods that say nothing about the pod.
var evictionReasons = map[string]bool{
	"Evicted": true, "Preempting": true, "Preempted": true, "Terminated": true, "NodeShutdown": true, "NodeLost": true, "Shutdown": true,
}

// refusalReasons matches the reasons of failed pods that a kubelet hasn't admitted.
// k8s.io/kubernetes/pkg/kubelet/lifecycle/predicate.go, and pkg/kubelet/cm, sysctl
var refusalReasons = lazyregexp.New(`^(OutOf.+|NodeAffinity|NodeName|NodePorts|UnexpectedAdmissionError|UnexpectedPredicateFailureType|InvalidNodeInfo|AppArmor|TopologyAffinityError|` +
	`.*(NotSupported|Unsupported|Forbidden|DoesNotMatch|NotAdmitted(Reason)?))$`)

// IsRefused reports whether the pod's node hasn't admitted it.
func (p *Pod) IsRefused() bool {
	return p.Phase == corev1.PodFailed && refusalReasons().MatchString(p.Failure.Reason)
}

// eventProblems returns problems that only events report. Events come late and may be
// missing, so they count only while the pod still waits for its containers.
func (h *History) eventProblems(found []Symptom) []Symptom {
	creating := slices.ContainsFunc(h.Pod.Containers, func(c Container) bool {
		return c.Waiting.Reason == "ContainerCreating" || c.Waiting.Reason == "PodInitializing"
	})
	unready := h.Pod.Phase == corev1.PodPending && h.Pod.Scheduling.Done
	if !unready || len(found) > 0 || !creating && len(h.Pod.Containers) > 0 && h.Pod.Containers[0].Waiting.Reason != "" {
		return nil
	}
	// A volume that is attached elsewhere can't be mounted in time either.
	for _, c := range []class.Class{class.MountedObjectMissing, class.MultiAttach, class.MountFailed, class.PodSandboxFailed} {
		if event, known := h.events[c]; known {
			f := symptom(c, event.message)
			f.LastEventAt, f.Attempts = event.at, event.count
			if strings.Contains(event.message, "user namespaces") {
				f.Advice = "let the pod run without hostUsers: false, or on nodes whose runtime and kernel have user namespaces"
			}
			return []Symptom{f}
		}
	}
	return nil
}
