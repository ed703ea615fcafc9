package run

import (
	"fmt"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/internal/view/textfmt"
	"deployer/track"
	"deployer/track/class"
)

// stepInput is what commands are made of.
type stepInput struct {
	id      kube.ID
	problem track.Problem
}

// A stepRule is a next step with places for names: {ns}, {kind}, {name}, {pod},
// {container}, {image}, {node}, {needs}. A step whose place has no name is left out.
type stepRule struct{ what, command string }

// What next steps are about.
const (
	aboutPod    = "pod"
	aboutObject = "object"
	aboutRun    = "run" // its undoing
)

func (r stepRule) about() string {
	switch {
	case strings.Contains(r.command, "{pod}"):
		return aboutPod
	case strings.Contains(r.command, "{name}"):
		return aboutObject
	}
	return ""
}

// The steps that several classes share.
func describePod() stepRule {
	return stepRule{"describe the pod", "kubectl -n {ns} describe pod {pod}"}
}

func describeObject() stepRule {
	return stepRule{"describe the object", "kubectl -n {ns} describe {kind} {name}"}
}

// wholeLog is that of the container's earlier run when it runs again.
func wholeLog(again bool) stepRule {
	command := "kubectl -n {ns} logs {pod} -c {container}"
	if again {
		command += " --previous"
	}
	return stepRule{"show its full log", command}
}

// stepsFor are the next steps by class of problem.
func stepsFor(c string, p track.Problem) []stepRule {
	switch class.Class(c) {
	case class.ImagePermanent, class.ImageName:
		return []stepRule{{"check that the image was pushed", "crane manifest {image}"}, {"check the pull secrets of the pod", "kubectl -n {ns} get pod {pod} -o jsonpath='{.spec.imagePullSecrets}'"}}
	case class.ImageTransient, class.ImageNever:
		return []stepRule{describePod(), {"check that the registry answers", "crane manifest {image}"}}
	case class.CrashLoop, class.OOMKilled, class.Liveness, class.BadCommand:
		return []stepRule{wholeLog(p.Attempts > 1), describePod()} // a Job makes new pods instead
	case class.ConfigError, class.MountMissing:
		return []stepRule{{"describe what is missing", "kubectl -n {ns} describe {needs}"}, describePod()}
	case class.Readiness:
		return []stepRule{{"show its log", "kubectl -n {ns} logs {pod} -c {container}"}, describePod()}
	case class.Unschedulable, class.NoNodeFits:
		return []stepRule{describePod(), {"compare with the nodes", "kubectl get nodes --show-labels"}}
	case class.ClaimUnbound:
		return []stepRule{{"describe the claims", "kubectl -n {ns} describe pvc"}, {"list the storage classes", "kubectl get storageclass"}}
	case class.Provisioning:
		return []stepRule{describeObject(), {"list the storage classes", "kubectl get storageclass"}}
	case class.Quota, class.QuotaDeadlock, class.LimitRange:
		return []stepRule{{"describe the limits", "kubectl -n {ns} describe resourcequota,limitrange"}}
	case class.PodSecurity:
		return []stepRule{{"show the PodSecurity level", "kubectl get namespace {ns} --show-labels"}}
	case class.Mount, class.MultiAttach, class.Sandbox, class.NodeContainer:
		return []stepRule{describePod(), {"describe the node", "kubectl describe node {node}"}}
	case class.JobFailed, class.PodFailed:
		return []stepRule{wholeLog(false), describeObject()}
	case class.Deleted, class.Replaced:
		return []stepRule{{"find out who did it", "kubectl -n {ns} get events --field-selector involvedObject.name={name}"}}
	}
	return []stepRule{describePod(), describeObject()}
}

// nextFor fills in the steps of a class.
func nextFor(class string, in stepInput) []NextStep {
	names := map[string]string{
		"ns": in.id.Namespace, "kind": strings.ToLower(in.id.Kind), "name": in.id.Name,
		"container": strings.TrimPrefix(in.problem.Container, "init:"), "image": in.problem.Image,
	}
	if in.id.Group != "" && in.id.Group != "apps" && in.id.Group != "batch" {
		names["kind"] += "." + in.id.Group
	}
	if len(in.problem.Pods) > 0 {
		names["pod"] = in.problem.Pods[0]
	} else if in.id.Kind == "Pod" {
		names["pod"] = in.id.Name
	}
	if len(in.problem.Nodes) > 0 {
		names["node"] = in.problem.Nodes[0]
	}
	if n := in.problem.MissingObject; n != nil {
		names["needs"] = strings.ToLower(n.Kind) + " " + textfmt.ShellWord(n.Name)
	}
	var out []NextStep
	for _, rule := range stepsFor(class, in.problem) {
		if command, ok := filled(rule.command, names); ok {
			out = append(out, NextStep{What: rule.what, Command: command, about: rule.about()})
		}
	}
	return out
}

func filled(command string, names map[string]string) (string, bool) {
	if names["ns"] == "" {
		command = strings.ReplaceAll(command, " -n {ns}", "") // an object of cluster scope
	}
	for name, value := range names {
		if value == "" {
			continue
		}
		if name != "needs" {
			value = textfmt.ShellWord(value)
		}
		command = strings.ReplaceAll(command, "{"+name+"}", value)
	}
	for _, name := range []string{"ns", "kind", "name", "pod", "container", "image", "node", "needs"} {
		if strings.Contains(command, "{"+name+"}") {
			return "", false
		}
	}
	return command, true
}

// rollbackSteps suggests a rollback to the last working revision. It suggests none if the
// failure is older than the release and the release changed nothing: the rollback would
// return to the same failure.
func (t *runState) rollbackSteps(before bool) []NextStep {
	if t.op == nil || t.op.Basis.Latest == nil || t.op.Verb != deploy.Upgrade && t.op.Verb != deploy.Rollback {
		return nil
	}
	command := fmt.Sprintf(program.Name+" rollback %s -n %s", textfmt.ShellWord(t.op.Release), textfmt.ShellWord(t.op.Namespace))
	if status := t.op.Basis.Latest.Status; status == helmrelease.StatusDeployed || status == helmrelease.StatusSuperseded {
		if before && t.nothingChanged() {
			return nil
		}
		command = fmt.Sprintf(program.Name+" rollback %s %d -n %s", textfmt.ShellWord(t.op.Release), t.op.Basis.Latest.Revision, textfmt.ShellWord(t.op.Namespace))
	}
	return []NextStep{{What: "roll back", Command: command, about: aboutRun}}
}
