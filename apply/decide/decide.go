// Package decide has the rules by which an object is created, updated, recreated, deleted, kept
// or given back. What they depend on has been read, predicted or answered before: it makes no
// requests.
package decide

// Action is what happens to one object.
type Action string

// The actions. Keep leaves an object as it is, for a reason. GiveBack returns an object to
// its earlier owner.
const (
	Create    Action = "create"
	Update    Action = "update"
	Recreate  Action = "recreate"
	Delete    Action = "delete"
	Keep      Action = "keep"
	GiveBack  Action = "give-back"
	Unchanged Action = "unchanged"
)

// A Decision is what happens to an object, and why.
type Decision struct {
	Action Action // empty: the release must not change the object
	Reason string // for people; empty when the action needs none

	// Adopts says that the object becomes part of the release by an Update.
	Adopts bool
	// Revisit says that the reason to keep an object may be temporary.
	Revisit bool
}
