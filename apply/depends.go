package apply

// State is what an object has to be for another one's turn to come.
type State string

// The states.
const (
	Ready   State = "ready"   // as tracking judges it: a Job is complete, a Deployment rolled out
	Present State = "present" // applied; or there, if it isn't the release's
	Gone    State = "gone"    // deleted, where objects are deleted in turn
)
