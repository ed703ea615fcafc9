package deploy

import (
	"sync"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/release"
	"deployer/track"
)

// An Event is something that has happened. Adding a kind of event changes our interface:
// programs that read the JSON switch on them.
type Event interface{ event() }

// The events, in the order of a run.
type (
	// Began comes first; the operation is decided and about to be carried out.
	Began struct{ Operation *Operation }
	// Replanned tells that the operation's plan was made again for what isn't carried out yet, because hooks or others
	// may have changed its objects.
	Replanned struct{ Operation *Operation }
	// StepBegan opens a step.
	StepBegan struct {
		Step    Step
		Objects int // number of objects in the step
	}
	// Applied reports one object that was created, updated or deleted, or needed no
	// change.
	Applied struct {
		Step   Step
		Change apply.Change
	}
	// HookRan tells how one hook ended.
	HookRan struct {
		Hook *helmrelease.Hook
		Took time.Duration
		Err  error // nil: succeeded
	}
	// PodLogged tells what a container of a test has written, after all tests
	// have ended.
	PodLogged struct{ Log PodLog }
	// Tracked tells of one object's new status, or of a line of its log.
	Tracked struct{ Report track.Report }
	// StepEnded closes a step.
	StepEnded struct {
		Step    Step
		Objects int
		Took    time.Duration
		Err     error
	}
	// Warned reports a problem that stops nothing.
	Warned struct{ Text string }
	// Recorded tells that the record of a revision was written.
	Recorded struct{ Record *release.Record }
	// Ended comes last, always.
	Ended struct {
		Operation *Operation
		Record    *release.Record // as last written; nil when none was
		Took      time.Duration
		Err       error
	}
)

func (Began) event()     {}
func (Replanned) event() {}
func (StepBegan) event() {}
func (Applied) event()   {}
func (HookRan) event()   {}
func (PodLogged) event() {}
func (Tracked) event()   {}
func (StepEnded) event() {}
func (Warned) event()    {}
func (Recorded) event()  {}
func (Ended) event()     {}

// An EventHandler is called in order and by one goroutine at a time. It must
// return soon and must not call the Deployer.
type EventHandler func(Event)

// Serial returns an event handler that may be called from any goroutine.
func Serial(o EventHandler) EventHandler {
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
