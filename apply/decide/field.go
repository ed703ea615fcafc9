package decide

// ConflictPolicy says what to do with a field that the chart states and that another
// manager has set to another value. The annotation deployer.io/conflicts on an object,
// with one of the same words, overrides the option. The number of replicas of an
// autoscaled workload always yields, but for one that is zero when its first
// HorizontalPodAutoscaler comes and the chart stops stating it.
type ConflictPolicy string

// The policies.
const (
	TakeConflicts  ConflictPolicy = "take"  // the chart's value wins; the plan names who loses what
	FailOnConflict ConflictPolicy = "fail"  // refuse before the first change
	YieldConflicts ConflictPolicy = "yield" // leave the field, and its ownership, to whoever set it
)

// A Contest says who else than the chart has a say in a field.
type Contest int

// The contests.
const (
	SetByOthers   Contest = iota + 1 // to another value than the chart's, or beside it where only one can be
	SetElsewhere                     // so, in an API version in which it has another name: it can't be left to them
	Scaled                           // it is the number of replicas, which an autoscaler sets
	SaysWhoseItIs                    // the ownership metadata: an object that may be changed becomes the release's, or stays so
	FormerMember                     // of a union: it goes with everything in it, whoever owns that
)

// A FieldOutcome is what becomes of a field.
type FieldOutcome string

// The outcomes. The first three are of contested fields.
const (
	OutcomeTaken   FieldOutcome = "taken"   // others lose it
	OutcomeYielded FieldOutcome = "yielded" // it is left to others
	OutcomeRefused FieldOutcome = "refused" // the object is, because of it
	OutcomeKept    FieldOutcome = "kept"    // it is as the release declares it
	OutcomeSet     FieldOutcome = "set"     // it gets the value that the release declares
	OutcomeRemoved FieldOutcome = "removed" // it goes
	OutcomeIgnored FieldOutcome = "ignored" // the release doesn't state it, and leaves it
)

// FieldRules are what the outcome of the contested fields of one object depends on besides. Plans, the conflicts in them, drift and
// explanations go by it.
type FieldRules struct {
	Conflicts ConflictPolicy
	Undo      bool // a failed run is undone: a conflict may be why it failed, and the rest has to be restored
	Recreates bool // the object is made anew, and has no other managers then
}

// Outcome decides what becomes of a contested field; isLive says whether the live object has it.
func (r FieldRules) Outcome(why Contest, isLive bool) FieldOutcome {
	switch {
	case why == Scaled && (isLive || !r.Recreates):
		return OutcomeYielded
	case why == SaysWhoseItIs, why == FormerMember, r.Recreates, r.Conflicts == TakeConflicts:
		return OutcomeTaken
	case why == SetElsewhere && r.Undo:
		return OutcomeTaken
	case why != SetElsewhere && (r.Undo || r.Conflicts == YieldConflicts):
		return OutcomeYielded
	}
	return OutcomeRefused
}
