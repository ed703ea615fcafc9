package track

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
	"deployer/track/rules"
)

// State is the state of an object during tracking.
type State string

// The states. Ready, Failed and Gone are final.
const (
	Waiting     State = "waiting"     // nothing has been seen of it yet
	Progressing State = "progressing" // not ready yet
	Ready       State = "ready"       // see Status.Unverified
	Failed      State = "failed"      // certain not to become ready by itself
	Gone        State = "gone"        // deleted, as expected
)

// Class names a kind of problem; the names are in package class.
type Class = class.Class

// Status is the status of one object at one time. Fields tagged text:"free", here and in what
// belongs to it, hold text that the cluster wrote.
type Status struct {
	ID          kube.ID
	UID         types.UID
	State       State
	Message     string `text:"free"` // one line for people: "2 of 3 pods ready; web-7d9: image not found"
	Done, Total int    // both 0 when the kind has nothing to count

	// Unverified marks a Ready without proof: no rule knows the kind, its controller writes
	// no status, or a permission is missing.
	Unverified bool
	// Notes are remarks about an object that is ready nevertheless: "paused: not rolled
	// out".
	Notes []string `text:"free"`
	// Finding is why the object isn't ready, or why it Failed; nil when there is none.
	Finding *Finding
	// Rollout counts the pods of a workload; nil for other kinds.
	Rollout *Rollout
	// Finalizers are what an object on its way to Gone waits for.
	Finalizers []string
	// Waited is how long the object has been tracked, without the time that
	// the API server was unreachable.
	Waited time.Duration
}

// IsFinal reports whether the status won't change any more.
func (s State) IsFinal() bool { return s == Ready || s == Failed || s == Gone }

// A Finding is one reason why objects aren't ready.
type Finding = finding.Finding

// Rollout counts the pods of a workload, as its controller counts them. NewReady is 0 while its
// pods aren't watched.
type Rollout = rules.Rollout

// statusOf converts a verdict to a status.
func statusOf(v rules.Verdict) Status {
	s := Status{State: Progressing, Message: v.Message, Done: v.Done, Total: v.Total,
		Unverified: v.Unverified, Notes: v.Notes, Rollout: v.Rollout}
	switch v.Phase {
	case rules.Ready:
		s.State = Ready
	case rules.Failed:
		s.State = Failed
		s.Finding = new(finding.Of(v.Class, v.Message))
	}
	return s
}
