package track

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"deployer/internal/kube"
	"deployer/track/watch"
)

const (
	unreachableLimit    = 2 * time.Minute // without any answer of the API server
	maxDrain            = 1000            // messages taken before objects are judged
	manyPods            = 50              // of one workload, that is judged less often then
	manyPodsPause       = 100 * time.Millisecond
	lookupTimeout       = 3 * time.Second // for what is asked once: logs and events of what failed, rules of kinds
	finishedLogsTimeout = 5 * time.Second // at most, for the last lines of what has finished
)

// session is one Wait. Its fields belong to the goroutine of run; others send
// functions to the inbox, which run calls in turn.
type session struct {
	tracker *Tracker
	opts    *Options
	report  func(Report)
	objects []*trackedObject
	byID    map[kube.ID]*trackedObject
	started time.Time

	inbox chan func()
	ctx   context.Context // of the goroutines of this session, ended by run
	group sync.WaitGroup
	pace  watch.Pace

	objectWatches    []*objectWatch
	allNamespaces    bool // the namespaces are many: watches of all of them are tried first
	health           apiHealth
	outages          int // streams that have no answer
	outageFrom       time.Time
	lostAt           time.Time // since when nothing is seen of what is waited for
	lostErr          error     // the last answer of a stream without one
	fatal            error     // ends the wait: credentials
	dirty            map[*trackedObject]bool
	warned           map[string]bool
	failedAt         time.Time
	timedOut         bool      // the deadline ended the wait, and not a failure
	workloadsBusy    bool      // workloads are on their way
	workloadsReadyAt time.Time // when the last of them got ready; zero when all were

	revisionsListedAt map[string]time.Time // by namespace

	pods   podWatches
	events eventWatches
	logs   *logFollower
}

func newSession(t *Tracker, targets []Target, saw func(Report)) *session {
	if saw == nil {
		saw = func(Report) {}
	}
	s := &session{tracker: t, opts: &t.opts, report: saw, byID: map[kube.ID]*trackedObject{}, started: t.opts.Now(),
		health: apiHealth{heardAt: t.opts.Now()}, inbox: make(chan func(), 256), dirty: map[*trackedObject]bool{}, warned: map[string]bool{},
		revisionsListedAt: map[string]time.Time{}}
	for _, target := range targets {
		if target.GVK.Empty() && target.Baseline != nil {
			target.GVK = target.Baseline.GroupVersionKind()
		}
		sub := newTrackedObject(target, s.opts, s.started)
		sub.workloads = func() (bool, time.Time) { return s.workloadsBusy, s.workloadsReadyAt }
		sub.isPending = func(ref Ref) bool { return s.isPending(sub.ID.Namespace, ref) }
		s.objects = append(s.objects, sub)
		s.byID[target.ID] = sub
	}
	return s
}

// run judges the baselines, watches what isn't ready, and returns the outcome.
func (s *session) run(ctx context.Context) error {
	inner, stop := context.WithCancel(ctx)
	s.ctx = inner
	s.logs = newLogFollower(s)
	defer s.end(stop)
	defer s.logs.warnMissed()
	now := s.opts.Now()
	s.readKindRules(ctx)
	s.warnSettings()
	for _, sub := range s.objects {
		s.updateStatus(sub, now)
	}
	if s.waiting() == 0 && s.failedAt.IsZero() {
		return nil
	}
	if err := s.openWatches(ctx); err != nil {
		if ctx.Err() != nil {
			return s.outOfTime(ctx)
		}
		return err
	}
	return s.loop(ctx)
}

// warnSettings tells of annotations that can't be followed: of those that mean
// nothing once, with the first object that has them.
func (s *session) warnSettings() {
	first, more := map[string]*trackedObject{}, map[string]int{}
	var order []string
	for _, sub := range s.objects {
		for _, text := range sub.settings.unreadable {
			s.warn(sub.ID.String() + ": " + text)
		}
		for _, text := range sub.settings.ineffective {
			if first[text] == nil {
				first[text] = sub
				order = append(order, text)
			} else {
				more[text]++
			}
		}
	}
	for _, text := range order {
		who := first[text].ID.String()
		if n := more[text]; n > 0 {
			who += fmt.Sprintf(" and %d more", n)
		}
		s.warn(who + ": " + text)
	}
}

// end stops all goroutines. What they still send is thrown away.
func (s *session) end(stop context.CancelFunc) {
	stop()
	done := make(chan struct{})
	go func() { s.group.Wait(); close(done) }()
	for {
		select {
		case <-s.inbox:
		case <-done:
			return
		}
	}
}

// send gives a function to the session's goroutine; false when it has ended.
func (s *session) send(f func()) bool {
	select {
	case s.inbox <- f:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (s *session) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := s.opts.Now()
		s.noteWorkloads(now)
		s.updateDue(now)
		s.lookCloser(now)
		s.logs.startReaders()
		s.closeWatches(now)
		if done, err := s.outcome(ctx, now); done {
			return err
		}
		timer.Reset(s.nextDue(now))
		select {
		case <-ctx.Done():
			return s.outOfTime(ctx)
		case f := <-s.inbox:
			f()
			s.drain()
		case <-s.logs.queue.Ready():
			s.logs.flush()
		case <-timer.C:
		}
	}
}

func (s *session) drain() {
	for range maxDrain {
		select {
		case f := <-s.inbox:
			f()
		default:
			return
		}
	}
}

