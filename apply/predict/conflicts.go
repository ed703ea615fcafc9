package predict

import (
	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
)

// A Conflict is a field that another manager has set to another value than the chart's.
type Conflict struct {
	ownership.Conflict
	// Repeated says that a controller has changed the field since our last apply, and that an
	// earlier release had already set the chart's value.
	Repeated bool
}

// Conflicts finds the fields that other managers have set to other values. It fails if the
// desired object doesn't fit its schema.
func (p *Prediction) Conflicts() ([]Conflict, error) {
	desired, err := compare.Typed(p.Live.Converter, p.Desired)
	if err != nil {
		return nil, err
	}
	all, err := ownership.Conflicts(p.Live.Value, desired, p.Live.Entries)
	if err != nil {
		return nil, err
	}
	var out []Conflict
	for _, c := range all {
		before, has := fields.Value(p.Live.Object.Object, c.Path)
		after, stated := fields.Value(p.Desired.Object, c.Path)
		switch {
		case has == stated && fields.Equal(before, after): // but not to the schema: numbers of different types
		case c.By.Class() == ownership.Ambiguous && p.HasDeclaredValue(c.Path, before): // nobody changed it: the chart's own value of an earlier revision
		default:
			out = append(out, Conflict{Conflict: c, Repeated: p.isRepeated(c, after)})
		}
	}
	return out, nil
}

func (p *Prediction) isRepeated(c ownership.Conflict, wanted any) bool {
	ours := ownership.ApplyEntry(p.Live.Entries)
	return ours != nil && c.By.Class() == ownership.Controller && !c.By.Time.Before(ours.Time) && p.HasDeclaredValue(c.Path, wanted)
}
