package track

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"deployer/track/finding"
	"deployer/track/rules"
)

const (
	manyPods      = 50 // pods of one workload from which its status is computed less often
	manyPodsPause = 100 * time.Millisecond
	lookupTimeout = 3 * time.Second // for what is asked once: logs and events of what failed, rules of kinds
)

// A wait is one call of Wait.
type wait struct {
	*session
	tracker   *Tracker
	events    eventWatches
	logs      *logFollower
	pods      podWatches
	watches   objectWatches
	missing   missingReferences
	workloads rules.Workloads // of this wait
	startedAt time.Time
	failedAt  time.Time // when the first object failed; zero before
}

func newWait(t *Tracker, targets []Target, onEvent func(Event)) *wait {
	if onEvent == nil {
		onEvent = func(Event) {}
	}
	now := t.opts.Now()
	var workloads rules.Workloads
	if at := t.workloadsReadyAt.Load(); at != nil {
		workloads.ReadySince = *at
	}
	s := &session{cluster: t.cluster, opts: &t.opts, onEvent: onEvent, warned: map[string]bool{}}
	w := &wait{session: s, tracker: t, workloads: workloads, startedAt: now}
	release := releaseView{w.willAppear, w.missing.stateOf, s.declares, func() rules.Workloads { return w.workloads }}
	for _, target := range targets {
		if target.Baseline != nil {
			target.GVK = cmp.Or(target.GVK, target.Baseline.GroupVersionKind())
		}
		target.GVK = cmp.Or(target.GVK, target.ID.GroupKind().WithVersion(""))
		obj := newTrackedObject(target, s.opts, now)
		obj.release = release
		s.objects = append(s.objects, obj)
	}
	s.health = apiHealth{session: s, answeredAt: now, storage: outage{activity: "asking the API server", objects: s.objects}}
	w.events = newEventWatches(s)
	w.logs = newLogFollower(s)
	w.pods = newPodWatches(s, &w.events, w.logs)
	w.watches = objectWatches{session: s, events: &w.events, logs: w.logs, readLimit: rate.NewLimiter(readsPerSecond, 1)}
	w.missing = missingReferences{session: s, known: map[missingID]*missingReference{}}
	return w
}

// run computes the status of the baselines, watches what isn't ready, and returns the
// outcome.
func (w *wait) run(ctx context.Context) error {
	w.typed = w.cluster.Typed()
	defer w.tasks.begin(ctx)()
	defer w.logs.warnMissed()
	defer w.recordWorkloads()
	now := w.opts.Now()
	w.tracker.setKindRules(ctx, w.objects)
	w.warnSettings()
	w.missing.askForTargets()
	w.updateAll(now)
	if w.isFinished() && w.failedAt.IsZero() {
		return nil
	}
	if err := w.openWatches(ctx); err != nil {
		if ctx.Err() != nil {
			return w.outOfTime(ctx)
		}
		return err
	}
	return w.loop(ctx)
}

// updateAll computes the statuses of all objects for the first time, and from them whether workloads are still unready.
func (w *wait) updateAll(now time.Time) {
	for _, obj := range w.objects {
		w.updateStatus(obj, now)
	}
	w.updateWorkloads(now)
}

// openWatches watches the objects whose status isn't final.
func (w *wait) openWatches(ctx context.Context) error {
	for _, obj := range w.objects {
		if obj.status.State.IsFinal() {
			continue
		}
		mapping, served, err := w.watches.mapping(ctx, obj)
		if err != nil {
			return err
		}
		if w.updateStatus(obj, w.opts.Now()); served && !obj.status.State.IsFinal() {
			w.watches.add(obj, mapping)
		}
	}
	w.watches.start()
	return nil
}

// warnSettings warns of annotations that can't be read, for each object, and of annotations
// without effect, once for all objects that have them.
func (w *wait) warnSettings() {
	ineffectiveIn := map[string][]*trackedObject{}
	var order []string
	for _, obj := range w.objects {
		for _, text := range obj.settings.warnings.unreadable {
			w.warn(obj.target.ID.String() + ": " + text)
		}
		for _, text := range obj.settings.warnings.ineffective {
			if ineffectiveIn[text] == nil {
				order = append(order, text)
			}
			ineffectiveIn[text] = append(ineffectiveIn[text], obj)
		}
	}
	for _, text := range order {
		objects := ineffectiveIn[text]
		w.warn(objects[0].target.ID.String() + finding.AndMore(len(objects)-1) + ": " + text)
	}
}

