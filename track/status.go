package track

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/pods"
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
	// Problem is why the object isn't ready, or why it Failed; nil when there is none.
	Problem *Problem
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

// Rollout counts the pods of a workload, as its controller counts them. NewReady is 0 while its
// pods aren't watched.
type Rollout = rules.Rollout

// A Problem is one reason why an object isn't ready.
type Problem struct {
	Class   Class
	Title   string `text:"free"` // heading of the class: "Image can't be pulled"
	Message string `text:"free"` // what the cluster said, on one line
	ContainerFailure
	AffectedPods
	Since         time.Time
	FinalAt       time.Time // when it becomes final if nothing changes; zero when it never does by itself
	Advice        string    `text:"free"` // what must be done that a new release alone doesn't: "delete pod web-2 after the fix"
	MissingObject *Ref      // whose absence is the cause, or that lacks MissingKey; nil when that isn't known
	MissingKey    string    // of the MissingObject, which is there; empty when it isn't
	Evidence
}

// A ContainerFailure says which container of the pods has a problem, and how it ended.
type ContainerFailure = pods.ContainerFailure

// AffectedPods are the pods that have a problem.
type AffectedPods struct {
	Pods        []string // new pods that have it, at most 20, in order of name
	PodCount    int      // how many have it
	PodTotal    int      // new pods seen
	Nodes       []string // nodes of those pods, in order of name
	SuspectNode string   // the only node of these pods, while pods on other nodes are ready
}

// Evidence is what the cluster recorded about a problem.
type Evidence struct {
	Events []Event   // newest last, at most 10
	Logs   []LogTail // of at most two containers; set when the wait has ended
}

// A Ref names an object that something else needs, in the same namespace.
type Ref struct{ Kind, Name string }

// An Event is a Kubernetes event about an object or one of its pods.
type Event struct {
	Type    string // Warning or Normal
	Reason  string
	Message string `text:"free"`
	Object  string // Pod/web-5c7-x2x
	Count   int
	Last    time.Time // by the cluster's clock
}

// A LogTail is the end of a container's log.
type LogTail struct {
	Pod, Container    string
	Previous          bool     // of the run before the present one
	Lines             []string `text:"free"`
	UnavailableReason string   `text:"free"` // why there are no lines: "no permission to get pods/log"
}

// statusOf converts a verdict to a status.
func statusOf(v rules.Verdict) Status {
	s := Status{State: Progressing, Message: v.Message, Done: v.Done, Total: v.Total,
		Unverified: v.Unverified, Notes: v.Notes, Rollout: v.Rollout}
	switch v.Phase {
	case rules.Ready:
		s.State = Ready
	case rules.Failed:
		s.State = Failed
		s.Problem = &Problem{Class: v.Class, Title: titleOf(v.Class), Message: v.Message}
	}
	return s
}

func titleOf(c Class) string { return class.InfoOf(c).Title }
