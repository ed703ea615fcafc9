package view

import (
	"fmt"
	"slices"

	"deployer/apply"
	"deployer/internal/view/textfmt"
)

// A heading is the line of an object, free of control characters.
type heading struct {
	sign                byte
	name, words, source string
}

func (o planObject) heading() heading { return planBlock{planObject: o}.heading() }

// headline is an object and what happens to it.
func (o planObject) headline() (name, words string) {
	words = o.Action
	if o.Action == "wait" {
		return o.Object, textfmt.Line(o.Reason)
	}
	if o.Hook != nil {
		words = fmt.Sprintf("%s hook", o.Hook.Event)
		if o.Hook.Weight != 0 {
			words += fmt.Sprintf(", weight %d", o.Hook.Weight)
		}
		if !slices.Equal(o.Hook.DeletePolicies, []string{"before-hook-creation"}) {
			words += ", deleted by " + textfmt.List(o.Hook.DeletePolicies)
		}
	}
	if o.Reason != "" {
		words += ": " + o.Reason
	}
	if o.Random {
		words += ", " + o.whim()
	}
	return textfmt.Line(o.Object), textfmt.Line(words)
}

// whim says what of an object its templates make up.
func (o planObject) whim() string {
	switch apply.Action(o.Action) {
	case apply.Create, apply.Delete:
		return "its name is random"
	}
	return "only random values"
}

// sign of an object's action.
func (o planObject) sign() byte {
	switch apply.Action(o.Action) {
	case apply.Create:
		return '+'
	case apply.Update:
		return '~'
	case apply.Recreate:
		return '!'
	case apply.Delete:
		return '-'
	case apply.GiveBack:
		return '<'
	case apply.Keep:
		return '='
	case "hook", "wait":
		return '>'
	}
	return ' '
}

// title is the heading of a plan.
func (d planDocument) title() string {
	text := textfmt.Capitalized(d.Verb) + " of " + d.Release + " in " + d.Namespace
	switch {
	case d.Verb == "uninstall":
		text += d.removal()
	case d.TargetRevision > 0:
		text += fmt.Sprintf(" to revision %d, as revision %d", d.TargetRevision, d.Revision)
	case d.BaseRevision > 0:
		text += fmt.Sprintf(", revision %d -> %d", d.BaseRevision, d.Revision)
	default:
		text += fmt.Sprintf(", revision %d", d.Revision)
	}
	if d.Chart != "" && d.Verb != "uninstall" {
		text += ", chart " + d.Chart
	}
	return textfmt.Line(text)
}

// removal says how an uninstall differs from the usual one.
func (d planDocument) removal() string {
	text := ""
	switch d.Cascade {
	case "orphan":
		text = ", dependents stay"
	case "foreground":
		text = ", dependents go first"
	}
	if d.KeepsHistory {
		text += ", its history stays"
	}
	return text
}

// sentence is the last line of a plan.
func (s planSummary) sentence() string {
	text := fmt.Sprintf("Plan: %d to create, %d to update, %d to recreate, %d to delete, %d unchanged",
		s.Create, s.Update, s.Recreate, s.Delete, s.Unchanged)
	if s.GiveBack > 0 {
		text += fmt.Sprintf(", %d to give back", s.GiveBack)
	}
	if s.Keep > 0 {
		text += fmt.Sprintf(", %d kept", s.Keep)
	}
	for _, part := range []struct {
		n    int
		what string
	}{
		{s.Taken, "taken over"}, {s.Yielded, "left to others"}, {s.Refused, "refused"},
	} {
		if part.n > 0 {
			text += "; " + textfmt.Count(part.n, "field") + " " + part.what
		}
	}
	if s.Hooks > 0 {
		text += "; " + textfmt.Count(s.Hooks, "hook")
	}
	if s.Random > 0 {
		text += fmt.Sprintf("; %d only for random values", s.Random)
	}
	if s.Kept > 0 {
		text += "; " + textfmt.Count(s.Kept, "generated value") + " kept"
	}
	if s.Renewed > 0 {
		text += "; " + textfmt.Count(s.Renewed, "generated value") + " renewed"
	}
	if s.Unverified > 0 {
		text += fmt.Sprintf("; %d not verified", s.Unverified)
	}
	return text
}

func (w warning) String() string {
	text := w.Text
	if w.Object != "" {
		text = w.Object + ": " + text
	}
	if w.Source != "" {
		text += " (" + w.Source + ")"
	}
	return textfmt.Line(text)
}

// told writes warnings for people: the same words about many objects once.
func told(warnings []warning) []string {
	var out []string
	at := map[string]int{}
	more := map[string]int{}
	for _, w := range warnings {
		if _, known := at[w.Text]; known && w.Object != "" {
			more[w.Text]++
			continue
		}
		at[w.Text] = len(out)
		out = append(out, w.String())
	}
	for text, n := range more {
		out[at[text]] += fmt.Sprintf("; the same for %s more", textfmt.Count(n, "object"))
	}
	return out
}
