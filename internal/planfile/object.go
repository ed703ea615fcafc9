package planfile

import (
	"slices"
	"strings"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/internal/deploy"
	"deployer/internal/hide"
)

// objectsOf returns the objects of a plan: what is done to each, and what that depends
// on. Kept objects are left out, because nothing is done to them.
func objectsOf(k key, op *deploy.Operation) []Object {
	out, plan := []Object{}, op.Plan
	if plan == nil {
		return out
	}
	add := func(step deploy.Step, changes []apply.Change) {
		for _, c := range changes {
			if c.Action != decide.Keep {
				out = append(out, objectOf(k, op.Hidden, step, c))
			}
		}
	}
	add(deploy.StepCRDs, plan.CRDs)
	for _, wave := range plan.Waves {
		add(deploy.StepApply, wave.Changes)
	}
	add(deploy.StepPrune, slices.Concat(plan.Orphans()...))
	add(deploy.StepHooks, plan.Hooks)
	return out
}

func objectOf(k key, hidden *hide.Texts, step deploy.Step, c apply.Change) Object {
	o := Object{
		Object: c.ID.String(), Group: c.ID.Group, Step: step, Action: c.Action,
		Unverified: c.Unverified != "",
	}
	// A live object with the name of a new one or of a hook is being deleted: its UID
	// doesn't matter.
	if c.Live != nil && c.Action != decide.Create {
		o.UID = string(c.Live.GetUID())
	}
	if c.Desired != nil {
		o.DesiredDigest = k.digest("want "+c.ID.String(), c.Desired.Object)
	}
	secret := hide.ConfidentialFields(c.Live, c.Desired, c.Predicted)
	for _, change := range c.Fields {
		for _, leaf := range change.Leaves() {
			if isCompared(c, leaf) {
				o.Fields = append(o.Fields, fieldOf(k, hidden, secret, o.Object, leaf))
			}
		}
	}
	return o
}

// isCompared reports whether a plan depends on a field. It doesn't depend on the order of
// lists, which earlier versions of the format don't have, nor on fields that the server
// adds to a new object.
func isCompared(c apply.Change, f compare.FieldChange) bool {
	return f.Type != compare.Reordered && !(c.Action == decide.Create && f.Type == compare.Added)
}

func fieldOf(k key, hidden *hide.Texts, secret hide.Fields, object string, f compare.FieldChange) Field {
	path := fields.String(f.Path)
	out := Field{Path: secret.HidePath(path, hidden)}
	if strings.Contains(path, "[") {
		out.ID = k.digest("path "+object, path)
	}
	for _, owner := range f.Owners {
		if label := owner.Label(); !slices.Contains(out.Owners, label) {
			out.Owners = append(out.Owners, label)
		}
	}
	slices.Sort(out.Owners)
	if f.Type != compare.Added {
		out.Before = k.digest("field "+object+" "+path, f.Before)
	}
	// A value that the chart doesn't state comes from defaults or webhooks, and may
	// differ each time.
	if f.Type != compare.Removed && f.Declared {
		out.After = k.digest("field "+object+" "+path, f.After)
	}
	if !secret.HidesAny(fields.Names(f.Path), f.Before, f.After) {
		out.From, out.To = shownValues(hidden, f)
	}
	return out
}

// shownValues returns the values of a field, or nothing when either is hidden.
func shownValues(hidden *hide.Texts, f compare.FieldChange) (from, to string) {
	switch f.Type {
	case compare.Added:
		return "", fields.ValueText(hidden.HideValue(f.After), true)
	case compare.Removed:
		return fields.ValueText(hidden.HideValue(f.Before), true), ""
	}
	before, after := hidden.HidePair(f.Before, f.After)
	if before == hide.Placeholder && after == hide.Placeholder {
		return "", ""
	}
	return fields.ValueText(before, true), fields.ValueText(after, true)
}

func baseOf(op *deploy.Operation) *Base {
	if op.Basis.Latest == nil {
		return nil
	}
	return &Base{Revision: op.Basis.Latest.Revision, Status: op.Basis.Latest.Status.String()}
}
