package run

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/view/plan"
	"deployer/track"
	"deployer/track/finding"
)

// A runState sums up the events of a run so far. All renderers read it.
type runState struct {
	op       *deploy.Operation // until it has begun, only what is known before
	hasBegun bool
	began    time.Time // when it was first heard of
	now      func() time.Time

	changes  map[kube.ID]apply.Change      // as planned, then as done: main objects, CRDs and prunes
	declared func() deploy.RenderedObjects // of the record's manifest; read when they are first asked for
	step     deploy.Step                   // the current step; deploy.StepRecord between the others
	actions  map[decide.Action]int         // carried out
	progress progress

	tracked  map[kube.ID]*awaitedObject
	logs     map[kube.ID]*finding.Log // the last lines that were followed, of the container that has written last
	order    []kube.ID                // of tracked, as first seen
	warnings []string
	ended    *deploy.Event
}

// progress is how much is done of how much.
type progress struct {
	applied, hooked, pruned counter
	toWait                  int // objects
}

type counter struct{ done, total int }

func (c counter) String() string { return fmt.Sprintf("%d/%d", c.done, c.total) }

// An awaitedObject is an object that is waited for.
type awaitedObject struct {
	status track.Status
	began  time.Time
	took   time.Duration // until it was ready, failed or gone
	hook   bool
}

// arrived reports whether the object is where it should be.
func (o *awaitedObject) arrived() bool {
	return o.status.State == track.Ready || o.status.State == track.Gone
}

func newState(now func() time.Time) *runState {
	return &runState{op: &deploy.Operation{}, now: now, began: now(), changes: map[kube.ID]apply.Change{}, actions: map[decide.Action]int{}, tracked: map[kube.ID]*awaitedObject{}, logs: map[kube.ID]*finding.Log{}}
}

// handle takes an event in.
func (t *runState) handle(e deploy.Event) {
	switch e.Kind {
	case deploy.Began:
		t.start(e.Operation)
		t.step = deploy.StepRecord
	case deploy.Replanned:
		t.takePlan(e.Operation)
	case deploy.StepBegan:
		t.step = e.Step
		if e.Step == deploy.StepWait {
			t.progress.toWait = e.Objects
		}
	case deploy.Applied:
		t.recordApplied(e)
	case deploy.HookRan:
		t.progress.hooked.done++
		if e.Err == nil {
			t.finish(true, track.Ready) // hooks run one after another, so all unfinished ones are its own
		}
	case track.StatusChanged, track.ProblemSeen, track.Recovered:
		t.recordStatus(e.Status)
	case deploy.StepEnded:
		if e.Err == nil && e.Step == deploy.StepWait {
			t.finish(false, t.goal())
		}
		t.step = deploy.StepRecord
	case track.LogWritten:
		t.recordLog(e.Status.ID, e.Log)
	case track.Warned:
		t.warnings = append(t.warnings, e.Text)
	case deploy.Ended:
		if t.ended = &e; !t.hasBegun && e.Operation != nil { // it had nothing to do
			t.op = e.Operation
		}
	}
}

func (t *runState) start(op *deploy.Operation) {
	t.op, t.hasBegun, t.declared = op, true, sync.OnceValue(op.Declared)
	if op.Plan == nil {
		return
	}
	t.takePlan(op)
	t.progress.hooked.total = len(op.Hooks.Before) + len(op.Hooks.After)
}

// takePlan takes in what the plan says of each object, or what became of it.
func (t *runState) takePlan(op *deploy.Operation) {
	t.progress.applied.total = len(op.Plan.CRDs)
	if op.MadeNamespace {
		t.progress.applied.total++
		t.changes[kube.ID{Kind: kube.NamespaceKind.Kind, Name: op.Namespace}] = apply.Change{Action: decide.Create}
	}
	for _, wave := range op.Plan.Waves {
		t.progress.applied.total += len(wave.Changes)
	}
	t.progress.pruned.total = len(slices.Concat(op.Plan.Orphans()...))
	for c := range op.Plan.Changes() {
		t.changes[c.ID] = c
	}
}

func (t *runState) recordApplied(e deploy.Event) {
	if _, planned := t.changes[e.Change.ID]; planned && e.Step != deploy.StepHook {
		t.changes[e.Change.ID] = *e.Change
	}
	switch e.Step {
	case deploy.StepHook:
		t.ensureTracked(e.Change.ID).hook = true
		return
	case deploy.StepPrune:
		t.progress.pruned.done++
	case deploy.StepNamespace, deploy.StepCRDs, deploy.StepApply:
		t.progress.applied.done++
	}
	t.actions[e.Change.Action]++
}

