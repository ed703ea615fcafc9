// Package pods finds out what is wrong with pods.
//
// A Pod keeps only the fields that the rules need. A History keeps what happened to one pod,
// because restarts and pull attempts count from when they were first seen. Nothing here
// does I/O.
package pods

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/track/rules"
)

// A Pod has the fields of a Kubernetes Pod that the rules need.
type Pod struct {
	Identity
	Owner      Owner
	Node       string
	Created    time.Time
	Deleting   bool
	Phase      corev1.PodPhase
	Policy     corev1.RestartPolicy // of containers that have none of their own
	Failure    StateReason          // reason and message of the phase
	Ready      bool
	Scheduling Scheduling
	Disruption StateReason // why the cluster ended it, or is about to, such as for a pod of a higher priority; empty when it doesn't
	Gate       StateReason // the first readiness gate that isn't met, and what its controller says; empty when all are
	Resize     StateReason // what became of a resize in place that the kubelet hasn't made: deferred, infeasible, error; empty when none is asked for
	Volumes    Volumes
	Containers []Container
}

// An Identity says which pod it is: a StatefulSet makes several of one name, one after the other.
type Identity struct {
	UID       types.UID
	Namespace string
	Name      string
}

// Volumes are what a pod mounts.
type Volumes struct {
	Claims []string          // names of PersistentVolumeClaims
	keys   []volumeKey       // that volumes ask for
	images map[string]string // names of volumes, by the image that they mount
}

// An Owner is the controller of a pod; all are empty for a bare pod.
type Owner struct {
	UID      types.UID
	Name     string
	Revision string // of a StatefulSet or DaemonSet that the pod was created from; the UID again of a kind that has one revision
}

// RevisionLabels are the labels that name the revision of a controller that keeps the pods of
// several revisions, by its kind.
// k8s.io/kubernetes/pkg/controller/statefulset and .../daemon
var RevisionLabels = map[string]string{"StatefulSet": "controller-revision-hash", "DaemonSet": "pod-template-generation"}

// Scheduling reports whether a pod has a node, and why it has none.
type Scheduling struct {
	Done bool
	StateReason
}

// A StateReason is the reason and message of a state or a condition.
type StateReason struct{ Reason, Message string }

// A Container is one container of a pod, with its status.
type Container struct {
	Name      string // "app", "init:migrate"
	PlainName string // "app", "migrate"
	Image     string
	ImageID   string // on the node; empty before it was pulled
	Init      bool   // it must end before the others start; false for sidecars
	State
	Restarts        int
	Ready           bool
	MemoryLimit     string        // its own, or that of the pod
	ReadinessWindow time.Duration // how long the readiness probe may fail before it is a problem; 0 without a probe
	StartupWindow   time.Duration // until the startup probe may have succeeded; 0 without a probe
	Started         bool
	readinessProbe  string // what it asks, for people: "GET :8080/healthz"
	startupProbe    string
	restarts        restarts
	volumeImage     string // of a volume, which it waits for; empty when it waits for none
}

// A State is what a container does, and how its run before ended.
type State struct {
	Waiting         StateReason
	Running         bool
	RunningSince    time.Time    // by the node's clock; zero when it doesn't run
	Terminated      *Termination // nil when it isn't terminated
	LastTermination *Termination // nil when there was no run before
}

// A Termination is how a run of a container ended.
type Termination struct {
	ExitCode int32
	Reason   string
	Message  string
}

// Trim returns the fields of a pod that the rules need.
func Trim(p *corev1.Pod) Pod {
	out := Pod{
		Identity: Identity{UID: p.UID, Namespace: p.Namespace, Name: p.Name}, Node: p.Spec.NodeName,
		Created: p.CreationTimestamp.Time, Deleting: p.DeletionTimestamp != nil, Policy: p.Spec.RestartPolicy,
		Phase: p.Status.Phase, Failure: StateReason{p.Status.Reason, rules.OneLine(p.Status.Message)},
	}
	if o := metav1.GetControllerOfNoCopy(p); o != nil {
		out.Owner = Owner{UID: o.UID, Name: o.Name, Revision: cmp.Or(p.Labels[RevisionLabels[o.Kind]], string(o.UID))}
	}
	out.setConditions(p.Status.Conditions)
	out.Gate = unmetGate(p)
	out.Volumes.images = map[string]string{}
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			out.Volumes.Claims = append(out.Volumes.Claims, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			out.Volumes.Claims = append(out.Volumes.Claims, p.Name+"-"+v.Name)
		case v.Image != nil:
			out.Volumes.images[v.Image.Reference] = v.Name
		}
		out.addVolumeKeys(&v)
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		once := c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
		out.addContainer("init:", once, c, &p.Spec, p.Status.InitContainerStatuses)
	}
	for i := range p.Spec.Containers {
		out.addContainer("", false, &p.Spec.Containers[i], &p.Spec, p.Status.ContainerStatuses)
	}
	return out
}

