package track

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"deployer/internal/kube"
	"deployer/track/stream"
)

const (
	lostLimit    = 2 * time.Minute // without any answer of the API server
	drainAtOnce  = 1000            // messages taken before objects are judged
	manyPods     = 50              // of one workload, that is judged less often then
	judgePause   = 100 * time.Millisecond
	evidenceTime = 3 * time.Second // for what is asked once: logs and events of what failed, rules of kinds
	logsEnd      = 5 * time.Second // at most, for the last lines of what has finished
)

// session is one Wait. Its fields belong to the goroutine of run; others send
// functions to the inbox, which run calls in turn.
type session struct {
	tracker  *Tracker
	opts     *Options
	saw      func(Report)
	subjects []*subject
	byID     map[kube.ID]*subject
	started  time.Time

	inbox chan func()
	ctx   context.Context // of the goroutines of this session, ended by run
	group sync.WaitGroup
	pace  stream.Pace

	feeds      []*feed
	wide       bool // the namespaces are many: watches of all of them are tried first
	pulse      pulse
	outages    int // streams that have no answer
	outageFrom time.Time
	lostAt     time.Time // since when nothing is seen of what is waited for
	lostErr    error     // the last answer of a stream without one
	fatal      error     // ends the wait: credentials
	dirty      map[*subject]bool
	said       map[string]bool
	failedAt   time.Time
	late       bool      // the deadline ended the wait, and not a failure
	busy       bool      // workloads are on their way
	calm       time.Time // when the last of them got ready; zero when all were

	askedRevisions map[string]time.Time // by namespace

	pods   podWatches
	events eventWatches
	logs   *logBook
}

func newSession(t *Tracker, targets []Target, saw func(Report)) *session {
	if saw == nil {
		saw = func(Report) {}
	}
	s := &session{tracker: t, opts: &t.opts, saw: saw, byID: map[kube.ID]*subject{}, started: t.opts.Now(),
		pulse: pulse{heard: t.opts.Now()}, inbox: make(chan func(), 256), dirty: map[*subject]bool{}, said: map[string]bool{},
		askedRevisions: map[string]time.Time{}}
	for _, target := range targets {
		if target.GVK.Empty() && target.Baseline != nil {
			target.GVK = target.Baseline.GroupVersionKind()
		}
		sub := newSubject(target, s.opts, s.started)
		sub.others = func() (bool, time.Time) { return s.busy, s.calm }
		sub.pending = func(ref Ref) bool { return s.pending(sub.ID.Namespace, ref) }
		s.subjects = append(s.subjects, sub)
		s.byID[target.ID] = sub
	}
	return s
}

