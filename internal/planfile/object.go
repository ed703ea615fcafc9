package planfile

import (
	"deployer/apply"
	"deployer/apply/fields"
	"deployer/internal/deploy"
	"deployer/internal/hide"
)

// objectsOf tells of each object of a plan what is done to it and what that
// depends on. What is kept is left out: nothing is done to it.
func objectsOf(k *key, op *deploy.Operation) []Object {
	out, plan := []Object{}, op.Plan
	if plan == nil {
		return out
	}
	add := func(step deploy.Step, changes []apply.Change) {
		for _, c := range changes {
			if c.Action != apply.Keep {
				out = append(out, objectOf(k, op.Hidden, step, c))
			}
		}
	}
	add(deploy.StepCRDs, plan.CRDs)
	for _, wave := range plan.Waves {
		add(deploy.StepApply, wave.Changes)
	}
	add(deploy.StepPrune, plan.Prune)
	add(deploy.StepHooks, plan.Hooks)
	return out
}

func objectOf(k *key, hidden *hide.Texts, step deploy.Step, c apply.Change) Object {
	o := Object{
		Object: c.ID.String(), Group: c.ID.Group, Step: step, Action: c.Action,
		Unverified: c.Unverified != "",
	}
	// An object of the name of a new one or of a hook is on its way out: which
	// one it was doesn't matter.
	if c.Live != nil && c.Action != apply.Create {
		o.UID = string(c.Live.GetUID())
	}
	if c.Want != nil {
		o.Want = k.of("want "+c.ID.String(), c.Want.Object)
	}
	entries, secret := entriesOf(c.Live), hide.Of(c.Live, c.Want, c.Result)
	for _, d := range changed(c) {
		f := Field{Path: fields.String(d.path), Owners: ownersOf(entries, d.path)}
		if d.had {
			f.Before = k.of("field "+o.Object+" "+f.Path, d.before)
		}
		// What the chart doesn't state, defaults and webhooks choose: maybe
		// another value each time, such as the time.
		if d.has && states(c.Want, d.path) {
			f.After = k.of("field "+o.Object+" "+f.Path, d.after)
		}
		if !secret.Below(fields.Names(d.path)) {
			f.From, f.To = shown(hidden, d)
		}
		o.Fields = append(o.Fields, f)
	}
	return o
}

// shown are the values of a field, or nothing when either is hidden.
func shown(hidden *hide.Texts, d difference) (from, to string) {
	if !d.had || !d.has {
		return show(hidden.Value(d.before), d.had), show(hidden.Value(d.after), d.has)
	}
	before, after := hidden.Pair(d.before, d.after)
	if before == hide.Mark && after == hide.Mark {
		return "", ""
	}
	return show(before, true), show(after, true)
}

// changed lists the fields that a change touches.
func changed(c apply.Change) []difference {
	switch {
	case c.Want == nil:
		return nil
	case c.Action == apply.Create:
		return rewritten(c)
	case c.Live == nil || c.Action != apply.Update && c.Action != apply.Recreate:
		return nil
	}
	after, partial := c.Result, false
	if after == nil || c.Action == apply.Recreate {
		// A new object gets numbers and names that are others each time.
		after, partial = c.Want, true
	}
	owned := unionOf(entriesOf(c.Live), entriesOf(after), entriesOf(c.Result))
	return differences(bare(c.Live, c.Want), bare(after, c.Want), owned, partial)
}

// rewritten lists the fields of a new object that the server gives another
// value than the chart states.
func rewritten(c apply.Change) []difference {
	if c.Result == nil {
		return nil
	}
	var out []difference
	owned := unionOf(entriesOf(c.Result))
	for _, d := range differences(bare(c.Want, c.Want), bare(c.Result, c.Want), owned, false) {
		if d.had {
			out = append(out, d)
		}
	}
	return out
}

// A print is as much of an operation as is compared.
type print struct {
	verb     deploy.Verb
	revision int
	objects  []Object
}

func printOf(k *key, op *deploy.Operation) print {
	p := print{verb: op.Verb, objects: objectsOf(k, op)}
	if op.Next != nil {
		p.revision = op.Next.Version
	}
	return p
}

func baseOf(op *deploy.Operation) *Base {
	if op.Base == nil {
		return nil
	}
	return &Base{Revision: op.Base.Revision, Status: op.Base.Status.String()}
}
