package decide

import "testing"

func TestOutcomeOfContestedFields(t *testing.T) {
	take, fail, yield := FieldRules{Conflicts: TakeConflicts}, FieldRules{Conflicts: FailOnConflict}, FieldRules{Conflicts: YieldConflicts}
	undo := func(r FieldRules) FieldRules { r.Undo = true; return r }
	anew := func(r FieldRules) FieldRules { r.Recreates = true; return r }
	for _, c := range []struct {
		name   string
		rules  FieldRules
		why    Contest
		isLive bool
		want   FieldOutcome
	}{
		{"the chart wins", take, SetByOthers, true, OutcomeTaken},
		{"fail refuses", fail, SetByOthers, true, OutcomeRefused},
		{"yield leaves", yield, SetByOthers, true, OutcomeYielded},
		{"an undo goes on in spite of a conflict", undo(fail), SetByOthers, true, OutcomeYielded},
		{"a new object has no other managers", anew(yield), SetByOthers, true, OutcomeTaken},
		{"a field without a name in the chart's version can't be left", yield, SetElsewhere, true, OutcomeRefused},
		{"nor refused in an undo", undo(fail), SetElsewhere, true, OutcomeTaken},
		{"an autoscaler's number stays whatever the policy", take, Scaled, true, OutcomeYielded},
		{"also in a new object", anew(take), Scaled, true, OutcomeYielded},
		{"a new object gets the chart's number if there is none to keep", anew(take), Scaled, false, OutcomeTaken},
		{"whose object it is, the release says", yield, SaysWhoseItIs, true, OutcomeTaken},
		{"a former member of a union goes", fail, FormerMember, true, OutcomeTaken},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.rules.Outcome(c.why, c.isLive); got != c.want {
				t.Errorf("%v by %+v is %s, not %s", c.why, c.rules, got, c.want)
			}
		})
	}
}