func (p *Pod) setConditions(all []corev1.PodCondition) {
	for _, c := range all {
		switch c.Type {
		case corev1.PodReady:
			p.Ready = c.Status == corev1.ConditionTrue
		case corev1.PodScheduled:
			p.Scheduling.Done = c.Status == corev1.ConditionTrue
			if c.Status == corev1.ConditionFalse {
				p.Scheduling.StateReason = StateReason{c.Reason, rules.OneLine(withoutPreemption(c.Message))}
			}
		case corev1.DisruptionTarget:
			if c.Status == corev1.ConditionTrue {
				p.Disruption = StateReason{c.Reason, rules.OneLine(c.Message)}
			}
		case corev1.PodResizePending, corev1.PodResizeInProgress:
			if c.Status == corev1.ConditionTrue && c.Reason != "" {
				p.Resize = StateReason{c.Reason, rules.OneLine(c.Message)}
			}
		}
	}
	p.Scheduling.Done = p.Scheduling.Done || p.Node != ""
}

// unmetGate returns the first readiness gate of a pod that isn't met.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-readiness-gate
func unmetGate(p *corev1.Pod) StateReason {
	for _, gate := range p.Spec.ReadinessGates {
		i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == gate.ConditionType })
		switch {
		case i < 0:
			return StateReason{string(gate.ConditionType), "no controller has written it"}
		case p.Status.Conditions[i].Status != corev1.ConditionTrue:
			c := p.Status.Conditions[i]
			return StateReason{string(gate.ConditionType), rules.JoinText(c.Reason, rules.OneLine(c.Message))}
		}
	}
	return StateReason{}
}

func (p *Pod) addContainer(prefix string, once bool, spec *corev1.Container, of *corev1.PodSpec, all []corev1.ContainerStatus) {
	c := Container{Name: prefix + spec.Name, PlainName: spec.Name, Image: spec.Image, Init: once, restarts: restartsOf(spec, of)}
	limits := spec.Resources.Limits
	if limits.Memory().IsZero() && of.Resources != nil {
		limits = of.Resources.Limits
	}
	if m := limits.Memory(); !m.IsZero() {
		c.MemoryLimit = m.String()
	}
	if probe := spec.ReadinessProbe; probe != nil {
		c.ReadinessWindow, c.readinessProbe = windowOf(probe, max(probe.FailureThreshold, 1)), textOf(probe)
	}
	if probe := spec.StartupProbe; probe != nil {
		c.StartupWindow, c.startupProbe = windowOf(probe, 1), textOf(probe)
	}
	for i := range all {
		if all[i].Name == spec.Name {
			c.setStatus(&all[i], p.Volumes.images)
		}
	}
	p.Containers = append(p.Containers, c)
}

// textOf is what a probe asks.
func textOf(probe *corev1.Probe) string {
	switch {
	case probe.HTTPGet != nil:
		return "GET " + probe.HTTPGet.Host + ":" + probe.HTTPGet.Port.String() + cmp.Or(probe.HTTPGet.Path, "/")
	case probe.TCPSocket != nil:
		return "TCP :" + probe.TCPSocket.Port.String()
	case probe.GRPC != nil:
		return fmt.Sprintf("gRPC :%d", probe.GRPC.Port)
	case probe.Exec != nil:
		return "exec " + rules.OneLine(strings.Join(probe.Exec.Command, " "))
	}
	return "no handler"
}

// windowOf is how long a probe may fail before it has failed a number of times.
func windowOf(probe *corev1.Probe, failures int32) time.Duration {
	return time.Duration(probe.InitialDelaySeconds+max(probe.PeriodSeconds, 1)*failures) * time.Second
}

func (c *Container) setStatus(s *corev1.ContainerStatus, volumes map[string]string) {
	c.Started = s.Started != nil && *s.Started
	c.Restarts, c.Ready, c.ImageID = int(s.RestartCount), s.Ready, s.ImageID
	c.Terminated, c.LastTermination = terminationOf(s.State.Terminated), terminationOf(s.LastTerminationState.Terminated)
	if w := s.State.Waiting; w != nil {
		c.Waiting = StateReason{w.Reason, rules.OneLine(withoutPrefixes(w.Message))}
		if image := imageOf(w.Message, volumes); image != s.Image && image != c.Image {
			c.volumeImage = image
		}
	}
	if r := s.State.Running; r != nil {
		c.Running, c.RunningSince = true, r.StartedAt.Time
	}
}

func terminationOf(t *corev1.ContainerStateTerminated) *Termination {
	if t == nil {
		return nil
	}
	return &Termination{ExitCode: t.ExitCode, Reason: t.Reason, Message: rules.OneLine(withoutPrefixes(t.Message))}
}