// outcome tells whether the wait is over, and how.
func (s *session) outcome(ctx context.Context, now time.Time) (bool, error) {
	if s.fatal != nil {
		return true, s.fatal
	}
	if !s.lostAt.IsZero() && now.Sub(s.lostAt) >= unreachableLimit {
		return true, &UnreachableError{For: now.Sub(s.lostAt), Err: s.lostErr}
	}
	waiting := s.waiting()
	switch {
	case waiting == 0 && s.failedAt.IsZero():
		s.logs.finish()
		return true, nil
	case s.failedAt.IsZero():
		return false, nil
	case waiting == 0, now.Sub(s.failedAt) >= s.opts.Settle:
		s.logs.finish()
		s.addEvidence(ctx)
		return true, &FailedError{Causes: s.causes(), Waited: now.Sub(s.started)}
	}
	return false, nil
}

// outOfTime is the outcome when the caller's context has ended. A cancelled
// wait ends at once; after a deadline there is time to ask why.
func (s *session) outOfTime(ctx context.Context) error {
	err := context.Cause(ctx)
	if ctxErr := ctx.Err(); !errors.Is(err, ctxErr) {
		err = fmt.Errorf("%w: %w", ctxErr, err)
	}
	s.drain()
	now := s.opts.Now()
	for sub := range s.dirty {
		s.updateStatus(sub, now)
	}
	for _, sub := range s.objects {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && sub.waiveStability() {
			s.updateStatus(sub, now)
		}
		if !sub.status.State.IsFinal() {
			sub.status.Waited = now.Sub(sub.appliedAt)
		}
	}
	if s.waiting() == 0 && s.failedAt.IsZero() {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.timedOut = s.failedAt.IsZero()
		s.addEvidence(context.WithoutCancel(ctx))
	}
	if !s.failedAt.IsZero() {
		return &FailedError{Causes: s.causes(), Waited: now.Sub(s.started)}
	}
	return &TimeoutError{Causes: s.causes(), NotReady: s.unready(), Total: len(s.objects), Aim: s.goal(), Waited: now.Sub(s.started), Err: err}
}

// waiting counts the objects that still may change for better or worse.
func (s *session) waiting() int {
	n := 0
	for _, sub := range s.objects {
		if !sub.status.State.IsFinal() && !sub.settings.isBackground() {
			n++
		}
	}
	return n
}

// noteWorkloads notes whether workloads are on their way.
func (s *session) noteWorkloads(now time.Time) {
	busy := false
	for _, sub := range s.objects {
		busy = busy || sub.isWorkload() && !sub.settings.isBackground() && sub.Until != UntilGone && !sub.status.State.IsFinal()
	}
	if s.workloadsBusy && !busy {
		s.workloadsReadyAt = now
	}
	s.workloadsBusy = busy
}

// updateDue judges what has changed and what time may have changed.
func (s *session) updateDue(now time.Time) {
	for _, sub := range s.objects {
		at := now
		if !sub.pausedSince.IsZero() {
			at = sub.pausedSince
		}
		if soon := sub.computedAt.Add(manyPodsPause); len(sub.pods) > manyPods && at.Before(soon) {
			sub.recheckBy(soon)
			continue
		}
		due := !sub.recheckAt.IsZero() && !at.Before(sub.recheckAt)
		if (due || s.dirty[sub]) && !sub.status.State.IsFinal() {
			s.updateStatus(sub, at)
		}
		delete(s.dirty, sub)
	}
}

// updateStatus works out the status of an object and reports what is new.
func (s *session) updateStatus(sub *trackedObject, now time.Time) {
	if sub.status.State.IsFinal() {
		return
	}
	before := sub.status
	after := sub.computeStatus(now)
	if after.State == Failed && !s.trustsSilence(s.opts.Now()) {
		sub.status = before
		return
	}
	if after.State == Ready && sub.settings.failMode == failWarn && after.Unverified && len(after.Notes) > 0 {
		s.warn(sub.ID.String() + ": " + after.Notes[len(after.Notes)-1])
	}
	if after.State == Failed && s.failedAt.IsZero() && !sub.settings.isBackground() {
		s.failedAt = now
	}
	if kind, news := changeOf(before, after); news {
		s.report(Report{Kind: kind, Time: now, Status: after})
	}
}

// changeOf tells what kind of news the difference of two statuses is.
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

// nextDue is how long nothing happens unless something is seen.
func (s *session) nextDue(now time.Time) time.Duration {
	next := now.Add(time.Minute)
	earlier := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	for _, sub := range s.objects {
		if sub.status.State.IsFinal() || !sub.pausedSince.IsZero() {
			continue
		}
		earlier(sub.recheckAt)
		earlier(s.nextLookAt(sub))
	}
	if len(s.pods.wanted) > 0 {
		earlier(s.pods.nextOpen)
	}
	if !s.failedAt.IsZero() {
		earlier(s.failedAt.Add(s.opts.Settle))
	}
	if !s.lostAt.IsZero() {
		earlier(s.lostAt.Add(unreachableLimit))
	}
	return max(next.Sub(now), 5*time.Millisecond)
}

func (s *session) warn(text string) {
	if s.warned[text] {
		return
	}
	s.warned[text] = true
	s.report(Report{Kind: Warned, Time: s.opts.Now(), Text: text})
}

// goal is what the targets are to become.
func (s *session) goal() State {
	if allAwaitDeletion(s.objects) {
		return Gone
	}
	return Ready
}

// unready are the statuses of all that isn't as wanted, failed ones first.
func (s *session) unready() []Status {
	var failed, other []Status
	for _, sub := range s.objects {
		switch {
		case sub.status.State == Failed:
			failed = append(failed, sub.status)
		case !sub.status.State.IsFinal() && !sub.settings.isBackground():
			other = append(other, sub.status)
		}
	}
	return append(failed, other...)
}
