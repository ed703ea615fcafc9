package kubetest

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of a pod that simulated nodes understand; they belong into the pod
// template of a workload. Without StepsAnnotation a pod is ready at once, and
// that of a Job succeeds at once.
const (
	// StepsAnnotation holds the pod's Script. Followed by ".NODE", it holds another
	// one for the pod's runs on that node.
	StepsAnnotation = "sim.deployer/steps"

	// LogsAnnotation holds what the pod's containers have written; text appended
	// later reaches clients that follow. Followed by ".CONTAINER", it holds that of
	// one container.
	LogsAnnotation = "sim.deployer/logs"

	// LogsPreviousAnnotation holds what they have written in their earlier run,
	// like LogsAnnotation and by default the same.
	LogsPreviousAnnotation = "sim.deployer/logs-previous"

	// DeleteAfterAnnotation holds how long the pod takes to end when it is deleted,
	// like "40s".
	DeleteAfterAnnotation = "sim.deployer/delete-after"
)

// Step is one status of a simulated pod. All its containers share it. Its JSON is the short form that the development
// cluster reads; an unset Phase means Running.
type Step struct {
	After    time.Duration   `json:"-"` // since the step before, or since the pod was scheduled
	Phase    corev1.PodPhase `json:"phase,omitempty"`
	Reason   string          `json:"reason,omitempty"`  // of the pod, like Evicted
	Message  string          `json:"message,omitempty"` // of the pod
	Ready    bool            `json:"ready,omitempty"`
	Restarts int             `json:"rc,omitempty"`

	// State of the containers: by default Running if Ready, else Waiting with
	// ContainerCreating. Times that aren't set are filled in.
	State corev1.ContainerState `json:"state,omitzero"`

	// Last is how the containers' earlier run has ended; by default there was none.
	Last corev1.ContainerState `json:"last,omitzero"`

	// Init is the state of the init containers as long as they haven't completed;
	// a step without means that they have, and Last and Restarts are then the main
	// containers'.
	Init corev1.ContainerState `json:"init,omitzero"`

	// Goto is the index of the step that follows; nil is the next one. The script
	// ends after its last step: the pod stays as it is.
	Goto *int `json:"goto,omitempty"`
}

// MarshalJSON writes the time in words.
func (s Step) MarshalJSON() ([]byte, error) {
	type rest Step
	return json.Marshal(struct {
		After string `json:"after"`
		rest
	}{s.After.String(), rest(s)})
}

// Script is what a simulated pod goes through.
type Script []Step

// String is the value of StepsAnnotation.
func (s Script) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a Step holds nothing that JSON can't
	}
	return string(text)
}

// Annotations is the script as annotations for a pod template.
func (s Script) Annotations() map[string]string {
	return map[string]string{StepsAnnotation: s.String()}
}

// Running is the state of a container that runs.
func Running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

// Waiting is the state of a container that isn't running yet, or not again.
func Waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// Terminated is the state of a container that has ended.
func Terminated(exitCode int, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(exitCode), //nolint:gosec // an exit code
		Reason:   reason,
	}}
}

// ReadyAfter is a pod whose containers start when it is scheduled and become
// ready after a while.
func ReadyAfter(wait time.Duration) Script {
	return Script{{State: Running()}, {After: wait, Ready: true}}
}

// NeverReady is a pod whose containers run and never become ready.
func NeverReady() Script { return Script{{State: Running()}} }

// Exits is a pod whose containers end once and for all, with the pod failed
// unless exitCode is 0.
func Exits(after time.Duration, exitCode int) Script {
	end := Step{After: after, Phase: corev1.PodSucceeded, State: Terminated(0, "Completed")}
	if exitCode != 0 {
		end.Phase, end.State = corev1.PodFailed, Terminated(exitCode, "Error")
	}
	return Script{{State: Running()}, end}
}

// PullPermanent is a pod whose image doesn't exist. It is tried every ten seconds, with a pause in between.
func PullPermanent() Script {
	const image = `image "r/x:1": `
	const why = `failed to resolve reference "r/x:1": r/x:1: not found`
	failed := Waiting("ErrImagePull", "failed to pull and unpack "+image+why)
	backoff := Waiting("ImagePullBackOff", "Back-off pulling "+image+"ErrImagePull: "+why)
	return Script{
		{After: time.Second, Phase: corev1.PodPending, State: failed},
		{After: time.Second, Phase: corev1.PodPending, State: backoff},
		{After: 10 * time.Second, Phase: corev1.PodPending, State: failed, Goto: new(1)},
	}
}

// Crash is a pod whose containers end with exit code 1 each time they are
// started, at first at once and then with growing pauses.
func Crash() Script { return crash(Terminated(1, "Error")) }

// OOM is a pod whose containers are killed each time they are started because
// they need more memory than their limit, with the times of Crash.
func OOM() Script { return crash(Terminated(137, "OOMKilled")) }

func crash(end corev1.ContainerState) Script {
	backoff := Waiting("CrashLoopBackOff", "back-off restarting failed container")
	script := Script{
		{After: time.Second, State: Running()},
		{After: time.Second, State: Running(), Last: end, Restarts: 1},
		{After: time.Second, State: backoff, Last: end, Restarts: 1},
	}
	for i, pause := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		script = append(script,
			Step{After: pause, State: Running(), Last: end, Restarts: i + 2},
			Step{After: time.Second, State: backoff, Last: end, Restarts: i + 2})
	}
	return script
}
