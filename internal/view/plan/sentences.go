package plan

import (
	"cmp"
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/view/textfmt"
)

// headline is an object and what happens to it.
func (o object) headline() (name, words string) {
	words = string(o.Action)
	if o.Action == actionWait {
		return o.Object, o.Reason
	}
	if o.Hook != nil {
		words = fmt.Sprintf("%s hook", o.Hook.Event)
		if o.Hook.Weight != 0 {
			words += fmt.Sprintf(", weight %d", o.Hook.Weight)
		}
		if !slices.Equal(o.Hook.DeletePolicies, []string{string(helmrelease.HookBeforeHookCreation)}) {
			words += ", deleted by " + textfmt.List(o.Hook.DeletePolicies)
		}
	}
	if o.Reason != "" {
		words += ": " + o.Reason
	}
	switch {
	case o.Random && (o.Action == decide.Create || o.Action == decide.Delete):
		words += ", its name is random"
	case o.Random:
		words += ", only random values"
	}
	return o.Object, words
}

// What plans show beside the changes of objects.
const (
	actionHook decide.Action = "hook"
	actionWait decide.Action = "wait"
)

// signs are the signs of actions.
var signs = map[decide.Action]byte{
	decide.Create: '+', decide.Update: '~', decide.Recreate: '!', decide.Delete: '-', decide.GiveBack: '<', decide.Keep: '=',
	actionHook: '>', actionWait: '>',
}

func (o object) sign() byte { return cmp.Or(signs[o.Action], ' ') }

// title is the heading of a plan.
func (d Document) title() string {
	text := textfmt.Capitalized(string(d.Verb)) + " of " + d.Release + " in " + d.Namespace
	switch {
	case d.Verb == deploy.Uninstall:
		text += d.removal()
	case d.TargetRevision > 0:
		text += fmt.Sprintf(" to revision %d, as revision %d", d.TargetRevision, d.Revision)
	case d.BaseRevision > 0:
		text += fmt.Sprintf(", revision %d -> %d", d.BaseRevision, d.Revision)
	default:
		text += fmt.Sprintf(", revision %d", d.Revision)
	}
	if d.Chart != "" && d.Verb != deploy.Uninstall {
		text += ", chart " + d.Chart
	}
	text += d.InTitle()
	return text
}

// removal says how an uninstall differs from the usual one.
func (d Document) removal() string {
	text := ""
	switch d.Cascade {
	case "orphan":
		text = ", dependents are kept"
	case "foreground":
		text = ", dependents are deleted first"
	}
	if d.KeepsHistory {
		text += ", its history is kept"
	}
	return text
}

// sentence is the last line of a plan.
func (s Summary) sentence() string {
	text := fmt.Sprintf("Plan: %d to create, %d to update, %d to delete", s.Create, s.Update, s.Delete)
	for _, part := range []struct {
		n    int
		text string
	}{
		{s.Recreate, fmt.Sprintf(", %d to recreate", s.Recreate)},
		{s.GiveBack, fmt.Sprintf(", %d to give back", s.GiveBack)},
		{s.Unchanged, fmt.Sprintf(", %d unchanged", s.Unchanged)},
		{s.Keep, fmt.Sprintf(", %d kept", s.Keep)},
		{s.Taken, "; " + textfmt.Count(s.Taken, "field") + " taken over"},
		{s.Yielded, "; " + textfmt.Count(s.Yielded, "field") + " left to others"},
		{s.Refused, "; " + textfmt.Count(s.Refused, "field") + " refused"},
		{s.Hooks, "; " + textfmt.Count(s.Hooks, "hook")},
		{s.Random, fmt.Sprintf("; %d only for random values", s.Random)},
		{s.Kept, "; " + textfmt.Count(s.Kept, "generated value") + " kept"},
		{s.Renewed, "; " + textfmt.Count(s.Renewed, "generated value") + " renewed"},
		{s.Unverified, fmt.Sprintf("; %d not verified", s.Unverified)},
	} {
		if part.n > 0 {
			text += part.text
		}
	}
	return text
}

// Conclusion is the summary, in fewer words when there is nothing to do.
func (d Document) Conclusion() string {
	if d.HasChanges {
		return d.Summary.sentence()
	}
	if d.Verb == deploy.Install && len(d.Steps) == 0 {
		return "The chart renders no objects with these values."
	}
	text := "No changes."
	if n := d.Summary.Unchanged; n > 0 {
		text += " " + textfmt.Count(n, "object") + " unchanged."
	}
	if n := d.Summary.Keep; n > 0 {
		text += " " + textfmt.Count(n, "object") + " kept."
	}
	if n := d.Summary.Kept; n > 0 {
		text += " " + textfmt.Count(n, "generated value") + " kept."
	}
	return text
}
