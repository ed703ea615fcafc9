package decide

import "deployer/apply/verify"

// A Refusal is what is known when the server didn't accept a dry run.
type Refusal struct {
	Verdict verify.Verdict

	UnconvertedKind bool // the webhook that converts the kind, which comes with the release, doesn't answer
	ChangingKind    bool // the release changes the definition of the kind
	ComesLater      bool // the server misses something else that comes with the release
	BuiltinSchema   bool // the object was made to fit the schema in this program, not the server's
	MayReadAgain    bool // the decision was about an object that was read, and that may be read and decided again
}

// A Reaction is how a decision goes on after a refusal.
type Reaction int

// The reactions.
const (
	Reject              Reaction = iota // the object, as it is
	Fail                                // nothing is known about the object
	LeaveUnverified                     // the real request may be fine
	EstimateLocally                     // the account may not ask
	AwaitConverter                      // decide again when the kind's converter is ready
	AwaitKind                           // decide again when the definition of the kind is written
	ReadAgain                           // the object has changed since it was read
	ReadAgainAfterPause                 // so, and its writer may go on writing it
	AskForSchema                        // decide again by the server's own schema
)

// Next says how to go on.
func (r Refusal) Next() Reaction {
	switch {
	case r.Verdict == verify.Unverified:
		return LeaveUnverified
	case r.Verdict == verify.Forbidden:
		return EstimateLocally
	case r.UnconvertedKind:
		return AwaitConverter
	case r.ChangingKind:
		return AwaitKind
	case r.ComesLater:
		return LeaveUnverified
	case r.Verdict == verify.Vanished && r.MayReadAgain:
		return ReadAgain // such as a Job by its TTL
	case r.Verdict == verify.UnknownField && r.BuiltinSchema:
		return AskForSchema // ours is of a newer Kubernetes than the server
	case r.Verdict == verify.Modified && r.MayReadAgain:
		return ReadAgainAfterPause // such as by a controller that writes its status
	case r.Verdict == verify.Unanswered:
		return Fail
	}
	return Reject
}
