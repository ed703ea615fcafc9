package plan

import (
	"fmt"
	"slices"

	"deployer/apply"
	"deployer/internal/view/document"
	"deployer/internal/view/textfmt"
)

func (o object) heading() document.Heading { return item{object: o}.entry().Heading }

// headline is an object and what happens to it.
func (o object) headline() (name, words string) {
	words = string(o.Action)
	if o.Action == "wait" {
		return o.Object, textfmt.CleanLine(o.Reason)
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
		words += ", " + o.randomWords()
	}
	return textfmt.CleanLine(o.Object), textfmt.CleanLine(words)
}

// randomWords say what of an object is random.
func (o object) randomWords() string {
	switch o.Action {
	case apply.Create, apply.Delete:
		return "its name is random"
	}
	return "only random values"
}

// sign of an object's action.
func (o object) sign() byte {
	switch o.Action {
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
func (d Document) title() string {
	text := textfmt.Capitalized(string(d.Verb)) + " of " + d.Release + " in " + d.Namespace
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
	return textfmt.CleanLine(text)
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
		what string
	}{
		{s.Recreate, "to recreate"}, {s.GiveBack, "to give back"}, {s.Unchanged, "unchanged"}, {s.Keep, "kept"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
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

// Conclusion is the summary, in fewer words when there is nothing to do.
func (d Document) Conclusion() string {
	if d.HasChanges {
		return d.Summary.sentence()
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
