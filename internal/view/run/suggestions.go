package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
	"deployer/internal/program"
	"deployer/internal/view/textfmt"
	"deployer/track"
	"deployer/track/class"
)

// A suggestionRule is a suggestion with places for names: {ns}, {kind}, {name}, {pod},
// {container}, {image}, {node}, {rule}, {needs} and, as kubectl creates it, {creates}. One whose place has no name is left out.
type suggestionRule struct{ what, command string }

// The rules that several classes share.
var (
	describePod        = suggestionRule{"describe the pod", "kubectl -n {ns} describe pod {pod}"}
	describeObject     = suggestionRule{"describe the object", "kubectl -n {ns} describe {kind} {name}"}
	listStorageClasses = suggestionRule{"list the storage classes", "kubectl get storageclass"}
)

// wholeLog shows the whole log of a container; of one that was restarted, that of its previous run.
func wholeLog(restarted bool) suggestionRule {
	command := "kubectl -n {ns} logs {pod} -c {container}"
	if restarted {
		command += " --previous"
	}
	return suggestionRule{"show its full log", command}
}

// suggestionRules are the rules for a class of problem.
func suggestionRules(of class.Class, p track.Finding) []suggestionRule {
	switch of {
	case class.ImagePullPermanent, class.InvalidImageName:
		return []suggestionRule{{"check that the image was pushed", "crane manifest {image}"}, {"check the pull secrets of the pod", "kubectl -n {ns} get pod {pod} -o jsonpath='{.spec.imagePullSecrets}'"}}
	case class.ImagePullTransient, class.ImageNeverPull:
		return []suggestionRule{describePod, {"check that the registry answers", "crane manifest {image}"}}
	case class.CrashLoop, class.OOMKilled, class.LivenessProbeFailed, class.BadCommand:
		return []suggestionRule{wholeLog(p.Attempts > 1), describePod} // a Job makes new pods instead
	case class.ContainerEnded:
		return []suggestionRule{wholeLog(false), describePod}
	case class.ResourceClaimUnallocated:
		return []suggestionRule{{"describe the claims", "kubectl -n {ns} describe resourceclaims,resourceclaimtemplates"}, {"list the devices", "kubectl get deviceclasses,resourceslices"}}
	case class.ConfigError, class.MountedObjectMissing:
		if p.Missing != nil && p.Missing.Key == "" { // describing it would only say that it isn't there
			return []suggestionRule{{"create what is missing", "kubectl -n {ns} create {creates} --from-literal=KEY=VALUE"}, describePod}
		}
		return []suggestionRule{{"describe what is missing", "kubectl -n {ns} describe {needs}"}, describePod}
	case class.ReadinessProbeFailed, class.StartupProbeFailed:
		return []suggestionRule{{"show its log", "kubectl -n {ns} logs {pod} -c {container}"}, describePod}
	case class.Unschedulable:
		return []suggestionRule{describePod, {"see what the nodes have left", "kubectl describe nodes"}}
	case class.NoNodeFits:
		if strings.Contains(p.Message, "persistentvolumeclaim") {
			return []suggestionRule{describePod, {"list the claims", "kubectl -n {ns} get pvc"}}
		}
		return []suggestionRule{describePod, {"compare with the nodes", "kubectl get nodes --show-labels"}}
	case class.ClaimUnbound:
		return []suggestionRule{{"describe the claims", "kubectl -n {ns} describe pvc"}, listStorageClasses}
	case class.ProvisioningFailed:
		return []suggestionRule{describeObject, listStorageClasses}
	case class.AdmissionDenied:
		return []suggestionRule{{"show the rule", "kubectl get {rule}"}, describeObject}
	case class.QuotaDeadlock:
		return []suggestionRule{{"describe the limits", "kubectl -n {ns} describe resourcequota,limitrange"}, {"raise the quota, or let old pods go first: maxSurge: 0", ""}}
	case class.QuotaExceeded, class.LimitRangeViolated:
		return []suggestionRule{{"describe the limits", "kubectl -n {ns} describe resourcequota,limitrange"}}
	case class.PodSecurity:
		return []suggestionRule{{"show the PodSecurity level", "kubectl get namespace {ns} --show-labels"}}
	case class.MountFailed, class.MultiAttach, class.PodSandboxFailed, class.ContainerCreateFailedOnNode, class.NodeRefused, class.OldPodStays:
		return []suggestionRule{describePod, {"describe the node", "kubectl describe node {node}"}}
	case class.JobFailed, class.PodFailed:
		return []suggestionRule{wholeLog(false), describeObject}
	case class.Timeout:
		return []suggestionRule{wholeLog(false), describePod, describeObject}
	case class.Deleted, class.Replaced:
		return []suggestionRule{{"find out who did it", "kubectl -n {ns} get events --field-selector involvedObject.name={name}"}}
	}
	return []suggestionRule{describePod, describeObject}
}

