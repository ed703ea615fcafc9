package pods

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"deployer/track/class"
	"deployer/track/rules"
)

// pullReasons are the waiting reasons that are about getting the image.
var pullReasons = sets.New("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed")

// waitingReasons maps waiting reasons of the kubelet to classes.
// k8s.io/kubernetes/pkg/kubelet/container/sync_result.go and images/types.go
var waitingReasons = map[string]class.Class{
	"InvalidImageName":           class.InvalidImageName,
	"ErrImageNeverPull":          class.ImageNeverPull,
	"ImageInspectError":          class.ContainerCreateFailed,
	"CreateContainerConfigError": class.ConfigError,
	"CreateContainerError":       class.ContainerCreateFailed,
	"RunContainerError":          class.ContainerCreateFailed,
	"PreCreateHookError":         class.ContainerCreateFailed,
	"PreStartHookError":          class.ContainerCreateFailed,
	"PostStartHookError":         class.ContainerCreateFailed,
	"CreatePodSandboxError":      class.PodSandboxFailed,
	"ConfigPodSandboxError":      class.PodSandboxFailed,
	"KillContainerError":         class.ContainerCreateFailedOnNode,
}

// containerProblem returns what is wrong with a container; nil when nothing is.
func (h *History) containerProblem(c *Container, r Policy) *Symptom {
	reason := c.Waiting.Reason
	known, ok := waitingReasons[reason]
	switch {
	case pullReasons.Has(reason):
		return h.pullProblem(c)
	case !ok:
		if c.hasRecovered(r.Now) {
			return h.probeProblem(c)
		}
		return cmp.Or(h.crashProblem(c, r), h.probeProblem(c))
	}
	f := ofContainer(c, refineClass(known, c.Waiting.Message), cmp.Or(c.Waiting.Message, reason))
	f.Reason, f.Attempts = reason, h.crashes(c)
	switch f.Class {
	case class.BadCommand:
		f.Certain, f.Limit = true, 1 // in the runtime's own words
	case class.UserRefused:
		f.Message = refusedUser().FindStringSubmatch(c.Waiting.Message)[1]
		f.Advice = "set runAsUser of container " + c.PlainName + " to a number other than 0, or let it run as root"
	}
	return &f
}

func refineClass(known class.Class, message string) class.Class {
	switch {
	case known == class.ContainerCreateFailed && isRefusedCommand(message):
		return class.BadCommand
	case known == class.ConfigError && refusedUser().MatchString(message):
		return class.UserRefused
	case (known == class.ContainerCreateFailed || known == class.ConfigError) && nodeTrouble().MatchString(message):
		return class.ContainerCreateFailedOnNode
	}
	return known
}

// HasRestarted reports whether one of the pod's containers was restarted.
func (p *Pod) HasRestarted() bool {
	return slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Restarts > 0 })
}

// crashes counts the runs and starts of a container that have failed, as far as they count.
func (h *History) crashes(c *Container) int {
	return max(0, c.crashes()-h.of(c.Name).crashesBefore)
}

// crashes counts all of them: each restart tells of one, and a container that is down
// of one more, whose restart is still to come.
func (c *Container) crashes() int {
	if c.isDown() {
		return c.Restarts + 1
	}
	return c.Restarts
}

// hasRecovered reports whether the container runs for so long that its crashes are over: the kubelet resets its
// back-off then.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy
func (c *Container) hasRecovered(now time.Time) bool {
	return !c.RunningSince.IsZero() && now.Sub(c.RunningSince) >= 10*time.Minute
}

// lastRun is the end of the container's newest run that has ended; nil when none has.
func (c *Container) lastRun() *Termination { return cmp.Or(c.Terminated, c.LastTermination) }

// isDown reports whether the container's last run or start has failed, and the next
// hasn't begun.
func (c *Container) isDown() bool {
	_, failedStart := waitingReasons[c.Waiting.Reason]
	return failedStart || c.Waiting.Reason == "CrashLoopBackOff" || c.Terminated != nil && c.Terminated.ExitCode != 0
}

// crashProblem returns the finding of a container that crashes, or that has ended and isn't started again.
func (h *History) crashProblem(c *Container, r Policy) *Symptom {
	crashes := h.crashes(c)
	last := c.lastRun()
	if h.Pod.hasEndedInVain(c) {
		f := ofContainer(c, class.ContainerEnded, "")
		f.Ended, f.ExitCode, f.Reason = true, &last.ExitCode, last.Reason
		h.describeCrash(&f, c, last, r)
		f.Message += "; it isn't started again"
		f.Limit, f.Certain = 0, false
		return &f
	}
	fine := c.Ready && (c.ReadinessWindow > 0 || crashes == 0) || c.hasEnded()
	if fine || c.Init && c.Terminated != nil && c.Terminated.ExitCode == 0 || !c.isDown() && crashes == 0 {
		return nil
	}
	f := ofContainer(c, class.CrashLoop, "")
	f.Attempts, f.Limit = crashes, 3
	if r.FailuresAllowed != nil {
		f.Limit = *r.FailuresAllowed + 1
	}
	if last != nil {
		f.ExitCode, f.Reason = &last.ExitCode, last.Reason
	}
	h.describeCrash(&f, c, last, r)
	return &f
}

func (f *Symptom) setClass(c class.Class) { f.Class, f.Title = c, class.InfoOf(c).Title }

