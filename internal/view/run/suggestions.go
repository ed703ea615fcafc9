package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
	"deployer/internal/program"
	"deployer/internal/view/textfmt"
	"deployer/track"
	"deployer/track/class"
)

// suggest says what to do about the causes of a run that ended with err, after its rollback if there was one: that leaves no
// pods but those of hooks, and nothing of what it has deleted.
func (t *runState) suggest(r *Result, err error) {
	wentBack := r.Rollback != nil && (r.Rollback.Error == "" || r.Rollback.isIncomplete())
	deleted := map[string]bool{}
	if wentBack {
		for _, o := range r.Rollback.Objects {
			deleted[o.Object] = o.Action == decide.Delete
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
// gone are left out. Besides the names there are places for what is missing ({needs} has it, but for a key; {creates} is how kubectl
// creates it), the rule that denies a pod, the log of the run before, and for what to compare a pod with that fits no node.
func suggestions(of class.Class, id kube.ID, problem track.Finding, gone ...string) []Suggestion {
	names := map[string]string{
		"ns": id.Namespace, "kind": strings.ToLower(id.Kind), "name": id.Name,
		"rule": deniedBy(problem.Message), "container": strings.TrimPrefix(problem.Container, "init:"), "image": problem.Image, "pod": "", "node": "", "needs": "", "creates": "", "previous": "",
		"claims": "", "nodes": "nodes",
	}
	if strings.Contains(problem.Message, "persistentvolumeclaim") {
		names["claims"], names["nodes"] = "pvc", ""
	}
	if problem.Attempts > 1 { // a Job makes new pods instead
		names["previous"] = "--previous"
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
		switch name := textfmt.ShellWord(n.Name); {
		case n.Key != "":
			names["needs"] = strings.ToLower(n.Kind) + " " + name
		case n.Kind == "Secret": // describing it would only say that it isn't there
			names["creates"] = "secret generic " + name
		case n.Kind == "ConfigMap":
			names["creates"] = "configmap " + name
		}
	}
	for _, place := range gone {
		names[place] = ""
	}
	rules := aboutClasses[of].next
	if rules == nil {
		rules = []suggestionRule{describePod, describeObject}
	}
	var out []Suggestion
	for _, rule := range rules {
		isTold := func(command string) bool {
			return slices.ContainsFunc(out, func(s Suggestion) bool { return s.What == rule.what || s.Command == command && command != "" })
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