// suggest says what to do about the causes of a run that ended with err, after its rollback if there was one: that leaves no
// pods but those of hooks, and nothing of what it has deleted.
func (t *runState) suggest(r *Result, err error) {
	wentBack := r.Rollback != nil && (r.Rollback.Error == "" || r.Rollback.isIncomplete())
	deleted := map[string]bool{}
	if wentBack {
		for _, o := range r.Rollback.Objects {
			deleted[o.Object] = o.Action == apply.Delete
		}
	}
	for i := range r.Causes {
		c := &r.Causes[i]
		var gone []string
		switch {
		case len(c.Objects) == 0 || c.Class == classRejected || c.Class == classStayed || c.Class == classApplyFailed:
			continue // the error says it all
		case deleted[c.Objects[0].String()]:
			gone = []string{"name", "pod"}
		case wentBack && c.Hook == "":
			gone = []string{"pod"}
		}
		c.Next = suggestions(c.Class, c.Objects[0], c.Finding, gone...)
	}
	if len(r.Causes) > 0 && r.verdict != verdictRejected && !wentBack && !overtaken(err) && !errors.As(err, new(*apply.StayedError)) {
		r.Causes[0].Next = append(r.Causes[0].Next, t.undoSuggestion()...)
	}
}

// suggestions fills in the rules for a class of problem of an object. Those with a place for the name of something that is
// gone are left out.
func suggestions(of class.Class, id kube.ID, problem track.Finding, gone ...string) []Suggestion {
	names := map[string]string{
		"ns": id.Namespace, "kind": strings.ToLower(id.Kind), "name": id.Name,
		"rule": deniedBy(problem.Message), "container": strings.TrimPrefix(problem.Container, "init:"), "image": problem.Image, "pod": "", "node": "", "needs": "", "creates": "",
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
	if n := problem.Missing; n != nil {
		name := textfmt.ShellWord(n.Name)
		names["needs"] = strings.ToLower(n.Kind) + " " + name
		switch n.Kind {
		case "Secret":
			names["creates"] = "secret generic " + name
		case "ConfigMap":
			names["creates"] = "configmap " + name
		}
	}
	for _, place := range gone {
		names[place] = ""
	}
	var out []Suggestion
	for _, rule := range suggestionRules(of, problem) {
		isTold := func(command string) bool {
			return command != "" && slices.ContainsFunc(out, func(s Suggestion) bool { return s.Command == command })
		}
		if command, ok := filled(rule.command, names); ok && !isTold(command) {
			out = append(out, Suggestion{What: rule.what, Command: command})
		}
	}
	return out
}

var denyingPolicy = lazyregexp.New(`ValidatingAdmissionPolicy '([^']+)'`)

// deniedBy is what kubectl shows the rule by that a message of the API server is about: the policy, or the webhooks; empty for
// neither.
func deniedBy(message string) string {
	if m := denyingPolicy().FindStringSubmatch(message); m != nil {
		return "validatingadmissionpolicy " + textfmt.ShellWord(m[1]) + " -o yaml"
	}
	if strings.Contains(message, "admission webhook") {
		return "validatingwebhookconfigurations,mutatingwebhookconfigurations"
	}
	return ""
}

func filled(command string, names map[string]string) (string, bool) {
	if names["ns"] == "" {
		command = strings.ReplaceAll(command, " -n {ns}", "") // an object of cluster scope
	}
	if arguments, ok := strings.CutPrefix(command, "kubectl "); ok {
		command = program.Kubectl + " " + arguments
	}
	for name, value := range names {
		place := "{" + name + "}"
		if value == "" && strings.Contains(command, place) {
			return "", false
		}
		if name != "needs" && name != "creates" && name != "rule" {
			value = textfmt.ShellWord(value)
		}
		command = strings.ReplaceAll(command, place, value)
	}
	return command, true
}

// undoSuggestion suggests how to go back: to the last working revision, or by an uninstall if there never was one. It suggests
// nothing if the release changed nothing, or has an uninstalled revision, whose history an uninstall would delete.
func (t *runState) undoSuggestion() []Suggestion {
	if t.neverBegan() || t.onlyRecordFailed() {
		return nil
	}
	target := textfmt.ShellWord(t.op.Release) + "%s -n " + textfmt.ShellWord(t.op.Namespace)
	switch {
	case t.op.Verb == deploy.Install && (t.op.Basis.Latest == nil || t.op.Basis.Latest.Status != helmrelease.StatusUninstalled):
		return []Suggestion{{What: "remove it again", Command: fmt.Sprintf(program.OnCluster+" uninstall "+target, "")}}
	case t.op.Basis.Latest == nil || t.op.Verb != deploy.Upgrade && t.op.Verb != deploy.Rollback:
		return nil
	}
	revision := "" // the last that was deployed
	if status := t.op.Basis.Latest.Status; status == helmrelease.StatusDeployed || status == helmrelease.StatusSuperseded {
		if t.nothingChanged() {
			return nil
		}
		revision = fmt.Sprintf(" %d", t.op.Basis.Latest.Revision)
	}
	return []Suggestion{{What: "roll back", Command: fmt.Sprintf(program.OnCluster+" rollback "+target, revision)}}
}
