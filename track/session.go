package track

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"

	"deployer/internal/kube"
	"deployer/track/pods"
	"deployer/track/rules"
)

const (
	manyPods      = 50 // pods of one workload from which its status is computed less often
	manyPodsPause = 100 * time.Millisecond
	lookupTimeout = 3 * time.Second // for what is asked once: logs and events of what failed, rules of kinds
)

// A session is one call of Wait. Only the goroutine of run may touch its fields; other
// goroutines send their results through tasks.
type session struct {
	tracker  *Tracker
	typed    kubernetes.Interface // of the tracker's cluster; set by run
	opts     *Options
	objects  []*trackedObject
	dirty    map[*trackedObject]bool // whose status has to be computed again
	onReport func(Report)
	warned   map[string]bool // texts, each reported once
	tasks    tasks

	health    apiHealth
	watches   watches
	pods      podWatches
	events    eventWatches
	logs      *logFollower
	missing   missingReferences
	workloads rules.Workloads // of this wait
	progress  waitProgress
}

// waitProgress is the progress of a wait.
type waitProgress struct {
	startedAt time.Time
	failedAt  time.Time // when the first object failed; zero before
	timedOut  bool      // the deadline ended the wait, and not a failure
	fatal     error     // ends the wait: credentials refused, or a watch that can't be opened
}

func newSession(t *Tracker, targets []Target, saw func(Report)) *session {
	if saw == nil {
		saw = func(Report) {}
	}
	now := t.opts.Now()
	s := &session{tracker: t, opts: &t.opts, dirty: map[*trackedObject]bool{}, tasks: newTasks(),
		onReport: saw, warned: map[string]bool{}, progress: waitProgress{startedAt: now}}
	for _, target := range targets {
		if target.GVK.Empty() && target.Baseline != nil {
			target.GVK = target.Baseline.GroupVersionKind()
		}
		obj := newTrackedObject(target, s.opts, now)
		obj.release.workloads = func() rules.Workloads { return s.workloads }
		obj.release.willAppear = func(what pods.Missing) bool { return s.willAppear(obj.ID.Namespace, what) }
		obj.release.missing = func(what pods.Missing) missingReference { return s.missing.get(obj.ID.Namespace, what) }
		s.objects = append(s.objects, obj)
	}
	s.health = newAPIHealth(s)
	s.watches = newWatches(s)
	s.pods = newPodWatches(s)
	s.events = newEventWatches(s)
	s.logs = newLogFollower(s)
	s.missing = newMissingReferences(s)
	return s
}

// warn reports a warning, once.
func (s *session) warn(text string) {
	if !s.warned[text] {
		s.warned[text] = true
		s.onReport(Report{Kind: Warned, Time: s.opts.Now(), Text: text})
	}
}

// object finds a target by its identity; nil when it isn't one.
func (s *session) object(id kube.ID) *trackedObject {
	for _, obj := range s.objects {
		if obj.ID == id {
			return obj
		}
	}
	return nil
}

// run computes the status of the baselines, watches what isn't ready, and returns the
// outcome.
func (s *session) run(ctx context.Context) (err error) {
	if s.typed, err = s.tracker.cluster.Typed(); err != nil {
		return err
	}
	defer s.tasks.begin(ctx)()
	defer s.logs.warnMissed()
	now := s.opts.Now()
	s.tracker.setKindRules(ctx, s.objects)
	s.warnSettings()
	for _, obj := range s.objects {
		s.updateStatus(obj, now)
	}
	if s.countUnfinished() == 0 && s.progress.failedAt.IsZero() {
		return nil
	}
	if err := s.watches.openAll(ctx); err != nil {
		if ctx.Err() != nil {
			return s.outOfTime(ctx)
		}
		return err
	}
	return s.loop(ctx)
}

// warnSettings warns of annotations that can't be read, for each object, and of annotations
// without effect, once for all objects that have them.
func (s *session) warnSettings() {
	first, more := map[string]*trackedObject{}, map[string]int{}
	var order []string
	for _, obj := range s.objects {
		for _, text := range obj.settings.unreadable {
			s.warn(obj.ID.String() + ": " + text)
		}
		for _, text := range obj.settings.ineffective {
			if first[text] == nil {
				first[text] = obj
				order = append(order, text)
			} else {
				more[text]++
			}
		}
	}
	for _, text := range order {
		s.warn(first[text].ID.String() + andMore(more[text]) + ": " + text)
	}
}