func (w *wait) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := w.opts.Now()
		w.updateWorkloads(now)
		w.updateDue(now)
		w.lookUpDetails(now)
		w.logs.startReaders()
		w.watches.closeUnneeded(now)
		if done, err := w.outcome(ctx, now); done {
			return err
		}
		timer.Reset(w.timeToNextUpdate(now))
		select {
		case <-ctx.Done():
			return w.outOfTime(ctx)
		case f := <-w.tasks.inbox:
			f()
			w.tasks.drain()
		case line := <-w.logs.lines:
			w.logs.report(line)
			w.logs.flush()
		case <-timer.C:
		}
	}
}

// updateWorkloads records whether any workload is still unready that may be a controller.
func (w *wait) updateWorkloads(now time.Time) {
	busy := slices.ContainsFunc(w.objects, func(obj *trackedObject) bool {
		return obj.mayBeController() && obj.target.Until != UntilGone && obj.isAwaited()
	})
	if w.workloads.Busy && !busy {
		w.workloads.ReadySince = now
	}
	w.workloads.Busy = busy
}

// recordWorkloads lets later waits of the release know that workloads have become ready which may be controllers.
func (w *wait) recordWorkloads() {
	if slices.ContainsFunc(w.objects, func(obj *trackedObject) bool {
		return obj.mayBeController() && obj.timers.rolloutSeen && obj.status.State == Ready
	}) {
		w.tracker.workloadsReadyAt.Store(new(w.opts.Now()))
	}
}

// updateDue updates the statuses that an observation or time may have changed.
func (w *wait) updateDue(now time.Time) {
	for _, obj := range w.objects {
		at := obj.clock.at(now)
		if soon := obj.schedule.computedAt.Add(manyPodsPause); len(obj.newPods.byUID) > manyPods && at.Before(soon) {
			obj.schedule.recheckAt = earliest(obj.schedule.recheckAt, soon)
			continue
		}
		if obj.schedule.isDueAt(at) {
			w.updateStatus(obj, now)
		}
	}
}

// updateStatus computes the status of an object, and reports changes.
func (w *wait) updateStatus(obj *trackedObject, now time.Time) {
	if obj.status.State.IsFinal() {
		return
	}
	at, before := obj.clock.at(now), obj.status
	after, nextCheck := obj.evaluate(at)
	obj.schedule = schedule{recheckAt: nextCheck, computedAt: at}
	if !w.missing.confirm(obj, after, now) || after.State == Failed && !w.health.silenceIsReliable(w.opts.Now()) {
		return
	}
	obj.status = after
	if after.State == Ready && obj.settings.failMode == failModeWarn && after.Unverified && len(after.Notes) > 0 {
		w.warn(obj.target.ID.String() + ": " + after.Notes[len(after.Notes)-1])
	}
	if after.State == Failed && w.failedAt.IsZero() && !obj.settings.isBackground() {
		w.failedAt = now
	}
	if kind, news := changeOf(before, after); news {
		w.onEvent(Event{Kind: kind, Time: now, Status: after})
	}
}

// changeOf returns the kind of event for a status change; false when nothing is reported.
func changeOf(before, after Status) (EventKind, bool) {
	was, is := problemClass(before), problemClass(after)
	switch {
	case after.State.IsFinal() && before.State != after.State:
		return StatusChanged, true
	case was != is && is != "":
		return ProblemSeen, true
	case was != "" && is == "":
		return Recovered, true
	case before.State != after.State, before.Message != after.Message, before.Done != after.Done,
		before.Total != after.Total, len(before.Notes) != len(after.Notes),
		is != "" && (before.Finding.Attempts != after.Finding.Attempts || before.Finding.PodCount != after.Finding.PodCount):
		return StatusChanged, true
	}
	return "", false
}

func problemClass(s Status) Class {
	if s.Finding == nil {
		return ""
	}
	return s.Finding.Class
}

// timeToNextUpdate returns how long the loop may sleep if nothing is received.
func (w *wait) timeToNextUpdate(now time.Time) time.Duration {
	next := now.Add(time.Minute)
	for _, obj := range w.objects {
		if !obj.status.State.IsFinal() && !obj.clock.isPaused() {
			next = earliest(next, obj.clock.shown(obj.schedule.recheckAt), w.nextLookupAt(obj))
		}
	}
	if len(w.pods.requested) > 0 {
		next = earliest(next, w.pods.nextOpen)
	}
	if !w.failedAt.IsZero() {
		next = earliest(next, w.failedAt.Add(collectCausesFor))
	}
	if !w.health.unseenSince.IsZero() {
		next = earliest(next, w.health.unseenSince.Add(unreachableLimit))
	}
	return max(next.Sub(now), 5*time.Millisecond)
}