// run judges the baselines, watches what isn't ready, and returns the outcome.
func (s *session) run(ctx context.Context) error {
	inner, stop := context.WithCancel(ctx)
	s.ctx = inner
	s.logs = newLogBook(s)
	defer s.end(stop)
	defer s.logs.tellMissed()
	now := s.opts.Now()
	s.learn(ctx)
	s.warnSettings()
	for _, sub := range s.subjects {
		s.judge(sub, now)
	}
	if s.waiting() == 0 && s.failedAt.IsZero() {
		return nil
	}
	if err := s.open(ctx); err != nil {
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
	first, more := map[string]*subject{}, map[string]int{}
	var order []string
	for _, sub := range s.subjects {
		for _, text := range sub.Unread {
			s.warn(sub.ID.String() + ": " + text)
		}
		for _, text := range sub.Unknown {
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
		s.mind(now)
		s.judgeDue(now)
		s.follow(now)
		s.logs.takeTurns()
		s.tidy(now)
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
	for range drainAtOnce {
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
	if !s.lostAt.IsZero() && now.Sub(s.lostAt) >= lostLimit {
		return true, &LostError{For: now.Sub(s.lostAt), Err: s.lostErr}
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
		s.evidence(ctx)
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
		s.judge(sub, now)
	}
	for _, sub := range s.subjects {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && sub.hurry() {
			s.judge(sub, now)
		}
		if !sub.status.State.Done() {
			sub.status.Waited = now.Sub(sub.applied)
		}
	}
	if s.waiting() == 0 && s.failedAt.IsZero() {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.late = s.failedAt.IsZero()
		s.evidence(context.WithoutCancel(ctx))
	}
	if !s.failedAt.IsZero() {
		return &FailedError{Causes: s.causes(), Waited: now.Sub(s.started)}
	}
	return &TimeoutError{Causes: s.causes(), NotReady: s.unready(), Total: len(s.subjects), Aim: s.aim(), Waited: now.Sub(s.started), Err: err}
}

// waiting counts the objects that still may change for better or worse.
func (s *session) waiting() int {
	n := 0
	for _, sub := range s.subjects {
		if !sub.status.State.Done() && !sub.Background {
			n++
		}
	}
	return n
}

// mind notes whether workloads are on their way.
func (s *session) mind(now time.Time) {
	busy := false
	for _, sub := range s.subjects {
		busy = busy || sub.workload() && !sub.Background && sub.Until != UntilGone && !sub.status.State.Done()
	}
	if s.busy && !busy {
		s.calm = now
	}
	s.busy = busy
}

// judgeDue judges what has changed and what time may have changed.
func (s *session) judgeDue(now time.Time) {
	for _, sub := range s.subjects {
		at := now
		if !sub.frozen.IsZero() {
			at = sub.frozen
		}
		if soon := sub.judged.Add(judgePause); len(sub.pods) > manyPods && at.Before(soon) {
			sub.wakeAt(soon)
			continue
		}
		due := !sub.due.IsZero() && !at.Before(sub.due)
		if (due || s.dirty[sub]) && !sub.status.State.Done() {
			s.judge(sub, at)
		}
		delete(s.dirty, sub)
	}
}

// judge works out the status of an object and reports what is new.
func (s *session) judge(sub *subject, now time.Time) {
	if sub.status.State.Done() {
		return
	}
	before := sub.status
	after := sub.judge(now)
	if after.State == Failed && !s.sure(s.opts.Now()) {
		sub.status = before
		return
	}
	if after.State == Ready && sub.Mode == failWarn && after.Unverified && len(after.Notes) > 0 {
		s.warn(sub.ID.String() + ": " + after.Notes[len(after.Notes)-1])
	}
	if after.State == Failed && s.failedAt.IsZero() && !sub.Background {
		s.failedAt = now
	}
	if kind, news := compare(before, after); news {
		s.saw(Report{Kind: kind, Time: now, Status: after})
	}
}

// compare tells what kind of news the difference of two statuses is.
func compare(before, after Status) (ReportKind, bool) {
	was, is := problemClass(before), problemClass(after)
	switch {
	case after.State.Done() && before.State != after.State:
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
	for _, sub := range s.subjects {
		if sub.status.State.Done() || !sub.frozen.IsZero() {
			continue
		}
		earlier(sub.due)
		earlier(s.followAt(sub))
	}
	if len(s.pods.wanted) > 0 {
		earlier(s.pods.next)
	}
	if !s.failedAt.IsZero() {
		earlier(s.failedAt.Add(s.opts.Settle))
	}
	if !s.lostAt.IsZero() {
		earlier(s.lostAt.Add(lostLimit))
	}
	return max(next.Sub(now), 5*time.Millisecond)
}

func (s *session) warn(text string) {
	if s.said[text] {
		return
	}
	s.said[text] = true
	s.saw(Report{Kind: Warned, Time: s.opts.Now(), Text: text})
}

// aim is what the targets are to become.
func (s *session) aim() State {
	if allGo(s.subjects) {
		return Gone
	}
	return Ready
}

// unready are the statuses of all that isn't as wanted, failed ones first.
func (s *session) unready() []Status {
	var failed, other []Status
	for _, sub := range s.subjects {
		switch {
		case sub.status.State == Failed:
			failed = append(failed, sub.status)
		case !sub.status.State.Done() && !sub.Background:
			other = append(other, sub.status)
		}
	}
	return append(failed, other...)
}
