package deploy

import (
	"sync"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/release"
	"deployer/track"
)

// The kinds of event beside those of package track, in the order of a run.
const (
	Began     track.EventKind = "began"      // Operation: it is decided and about to be carried out; comes first
	Replanned track.EventKind = "replanned"  // Operation: its plan was made again for what isn't carried out yet, because hooks or others may have changed its objects
	StepBegan track.EventKind = "step_began" // Step, Objects
	Applied   track.EventKind = "applied"    // Step, Change: an object was created, updated or deleted, or needed no change
	HookRan   track.EventKind = "hook_ran"   // Hook, Took, Err
	PodLogged track.EventKind = "pod_logged" // PodLog: what a container of a test has written, after all tests have ended
	StepEnded track.EventKind = "step_ended" // Step, Objects, Took, Err
	Recorded  track.EventKind = "recorded"   // Record: the record of a revision was written
	Ended     track.EventKind = "ended"      // Operation, Record, Took, Err; comes last, always
)

// An Event is something that has happened: what the wait for objects tells, or the run itself. Which fields are set follows from its
// kind. JSON has those of them that docs/json.md lists, whose names are promises; Replanned and PodLogged are for views alone.
type Event struct {
	track.Event

	Operation *Operation
	Step      Step
	Objects   int // of the step
	Change    *apply.Change
	Hook      *helmrelease.Hook
	PodLog    PodLog
	Record    *release.Record // as last written; nil when none was
	Took      time.Duration
	Err       error // nil: succeeded
}

// An EventHandler is called in order and by one goroutine at a time. It must
// return soon and must not call the Deployer.
type EventHandler func(Event)

// serial returns an event handler that may be called from any goroutine.
func serial(o EventHandler) EventHandler {
	if o == nil {
		return func(Event) {}
	}
	var mu sync.Mutex
	return func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		o(e)
	}
}

// tell tells of an event of a kind.
func (r *run) tell(kind track.EventKind, e Event) {
	e.Kind = kind
	r.emit(e)
}

// warn tells of a problem that stops nothing.
func (r *run) warn(text string) { r.tell(track.Warned, Event{Event: track.Event{Text: text}}) }
