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

// A nextStepRule is a next step with places for names: {ns}, {kind}, {name}, {pod},
// {container}, {image}, {node}, {needs}. A step whose place has no name is left out.
type nextStepRule struct{ what, command string }

// What next steps are about.
const (
	aboutPod    = "pod"
	aboutObject = "object"
	aboutRun    = "run" // its undoing
)

func (r nextStepRule) about() string {
	switch {
	case strings.Contains(r.command, "{pod}"):
		return aboutPod
	case strings.Contains(r.command, "{name}"):
		return aboutObject
	}
	return ""
}

// The steps that several classes share.
var (
	describePod        = nextStepRule{"describe the pod", "kubectl -n {ns} describe pod {pod}"}
	describeObject     = nextStepRule{"describe the object", "kubectl -n {ns} describe {kind} {name}"}
	listStorageClasses = nextStepRule{"list the storage classes", "kubectl get storageclass"}
)

// wholeLog is that of the container's earlier run when it runs again.
func wholeLog(again bool) nextStepRule {
	command := "kubectl -n {ns} logs {pod} -c {container}"
	if again {
		command += " --previous"
	}
	return nextStepRule{"show its full log", command}
}

// nextStepRules are the next steps by class of problem.
func nextStepRules(of class.Class, p track.Problem) []nextStepRule {
	switch of {
	case class.ImagePullPermanent, class.InvalidImageName:
		return []nextStepRule{{"check that the image was pushed", "crane manifest {image}"}, {"check the pull secrets of the pod", "kubectl -n {ns} get pod {pod} -o jsonpath='{.spec.imagePullSecrets}'"}}
	case class.ImagePullTransient, class.ImageNeverPull:
		return []nextStepRule{describePod, {"check that the registry answers", "crane manifest {image}"}}
	case class.CrashLoop, class.OOMKilled, class.LivenessProbeFailed, class.BadCommand:
		return []nextStepRule{wholeLog(p.Attempts > 1), describePod} // a Job makes new pods instead
	case class.ConfigError, class.MountedObjectMissing:
		return []nextStepRule{{"describe what is missing", "kubectl -n {ns} describe {needs}"}, describePod}
	case class.ReadinessProbeFailed:
		return []nextStepRule{{"show its log", "kubectl -n {ns} logs {pod} -c {container}"}, describePod}
	case class.Unschedulable, class.NoNodeFits:
		return []nextStepRule{describePod, {"compare with the nodes", "kubectl get nodes --show-labels"}}
	case class.ClaimUnbound:
		return []nextStepRule{{"describe the claims", "kubectl -n {ns} describe pvc"}, listStorageClasses}
	case class.ProvisioningFailed:
		return []nextStepRule{describeObject, listStorageClasses}
	case class.QuotaExceeded, class.QuotaDeadlock, class.LimitRangeViolated:
		return []nextStepRule{{"describe the limits", "kubectl -n {ns} describe resourcequota,limitrange"}}
	case class.PodSecurity:
		return []nextStepRule{{"show the PodSecurity level", "kubectl get namespace {ns} --show-labels"}}
	case class.MountFailed, class.MultiAttach, class.PodSandboxFailed, class.ContainerCreateFailedOnNode:
		return []nextStepRule{describePod, {"describe the node", "kubectl describe node {node}"}}
	case class.JobFailed, class.PodFailed:
		return []nextStepRule{wholeLog(false), describeObject}
	case class.Deleted, class.Replaced:
		return []nextStepRule{{"find out who did it", "kubectl -n {ns} get events --field-selector involvedObject.name={name}"}}
	}
	return []nextStepRule{describePod, describeObject}
}

// nextSteps fills in the steps of a class of problem of an object.
func nextSteps(of class.Class, id kube.ID, problem track.Problem) []NextStep {
	names := map[string]string{
		"ns": id.Namespace, "kind": strings.ToLower(id.Kind), "name": id.Name,
		"container": strings.TrimPrefix(problem.Container, "init:"), "image": problem.Image, "pod": "", "node": "", "needs": "",
	}
	if id.Group != "" && id.Group != "apps" && id.Group != "batch" {
		names["kind"] += "." + id.Group
	}
	if len(problem.Pods) > 0 {
		names["pod"] = problem.Pods[0]
	} else if id.Kind == "Pod" {
		names["pod"] = id.Name
	}
	if len(problem.Nodes) > 0 {
		names["node"] = problem.Nodes[0]
	}
	if n := problem.MissingObject; n != nil {
		names["needs"] = strings.ToLower(n.Kind) + " " + textfmt.ShellWord(n.Name)
	}
	var out []NextStep
	for _, rule := range nextStepRules(of, problem) {
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
		place := "{" + name + "}"
		if value == "" && strings.Contains(command, place) {
			return "", false
		}
		if name != "needs" {
			value = textfmt.ShellWord(value)
		}
		command = strings.ReplaceAll(command, place, value)
	}
	return command, true
}

// rollbackSteps suggests a rollback to the last working revision. It suggests none if the
// failure is older than the release and the release changed nothing: the rollback would
// return to the same failure.
func (t *runState) rollbackSteps(before bool) []NextStep {
	if t.op.Basis.Latest == nil || t.op.Verb != deploy.Upgrade && t.op.Verb != deploy.Rollback || t.neverBegan() || t.onlyRecordFailed() {
		return nil
	}
	revision := "" // the last that was deployed
	if status := t.op.Basis.Latest.Status; status == helmrelease.StatusDeployed || status == helmrelease.StatusSuperseded {
		if before && t.nothingChanged() {
			return nil
		}
		revision = fmt.Sprintf(" %d", t.op.Basis.Latest.Revision)
	}
	command := fmt.Sprintf(program.Name+" rollback %s%s -n %s", textfmt.ShellWord(t.op.Release), revision, textfmt.ShellWord(t.op.Namespace))
	return []NextStep{{What: "roll back", Command: command, about: aboutRun}}
}