// describeCrash sets the class and message of a crash.
func (h *History) describeCrash(f *Symptom, c *Container, last *Termination, r Policy) {
	liveness, isKilled := h.events[class.LivenessProbeFailed]
	message := h.of(c.Name).execError
	if last != nil && last.Message != "" {
		message = last.Message
	}
	switch {
	case last == nil:
		f.Message = "restarts again and again"
	case last.Reason == "OOMKilled":
		f.setClass(class.OOMKilled)
		f.Message = "OOMKilled"
		if c.MemoryLimit != "" {
			f.Message += " at its limit of " + c.MemoryLimit
		}
		if r.MemoryLowered != nil && r.MemoryLowered(c.PlainName) {
			f.Limit = min(f.Limit, 2)
			f.Message += ", which this release has lowered"
		}
	case isRefusedCommand(last.Message) && last.isFailedStart(), neverExecuted().MatchString(message):
		f.setClass(class.BadCommand)
		f.Certain, f.Limit = true, 1 // in the runtime's or the kernel's own words
		f.Message = rules.JoinText(fmt.Sprintf("exit code %d", last.ExitCode), message)
	case last.isFailedStart(), last.ExitCode == 126, last.ExitCode == 127: // shells use these for what they can't run
		f.setClass(class.BadCommand)
		f.Limit = min(f.Limit, class.InfoOf(class.BadCommand).Attempts)
		f.Message = rules.JoinText(fmt.Sprintf("exit code %d", last.ExitCode), last.Message)
	case isKilled:
		f.setClass(class.LivenessProbeFailed)
		f.Message = liveness.message
	default:
		f.Message = fmt.Sprintf("exit code %d", last.ExitCode)
		if last.Reason != "" && last.Reason != "Error" {
			f.Message = last.Reason + ", " + f.Message
		}
		f.Message = rules.JoinText(f.Message, last.Message)
	}
}

// isRefusedCommand reports whether a runtime says that it is the command that can't be run.
func isRefusedCommand(message string) bool {
	return badCommand().MatchString(message) && strings.Contains(message, "exec")
}

// isFailedStart reports whether the runtime could not run the command. It gives
// StartError with 128 for everything, so there the text decides.
func (e *Termination) isFailedStart() bool {
	start := e.Reason == "StartError" || e.Reason == "ContainerCannotRun"
	return start && (e.ExitCode != 128 || badCommand().MatchString(e.Message))
}

// probeProblem returns the finding of a container that runs but hasn't started or isn't ready by its probes. It is never
// a failure by itself: a container that doesn't start in time is killed.
func (h *History) probeProblem(c *Container) *Symptom {
	event := h.events[class.ReadinessProbeFailed].message
	switch {
	case !c.Running || c.Ready || c.Init:
		return nil
	case c.StartupWindow > 0 && !c.Started:
		message := h.events[class.LivenessProbeFailed].message // the kubelet writes the same events of both
		return c.probeSymptom(class.StartupProbeFailed, message, c.startupProbe, c.StartupWindow)
	case c.ReadinessWindow > 0:
		return c.probeSymptom(class.ReadinessProbeFailed, event, c.readinessProbe, c.ReadinessWindow)
	}
	return nil
}

// probeSymptom is the finding of a probe; event is what the kubelet has written of it, if it has.
func (c *Container) probeSymptom(of class.Class, event, probe string, window time.Duration) *Symptom {
	message := cmp.Or(event, "it hasn't succeeded yet")
	if !strings.Contains(message, strings.TrimPrefix(probe, "GET ")) {
		message += " (" + probe + ")"
	}
	f := symptom(of, message)
	f.Container, f.StartWindow = c.Name, window
	return &f
}

// restarts says whether the kubelet starts a container again that has ended. A container may have a policy and rules
// of its own, which go before the policy of its pod.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-restart-rules
type restarts struct {
	policy corev1.RestartPolicy
	rules  []corev1.ContainerRestartRule
}

func restartsOf(c *corev1.Container, p *corev1.PodSpec) restarts {
	policy := cmp.Or(p.RestartPolicy, corev1.RestartPolicyAlways)
	if c.RestartPolicy == nil {
		return restarts{policy: policy}
	}
	return restarts{policy: corev1.RestartPolicy(*c.RestartPolicy), rules: c.RestartPolicyRules}
}

// after reports whether the container is started again after it has ended with an exit code.
func (r restarts) after(code int32) bool {
	if slices.ContainsFunc(r.rules, func(rule corev1.ContainerRestartRule) bool { return matches(rule.ExitCodes, code) }) {
		return true // there is no other action than to restart the container, or the whole pod with it
	}
	return r.policy == corev1.RestartPolicyAlways || r.policy == corev1.RestartPolicyOnFailure && code != 0
}

func matches(on *corev1.ContainerRestartRuleOnExitCodes, code int32) bool {
	if on == nil {
		return false
	}
	is := slices.Contains(on.Values, code)
	return is == (on.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn)
}

// restartingAll is the reason of containers that have ended because all containers of their pod are restarted, by the
// rules of one of them.
// k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go, RestartingAllContainers
const restartingAll = "RestartingAllContainers"

// hasEnded reports whether a container has ended for good.
func (c *Container) hasEnded() bool {
	return c.Terminated != nil && c.Terminated.Reason != restartingAll && !c.restarts.after(c.Terminated.ExitCode)
}

// hasEndedInVain reports whether a container has ended for good, and the pod can't become what it has to be by that:
// it has failed, or it is one of a workload whose pods must stay ready, as one with a container that has ended can't.
// k8s.io/kubernetes/pkg/kubelet/status/generate.go, GenerateContainersReadyCondition
func (p *Pod) hasEndedInVain(c *Container) bool {
	if !c.hasEnded() {
		return false
	}
	mustServe := p.Policy == corev1.RestartPolicyAlways && p.Owner.UID != ""
	return c.Terminated.ExitCode != 0 || mustServe && !c.Init
}
