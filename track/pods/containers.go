package pods

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"deployer/track/class"
)

// pulling reports whether a waiting reason is about getting the image.
func pulling(reason string) bool {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed":
		return true
	}
	return false
}

// waits gives waiting reasons of the kubelet their class.
// k8s.io/kubernetes/pkg/kubelet/container/sync_result.go and images/types.go
var waits = map[string]class.Class{
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

func (m *Memory) ofContainer(c *Container, r Rules) (Finding, bool) {
	f := Finding{Container: c.Name, Image: c.Image, Message: c.Waiting.Message}
	reason := c.Waiting.Reason
	if pulling(reason) {
		f.Class = pullClass(reason, c.Waiting.Message, c.Image)
		f.Attempts = m.pulls[c.Name]
		return f, true
	}
	if known, ok := waits[reason]; ok {
		f.Class = refine(known, c.Waiting.Message)
		f.Reason = reason
		f.Attempts = m.tries(c)
		if f.Message == "" {
			f.Message = reason
		}
		return f, true
	}
	if f, ok := m.crash(c, r); ok {
		return f, true
	}
	return m.probe(c)
}

func refine(known class.Class, message string) class.Class {
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

// Restarted reports whether one of the pod's containers was restarted.
func (p *Pod) Restarted() bool {
	return slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Restarts > 0 })
}

// tries counts failed starts: each but the present one raised the restarts.
func (m *Memory) tries(c *Container) int { return m.restarts(c) + 1 }

func (m *Memory) restarts(c *Container) int { return max(0, c.Restarts-m.first[c.Name].restarts) }

// crash tells about containers that end and are started again. The restart
// policy Never has no restarts: there the pod fails.
func (m *Memory) crash(c *Container, r Rules) (Finding, bool) {
	restarts := m.restarts(c)
	last := c.Ended
	if last == nil {
		last = c.Last
	}
	downNow := c.Waiting.Reason == "CrashLoopBackOff" || c.Ended != nil && c.Ended.Code != 0
	fine := c.Ready && (c.Probe > 0 || restarts == 0)
	if fine || c.Init && c.Ended != nil && c.Ended.Code == 0 || !downNow && restarts == 0 {
		return Finding{}, false
	}
	f := Finding{Class: class.CrashLoop, Container: c.Name, Image: c.Image, Attempts: restarts}
	allowed := 2
	if r.Allowed != nil {
		allowed = *r.Allowed
	}
	f.Limit = allowed + 1
	if last != nil {
		f.Code, f.Reason = &last.Code, last.Reason
	}
	m.name(&f, c, last, downNow, r)
	return f, true
}

// name tells which kind of crash it is.
func (m *Memory) name(f *Finding, c *Container, last *End, downNow bool, r Rules) {
	liveness := m.events[class.Liveness]
	switch {
	case last == nil:
		f.Message = "restarts again and again"
	case last.Reason == "OOMKilled":
		f.Class = class.OOMKilled
		f.Message = "OOMKilled" + atLimit(c.Memory)
		if r.Lowered != nil && r.Lowered(c.Plain) {
			f.Limit = min(f.Limit, 2)
			f.Message += ", which this release has lowered"
		}
	case unrunnable(last):
		f.Class, f.Limit = class.BadCommand, min(f.Limit, class.Of(class.BadCommand).Attempts)
		if downNow {
			f.Attempts++
		}
		f.Message = join(fmt.Sprintf("exit code %d", last.Code), last.Message)
	case liveness != nil:
		f.Class, f.Message = class.Liveness, liveness.Message
	default:
		f.Message = fmt.Sprintf("exit code %d", last.Code)
		if last.Reason != "" && last.Reason != "Error" {
			f.Message = last.Reason + ", " + f.Message
		}
		f.Message = join(f.Message, last.Message)
	}
}

func atLimit(memory string) string {
	if memory == "" {
		return ""
	}
	return " at its limit of " + memory
}

// unrunnable: shells use 126 and 127 for what they can't run, and runtimes
// give StartError with 128 for everything, so there the text decides.
func unrunnable(e *End) bool {
	start := e.Reason == "StartError" || e.Reason == "ContainerCannotRun"
	return e.Code == 126 || e.Code == 127 || start && (e.Code != 128 || badCommand.MatchString(e.Message))
}

// probe tells about a container that runs and isn't ready. That is never a
// failure by itself.
func (m *Memory) probe(c *Container) (Finding, bool) {
	if !c.Running || c.Ready || c.Probe == 0 || c.Init {
		return Finding{}, false
	}
	f := Finding{Class: class.Readiness, Container: c.Name, Message: "readiness probe is failing"}
	if told := m.events[class.Readiness]; told != nil {
		f.Message = told.Message
		return f, true
	}
	return f, true
}

// SlowAt is when a readiness problem has lasted longer than the probe allows
// for a start.
func (m *Memory) SlowAt(f Finding) time.Time {
	c := m.Pod.container(f.Container)
	if c == nil {
		return f.Since
	}
	return f.Since.Add(c.Probe)
}