func (t *runState) ensureTracked(id kube.ID) *awaitedObject {
	o := t.tracked[id]
	if o == nil {
		o = &awaitedObject{status: track.Status{ID: id, State: track.Waiting}, began: t.now()}
		t.tracked[id] = o
		t.order = append(t.order, id)
	}
	return o
}

// neverBegan says that the run ended before it could be recorded, so that it has changed nothing.
func (t *runState) neverBegan() bool { return t.ended != nil && t.ended.Record == nil }

// onlyRecordFailed says that a run that failed has deployed everything, and couldn't record that.
func (t *runState) onlyRecordFailed() bool {
	return t.ended != nil && t.ended.Record != nil && t.ended.Record.Info.Status == helmrelease.StatusDeployed
}

// nothingChanged says that nothing but hooks has changed.
func (t *runState) nothingChanged() bool {
	for action, n := range t.actions {
		if n > 0 && action != decide.Unchanged && action != decide.Keep {
			return false
		}
	}
	return true
}

func (t *runState) isHook(id kube.ID) bool {
	o := t.tracked[id]
	return o != nil && o.hook
}

func (t *runState) recordStatus(s track.Status) {
	o := t.ensureTracked(s.ID)
	if s.State.IsFinal() && !o.status.State.IsFinal() {
		o.took = cmp.Or(max(s.Waited, 0), t.now().Sub(o.began))
	}
	o.status = s
}

func (t *runState) recordLog(id kube.ID, line *track.LogLine) {
	log := t.logs[id]
	if log == nil || log.Pod != line.Pod || log.Container != line.Container {
		log = &finding.Log{Pod: line.Pod, Container: line.Container}
		t.logs[id] = log
	}
	log.Lines = append(log.Lines, line.Text)
	log.Lines = log.Lines[max(0, len(log.Lines)-maxLog):]
}

// goal is the state that the awaited objects are expected to reach.
func (t *runState) goal() track.State {
	return goalOf(t.op.Verb)
}

func goalOf(verb deploy.Verb) track.State {
	if verb == deploy.Uninstall {
		return track.Gone
	}
	return track.Ready
}

// finish marks all objects of hooks, or all others, as having reached a state.
func (t *runState) finish(ofHooks bool, state track.State) {
	for _, o := range t.tracked {
		if o.hook == ofHooks && !o.status.State.IsFinal() {
			o.status.State, o.took = state, t.now().Sub(o.began)
		}
	}
}

// awaited counts the objects of the wait that are where they should be.
func (t *runState) awaited() counter {
	n := 0
	for _, o := range t.tracked {
		if !o.hook && o.arrived() {
			n++
		}
	}
	return counter{done: min(n, t.progress.toWait), total: t.progress.toWait}
}

// unready lists what is still waited for: failed first, then what has a
// problem, then what has waited longest.
func (t *runState) unready() []*awaitedObject {
	var out []*awaitedObject
	for _, id := range t.order {
		if o := t.tracked[id]; !o.arrived() {
			out = append(out, o)
		}
	}
	rank := func(o *awaitedObject) int {
		switch {
		case o.status.State == track.Failed:
			return 0
		case o.status.Finding != nil:
			return 1
		case o.status.State == track.Progressing:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(out, func(a, b *awaitedObject) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// slowest is the object that took longest to become ready; nil when none was
// waited for.
func (t *runState) slowest() *awaitedObject {
	var slow *awaitedObject
	for _, id := range t.order {
		o := t.tracked[id]
		if o.status.State == track.Ready && o.took >= time.Second && (slow == nil || o.took > slow.took) {
			slow = o
		}
	}
	return slow
}

// work is how much is done of how much, in objects: applied, ready, deleted,
// and hooks that ran.
func (t *runState) work() (done, total int) {
	for _, c := range []counter{t.progress.applied, t.progress.hooked, t.progress.pruned, t.awaited()} {
		done, total = done+c.done, total+c.total
	}
	return min(done, total), max(total, 1)
}

// namesOfHook names the objects of a hook, as their creation or the plan did. failureReported says that
// tracking has already reported that one of them failed.
func (t *runState) namesOfHook(h *helmrelease.Hook) (names []string, failureReported bool) {
	for _, named := range plan.HookObjects(t.op, h) {
		name := named.ID.String()
		for _, id := range t.order {
			if o := t.tracked[id]; o.hook && named.IsCreatedAs(id) {
				name, failureReported = id.String(), failureReported || o.status.State == track.Failed
				break
			}
		}
		names = append(names, name)
	}
	return names, failureReported
}

// age is how long an object has been waited for.
func (t *runState) age(o *awaitedObject) time.Duration {
	if o.status.State.IsFinal() {
		return o.took
	}
	return t.now().Sub(o.began)
}
