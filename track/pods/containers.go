package pods

import (
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

// waitingReasons gives waiting reasons of the kubelet their class.
// k8s.io/kubernetes/pkg/kubelet/container/sync_result.go and images/types.go
var waitingReasons = map[string]class.Class{
	"InvalidImageName":           class.ImageName,
	"ErrImageNeverPull":          class.ImageNever,
	"ImageInspectError":          class.ContainerCreate,
	"CreateContainerConfigError": class.ConfigError,
	"CreateContainerError":       class.ContainerCreate,
	"RunContainerError":          class.ContainerCreate,
	"PreCreateHookError":         class.ContainerCreate,
	"PreStartHookError":          class.ContainerCreate,
	"PostStartHookError":         class.ContainerCreate,
	"CreatePodSandboxError":      class.Sandbox,
	"ConfigPodSandboxError":      class.Sandbox,
	"KillContainerError":         class.NodeContainer,
}

func (h *History) containerProblem(c *Container, r Policy) (Finding, bool) {
	f := Finding{Container: c.Name, Image: c.Image, Message: c.Waiting.Message}
	reason := c.Waiting.Reason
	if isPulling(reason) {
		f.Class = pullClass(reason, c.Waiting.Message, c.Image)
		f.Attempts = h.pullAttempts[c.Name]
		return f, true
	}
	if known, ok := waitingReasons[reason]; ok {
		f.Class = refineClass(known, c.Waiting.Message)
		f.Reason = reason
		f.Attempts = h.startAttempts(c)
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
	switch known {
	case class.ConfigError:
		if nodeTrouble.MatchString(message) {
			return class.NodeContainer
		}
	case class.ContainerCreate:
		if badCommand.MatchString(message) && strings.Contains(message, "exec") {
			return class.BadCommand
		}
		if nodeTrouble.MatchString(message) {
			return class.NodeContainer
		}
	}
	return known
}

// HasRestarted reports whether one of the pod's containers was restarted.
func (p *Pod) HasRestarted() bool {
	return slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Restarts > 0 })
}

// startAttempts counts failed starts: each but the present one raised the restarts.
func (h *History) startAttempts(c *Container) int { return h.restarts(c) + 1 }

func (h *History) restarts(c *Container) int {
	return max(0, c.Restarts-h.restartsBefore[c.Name].restarts)
}

// crashProblem is that of a container that ends and is started again. The restart
// policy Never has no restarts: there the pod fails.
func (h *History) crashProblem(c *Container, r Policy) (Finding, bool) {
	restarts := h.restarts(c)
	last := c.Terminated
	if last == nil {
		last = c.LastTermination
	}
	downNow := c.Waiting.Reason == "CrashLoopBackOff" || c.Terminated != nil && c.Terminated.ExitCode != 0
	fine := c.Ready && (c.ReadinessWindow > 0 || restarts == 0)
	if fine || c.Init && c.Terminated != nil && c.Terminated.ExitCode == 0 || !downNow && restarts == 0 {
		return Finding{}, false
	}
	f := Finding{Class: class.CrashLoop, Container: c.Name, Image: c.Image, Attempts: restarts}
	allowed := 2
	if r.FailuresAllowed != nil {
		allowed = *r.FailuresAllowed
	}
	f.Limit = allowed + 1
	if last != nil {
		f.ExitCode, f.Reason = &last.ExitCode, last.Reason
	}
	h.describeCrash(&f, c, last, downNow, r)
	return f, true
}

// describeCrash sets the class and message of a crash.
func (h *History) describeCrash(f *Finding, c *Container, last *Termination, downNow bool, r Policy) {
	liveness := h.events[class.Liveness]
	switch {
	case last == nil:
		f.Message = "restarts again and again"
	case last.Reason == "OOMKilled":
		f.Class = class.OOMKilled
		f.Message = "OOMKilled" + limitText(c.MemoryLimit)
		if r.MemoryLowered != nil && r.MemoryLowered(c.PlainName) {
			f.Limit = min(f.Limit, 2)
			f.Message += ", which this release has lowered"
		}
	case isBadCommand(last):
		f.Class, f.Limit = class.BadCommand, min(f.Limit, class.InfoOf(class.BadCommand).Attempts)
		if downNow {
			f.Attempts++
		}
		f.Message = joinText(fmt.Sprintf("exit code %d", last.ExitCode), last.Message)
	case liveness != nil:
		f.Class, f.Message = class.Liveness, liveness.Message
	default:
		f.Message = fmt.Sprintf("exit code %d", last.ExitCode)
		if last.Reason != "" && last.Reason != "Error" {
			f.Message = last.Reason + ", " + f.Message
		}
		f.Message = joinText(f.Message, last.Message)
	}
}

func limitText(memory string) string {
	if memory == "" {
		return ""
	}
	return " at its limit of " + memory
}

// isBadCommand: shells use 126 and 127 for what they can't run, and runtimes
// give StartError with 128 for everything, so there the text decides.
func isBadCommand(e *Termination) bool {
	start := e.Reason == "StartError" || e.Reason == "ContainerCannotRun"
	return e.ExitCode == 126 || e.ExitCode == 127 || start && (e.ExitCode != 128 || badCommand.MatchString(e.Message))
}

// readinessProblem is that of a container that runs and isn't ready. That is never a
// failure by itself.
func (h *History) readinessProblem(c *Container) (Finding, bool) {
	if !c.Running || c.Ready || c.ReadinessWindow == 0 || c.Init {
		return Finding{}, false
	}
	f := Finding{Class: class.Readiness, Container: c.Name, Message: "readiness probe is failing"}
	if event := h.events[class.Readiness]; event != nil {
		f.Message = event.Message
		return f, true
	}
	return f, true
}

// ReadinessOverdueAt is when a readiness problem has lasted longer than the probe allows
// for a start.
func (h *History) ReadinessOverdueAt(f Finding) time.Time {
	c := h.Pod.container(f.Container)
	if c == nil {
		return f.Since
	}
	return f.Since.Add(c.ReadinessWindow)
}