func (s *session) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := s.opts.Now()
		s.noteWorkloads(now)
		s.updateDue(now)
		s.lookUpDetails(now)
		s.logs.startReaders()
		s.watches.closeUnneeded(now)
		if done, err := s.outcome(ctx, now); done {
			return err
		}
		timer.Reset(s.timeToNextUpdate(now))
		select {
		case <-ctx.Done():
			return s.outOfTime(ctx)
		case f := <-s.tasks.inbox:
			f()
			s.tasks.drain()
		case line := <-s.logs.lines:
			s.logs.report(line)
			s.logs.flush()
		case <-timer.C:
		}
	}
}

// noteWorkloads notes whether any workload is still unready.
func (s *session) noteWorkloads(now time.Time) {
	busy := false
	for _, obj := range s.objects {
		busy = busy || obj.isWorkload() && !obj.settings.isBackground() && obj.Until != UntilGone && !obj.status.State.IsFinal()
	}
	if s.workloads.Busy && !busy {
		s.workloads.ReadySince = now
	}
	s.workloads.Busy = busy
}

// updateDue updates the statuses that an observation or time may have changed.
func (s *session) updateDue(now time.Time) {
	for _, obj := range s.objects {
		at := obj.timers.now(now)
		if soon := obj.timers.computedAt.Add(manyPodsPause); len(obj.newPods.byUID) > manyPods && at.Before(soon) {
			obj.timers.recheckBy(soon)
			continue
		}
		due := !obj.timers.recheckAt.IsZero() && !at.Before(obj.timers.recheckAt)
		if (due || s.dirty[obj]) && !obj.status.State.IsFinal() {
			s.updateStatus(obj, at)
		}
		delete(s.dirty, obj)
	}
}

// updateStatus computes the status of an object and reports changes.
func (s *session) updateStatus(obj *trackedObject, now time.Time) {
	if obj.status.State.IsFinal() {
		return
	}
	before := obj.status
	after := obj.computeStatus(now)
	if !s.missing.confirm(obj, after, now) || after.State == Failed && !s.health.silenceIsReliable(s.opts.Now()) {
		obj.status = before
		return
	}
	if after.State == Ready && obj.settings.failMode == failWarn && after.Unverified && len(after.Notes) > 0 {
		s.warn(obj.ID.String() + ": " + after.Notes[len(after.Notes)-1])
	}
	if after.State == Failed && s.progress.failedAt.IsZero() && !obj.settings.isBackground() {
		s.progress.failedAt = now
	}
	if kind, news := changeOf(before, after); news {
		s.onReport(Report{Kind: kind, Time: now, Status: after})
	}
}

// changeOf returns the kind of report for a status change; false when nothing is reported.
func changeOf(before, after Status) (ReportKind, bool) {
	was, is := problemClass(before), problemClass(after)
	switch {
	case after.State.IsFinal() && before.State != after.State:
		return StatusChanged, true
	case was != is && is != "":
		return ProblemSeen, true
	case was != "" && is == "":
		return Recovered, true
	case before.State != after.State, before.Message != after.Message, before.Done != after.Done,
		before.Total != after.Total, len(before.Notes) != len(after.Notes):
		return StatusChanged, true
	case is != "" && (before.Problem.Attempts != after.Problem.Attempts || before.Problem.PodCount != after.Problem.PodCount):
		return StatusChanged, true
	}
	return "", false
}

func problemClass(s Status) Class {
	if s.Problem == nil {
		return ""
	}
	return s.Problem.Class
}

// timeToNextUpdate returns how long the loop may sleep if nothing is received.
func (s *session) timeToNextUpdate(now time.Time) time.Duration {
	next := now.Add(time.Minute)
	earlier := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	for _, obj := range s.objects {
		if obj.status.State.IsFinal() || obj.timers.arePaused() {
			continue
		}
		earlier(obj.timers.recheckAt)
		earlier(s.nextLookupAt(obj))
	}
	if len(s.pods.wanted) > 0 {
		earlier(s.pods.nextOpen)
	}
	if !s.progress.failedAt.IsZero() {
		earlier(s.progress.failedAt.Add(collectCausesFor))
	}
	if !s.health.unseenSince.IsZero() {
		earlier(s.health.unseenSince.Add(unreachableLimit))
	}
	return max(next.Sub(now), 5*time.Millisecond)
}
