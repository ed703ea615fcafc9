package decide

import "testing"

func TestFateOfFields(t *testing.T) {
	contested := func(why Contest) Field { return Field{Contest: why, Live: true} }
	take, fail, yield := FieldRules{Conflicts: TakeConflicts}, FieldRules{Conflicts: FailOnConflict}, FieldRules{Conflicts: YieldConflicts}
	undo := func(r FieldRules) FieldRules { r.Undo = true; return r }
	anew := func(r FieldRules) FieldRules { r.Recreates = true; return r }
	for _, c := range []struct {
		name  string
		rules FieldRules
		field Field
		want  FieldOutcome
	}{
		{"the chart wins", take, contested(SetByOthers), OutcomeTaken},
		{"fail refuses", fail, contested(SetByOthers), OutcomeRefused},
		{"yield leaves", yield, contested(SetByOthers), OutcomeYielded},
		{"an undo goes on in spite of a conflict", undo(fail), contested(SetByOthers), OutcomeYielded},
		{"a new object has no other managers", anew(yield), contested(SetByOthers), OutcomeTaken},
		{"a field without a name in the chart's version can't be left", yield, contested(SetElsewhere), OutcomeRefused},
		{"nor refused in an undo", undo(fail), contested(SetElsewhere), OutcomeTaken},
		{"an autoscaler's number stays whatever the policy", take, contested(Scaled), OutcomeYielded},
		{"also in a new object", anew(take), contested(Scaled), OutcomeYielded},
		{"a new object gets the chart's number if there is none to keep", anew(take), Field{Contest: Scaled}, OutcomeTaken},
		{"whose object it is, the release says", yield, contested(SaysWhoseItIs), OutcomeTaken},
		{"a former member of a union goes", fail, contested(FormerMember), OutcomeTaken},
		{"gone", take, Field{Live: true, Changes: true}, OutcomeRemoved},
		{"new", take, Field{Predicted: true, Changes: true, Declared: true, Applied: true}, OutcomeSet},
		{"as declared", take, Field{Live: true, Predicted: true, Declared: true, Applied: true}, OutcomeKept},
		{"left to the cluster", take, Field{Live: true, Predicted: true, Declared: true}, OutcomeYielded},
		{"a default", take, Field{Live: true, Predicted: true}, OutcomeIgnored},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.rules.Fate(c.field); got != c.want {
				t.Errorf("%+v by %+v is %s, not %s", c.field, c.rules, got, c.want)
			}
		})
	}
}
