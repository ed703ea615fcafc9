package pods

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"deployer/track/class"
)

// isPulling reports whether a waiting reason is about getting the image.
func isPulling(reason string) bool {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed":
		return true
	}
	return false
}

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

func (h *History) containerProblem(c *Container, r Policy) (Finding, bool) {
	reason := c.Waiting.Reason
	if isPulling(reason) {
		return h.pullProblem(c), true
	}
	f := Finding{Message: c.Waiting.Message, ContainerFailure: ContainerFailure{Container: c.Name, Image: c.Image}}
	if known, ok := waitingReasons[reason]; ok {
		f.Class = refineClass(known, c.Waiting.Message)
		f.Reason = reason
		f.Attempts = h.crashes(c)
		if f.Class == class.BadCommand {
			f.Certain, f.Limit = true, 1 // in the runtime's own words
		}
		if f.Message == "" {
			f.Message = reason
		}
		return f, true
	}
	if f, ok := h.crashProblem(c, r); ok {
		return f, true
	}
	return h.readinessProblem(c)
}

func refineClass(known class.Class, message string) class.Class {
	switch {
	case known == class.ContainerCreateFailed && isRefusedCommand(message):
		return class.BadCommand
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
	return max(0, c.crashes()-h.crashesBefore[c.Name])
}

// crashes counts all of them: each restart tells of one, and a container that is down
// of one more, whose restart is still to come.
func (c *Container) crashes() int {
	if c.isDown() {
		return c.Restarts + 1
	}
	return c.Restarts
}

// lastRun is how the container's last run that is over has ended; nil when none is.
func (c *Container) lastRun() *Termination { return cmp.Or(c.Terminated, c.LastTermination) }

// isDown reports whether the container's last run or start has failed, and the next
// hasn't begun.
func (c *Container) isDown() bool {
	_, failedStart := waitingReasons[c.Waiting.Reason]
	return failedStart || c.Waiting.Reason == "CrashLoopBackOff" || c.Terminated != nil && c.Terminated.ExitCode != 0
}

// crashProblem returns the finding of a container that crashes and is restarted. With
// restart policy Never the pod fails instead.
func (h *History) crashProblem(c *Container, r Policy) (Finding, bool) {
	crashes := h.crashes(c)
	last := c.lastRun()
	fine := c.Ready && (c.ReadinessWindow > 0 || crashes == 0)
	if fine || c.Init && c.Terminated != nil && c.Terminated.ExitCode == 0 || !c.isDown() && crashes == 0 {
		return Finding{}, false
	}
	f := Finding{Class: class.CrashLoop, ContainerFailure: ContainerFailure{Container: c.Name, Image: c.Image, Attempts: crashes, Limit: 3}}
	if r.FailuresAllowed != nil {
		f.Limit = *r.FailuresAllowed + 1
	}
	if last != nil {
		f.ExitCode, f.Reason = &last.ExitCode, last.Reason
	}
	h.describeCrash(&f, c, last, r)
	return f, true
}

// describeCrash sets the class and message of a crash.
func (h *History) describeCrash(f *Finding, c *Container, last *Termination, r Policy) {
	liveness, isKilled := h.events[class.LivenessProbeFailed]
	message := h.execErrors[c.Name]
	if last != nil && last.Message != "" {
		message = last.Message
	}
	switch {
	case last == nil:
		f.Message = "restarts again and again"
	case last.Reason == "OOMKilled":
		f.Class = class.OOMKilled
		f.Message = "OOMKilled"
		if c.MemoryLimit != "" {
			f.Message += " at its limit of " + c.MemoryLimit
		}
		if r.MemoryLowered != nil && r.MemoryLowered(c.PlainName) {
			f.Limit = min(f.Limit, 2)
			f.Message += ", which this release has lowered"
		}
	case isRefusedCommand(last.Message) && last.isFailedStart(), neverExecuted().MatchString(message):
		f.Class, f.Certain, f.Limit = class.BadCommand, true, 1 // in the runtime's or the kernel's own words
		f.Message = joinText(fmt.Sprintf("exit code %d", last.ExitCode), message)
	case last.isFailedStart(), last.ExitCode == 126, last.ExitCode == 127: // shells use these for what they can't run
		f.Class, f.Limit = class.BadCommand, min(f.Limit, class.InfoOf(class.BadCommand).Attempts)
		f.Message = joinText(fmt.Sprintf("exit code %d", last.ExitCode), last.Message)
	case isKilled:
		f.Class, f.Message = class.LivenessProbeFailed, liveness.message
	default:
		f.Message = fmt.Sprintf("exit code %d", last.ExitCode)
		if last.Reason != "" && last.Reason != "Error" {
			f.Message = last.Reason + ", " + f.Message
		}
		f.Message = joinText(f.Message, last.Message)
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

// readinessProblem returns the finding of a container that runs but isn't ready. It is never
// a failure by itself.
func (h *History) readinessProblem(c *Container) (Finding, bool) {
	if !c.Running || c.Ready || c.ReadinessWindow == 0 || c.Init {
		return Finding{}, false
	}
	f := Finding{Class: class.ReadinessProbeFailed, Message: "readiness probe is failing", ContainerFailure: ContainerFailure{Container: c.Name}}
	if event, known := h.events[class.ReadinessProbeFailed]; known {
		f.Message = event.message
	}
	return f, true
}

// ReadinessOverdueAt returns when a readiness problem has lasted longer than a start may
// take by the probe's settings.
func (h *History) ReadinessOverdueAt(f Finding) time.Time {
	c := h.Pod.container(f.Container)
	if c == nil {
		return f.Since
	}
	return f.Since.Add(c.ReadinessWindow)
}
