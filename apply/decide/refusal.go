package decide

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A Refusal is what is known when the server didn't accept a dry run.
type Refusal struct {
	ID  kube.ID // of the object
	Err error   // the answer, or why there is none

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
	Reject          Reaction = iota // the object, as it is
	Fail                            // nothing is known about the object
	LeaveUnverified                 // the real request may be fine
	EstimateLocally                 // the account may not ask
	AwaitConverter                  // decide again when the kind's converter is ready
	AwaitKind                       // decide again when the definition of the kind is written
	ReadAgain                       // the object has changed since it was read
	AskForSchema                    // decide again by the server's own schema
)

// Next says how to go on.
func (r Refusal) Next() Reaction {
	switch said := verify.Read(r.Err); {
	case said.Detail == verify.NoDryRun:
		return LeaveUnverified
	case verify.MissingPermission(r.Err, r.ID.Namespace) != nil:
		return EstimateLocally
	case r.UnconvertedKind:
		return AwaitConverter
	case r.ChangingKind:
		return AwaitKind
	case r.ComesLater:
		return LeaveUnverified
	case r.MayReadAgain && (verify.IsVanished(r.Err, r.ID) || kube.IsConflict(r.Err)):
		return ReadAgain // a Job is gone by its TTL, or a controller has written the status
	case r.BuiltinSchema && said.Detail == verify.UnknownField:
		return AskForSchema // ours is of a newer Kubernetes than the server
	case !errors.As(r.Err, new(apierrors.APIStatus)):
		return Fail
	}
	return Reject
}
