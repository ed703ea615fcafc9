package planfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/hide"
)

// differences returns what has changed since the plan was made, as far as it matters to
// the plan: what would be done to each object, which object it is, and the
// values and owners of the fields that change. Status, other fields and numbers
// of replicas that are left to an autoscaler don't matter.
func (p *Plan) differences(op *deploy.Operation) []Difference {
	revision := 0
	if op.Next != nil {
		revision = op.Next.Version
	}
	release := "release " + p.Release
	switch {
	case op.Verb != p.Verb:
		return []Difference{{Subject: release, Planned: string(p.Verb), Now: "it would be " + string(op.Verb)}}
	case revision != p.Revision:
		return []Difference{{Subject: release, Planned: fmt.Sprintf("revision %d", p.Revision), Now: fmt.Sprintf("it would be revision %d", revision)}}
	}
	var out []Difference
	objects := objectsOf(p.key, op)
	current := map[string][]Object{} // hooks may have the same name, or none yet
	for _, o := range objects {
		current[o.key()] = append(current[o.key()], o)
	}
	for _, o := range p.Objects {
		others := current[o.key()]
		if len(others) == 0 {
			out = append(out, Difference{Subject: o.Object, Planned: string(o.Action), Now: o.absence(op)})
			continue
		}
		current[o.key()] = others[1:]
		out = append(out, o.differences(others[0])...)
	}
	for _, o := range objects {
		if unplanned := current[o.key()]; len(unplanned) > 0 {
			current[o.key()] = unplanned[1:]
			out = append(out, Difference{Subject: o.Object, Planned: "nothing", Now: "it would be: " + string(o.Action)})
		}
	}
	return out
}

// absence says why an operation does nothing with an object.
func (o Object) absence(op *deploy.Operation) string {
	if op.Plan != nil {
		for c := range op.Plan.Changes() {
			if c.Action == decide.Keep && c.ID.String() == o.Object && c.ID.Group == o.Group {
				return "it would be kept: " + op.Hidden.Hide(c.Reason)
			}
		}
	}
	return "it no longer exists, or no longer belongs to the release"
}

func (o Object) key() string { return string(o.Step) + " " + o.Group + " " + o.Object }

// differences compares the planned change of an object with the current one.
func (o Object) differences(now Object) []Difference {
	switch {
	case o.Action != now.Action:
		return []Difference{{Subject: o.Object, Path: now.unplannedPaths(o), Planned: string(o.Action), Now: now.actionNow()}}
	case o.UID != "" && now.UID != "" && o.UID != now.UID:
		return []Difference{{Subject: o.Object, Planned: string(o.Action), Now: "it was deleted and recreated"}}
	}
	out := o.fieldDifferences(now)
	if len(out) == 0 && o.DesiredDigest != "" && now.DesiredDigest != "" && o.DesiredDigest != now.DesiredDigest {
		out = append(out, Difference{Subject: o.Object, Planned: string(o.Action), Now: "a different object would be applied: its schema, or the managers of its fields, changed"})
	}
	return out
}

// actionNow describes the current action.
func (o Object) actionNow() string {
	switch o.Action {
	case decide.Create:
		return "it doesn't exist and would be created"
	case decide.Unchanged:
		return "it is as planned already"
	}
	return "it would be: " + string(o.Action)
}

// unplannedPaths returns some of the fields that would change now and weren't planned to.
func (o Object) unplannedPaths(planned Object) string {
	var out []string
	for _, f := range o.Fields {
		if planned.field(f) == nil {
			out = append(out, f.Path)
		}
	}
	if len(out) > 3 {
		out = append(out[:3], "...")
	}
	return strings.Join(out, ", ")
}

// field finds the field with the path of another one. Whether its path is hidden doesn't matter: what is
// known to be confidential may differ. Files of earlier versions have no ID.
func (o Object) field(other Field) *Field {
	for i, f := range o.Fields {
		if f.ID != "" && f.ID == other.ID || (f.ID == "" || other.ID == "") && f.Path == other.Path {
			return &o.Fields[i]
		}
	}
	return nil
}

// fieldDifferences compares the fields of a planned change with those of the current one.
//
// If only one of the two is an estimate, which lacks the defaults of the API server, less is compared: the live
// values and owners of fields that both change. If the estimate is the planned one, other fields that the chart
// states and that would change now are differences too.
func (o Object) fieldDifferences(now Object) []Difference {
	var out []Difference
	estimated := o.Unverified != now.Unverified
	add := func(path, planned, now string) {
		out = append(out, Difference{Subject: o.Object, Path: path, Planned: planned, Now: now})
	}
	for _, f := range o.Fields {
		if o.skips(f) {
			continue
		}
		g := now.field(f)
		if g != nil {
			f, g = hideBoth(f, *g)
		}
		switch {
		case g == nil && estimated:
		case g == nil:
			add(f.Path, f.plannedChangeText(), "it would no longer change")
		case f.Before != g.Before:
			add(f.Path, f.plannedChangeText(), "it is "+g.beforeText()+" now"+setByText(g.Owners))
		case !slices.Equal(f.Owners, g.Owners):
			add(f.Path, f.plannedChangeText(), "it belongs to "+managersText(g.Owners)+" now, not to "+managersText(f.Owners))
		case f.After != g.After && !estimated:
			add(f.Path, f.plannedChangeText(), "it would become "+g.afterText())
		}
	}
	for _, g := range now.Fields {
		// An estimate without fields was about an object that couldn't be looked at yet.
		if estimated && (now.Unverified || g.After == "" || len(o.Fields) == 0) {
			continue
		}
		if o.field(g) == nil && !o.skips(g) {
			add(g.Path, "no change", g.unplannedChangeText()+setByText(g.Owners))
		}
	}
	return out
}

// hideBoth returns a planned and a current field, both without values if any of them is
// hidden.
func hideBoth(planned, now Field) (Field, *Field) {
	isHidden := func(f Field) bool {
		return f.Before != "" && f.From == "" || strings.Contains(f.From+f.To, hide.Placeholder)
	}
	if isHidden(planned) || isHidden(now) {
		planned.From, planned.To, now.From, now.To = "", "", "", ""
	}
	return planned, &now
}

// skips reports whether a field's value doesn't matter: a recreated object begins with
// the chart's number of replicas, whatever an autoscaler set for the old one.
func (o Object) skips(f Field) bool {
	return o.Action == decide.Recreate && f.Path == "spec.replicas"
}

func (f Field) beforeText() string {
	switch {
	case f.Before == "":
		return "absent"
	case f.From == "":
		return "a different value (hidden)"
	}
	return f.From
}

func (f Field) afterText() string {
	switch {
	case f.To != "":
		return f.To
	case f.After == "":
		return "something else, or absent"
	}
	return "a different value (hidden)"
}

// unplannedChangeText describes a change that wasn't planned.
func (f Field) unplannedChangeText() string {
	if f.From == "" && f.To == "" {
		return "it would change (hidden)"
	}
	return "it would change: " + f.plannedChangeText()
}

// plannedChangeText is a planned change in words.
func (f Field) plannedChangeText() string {
	if f.From == "" && f.To == "" {
		return "a change (hidden)"
	}
	return cmp.Or(f.From, "(absent)") + " -> " + cmp.Or(f.To, "(absent)")
}

func setByText(owners []string) string {
	if len(owners) == 0 {
		return ""
	}
	return ", set by " + strings.Join(owners, ", ")
}

// managersText lists field managers in words.
func managersText(names []string) string { return cmp.Or(strings.Join(names, ", "), "no manager") }
