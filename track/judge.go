package track

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"deployer/track/class"
	"deployer/track/rules"
)

const (
	slowAfter       = 3 * time.Second  // a rollout that takes longer gets its pods looked at
	noProgress      = 10 * time.Minute // the API server's default of progressDeadlineSeconds
	controllerFirst = 15 * time.Second // the Deployment controller may say it itself, with more to it
)

// judge works out the status at a time. It is pure but for the clocks that
// the subject keeps.
func (s *subject) judge(now time.Time) Status {
	s.due, s.judged = time.Time{}, now
	s.advance(now)
	status := s.verdict(now)
	status.ID, status.Waited = s.ID, now.Sub(s.applied)
	if s.object != nil {
		status.UID = s.object.GetUID()
	}
	status.Notes = append(append([]string(nil), s.notes...), status.Notes...)
	s.soften(&status, now)
	s.status = status
	return status
}

func (s *subject) verdict(now time.Time) Status {
	switch {
	case s.Until == UntilNothing, s.Until != UntilGone && s.Skip:
		return Status{State: Ready}
	case s.Until == UntilGone:
		return s.absence()
	case s.Awaited && (s.gone || s.object == nil) && s.denied == "":
		return Status{State: Waiting, Message: "it is not there yet"}
	case s.gone:
		return s.disappeared(now)
	case s.object == nil && s.denied != "":
		return Status{State: Ready, Unverified: true, Notes: []string{s.denied}}
	case s.object == nil:
		return Status{State: Waiting, Message: "not seen yet"}
	case s.Baseline.GetUID() != "" && s.object.GetUID() != s.Baseline.GetUID():
		return s.own(now, class.Replaced, "another object took its name during the rollout")
	case s.object.GetDeletionTimestamp() != nil:
		return s.own(now, class.Terminating, "it is being deleted"+finalizersText(s.object.GetFinalizers()))
	case s.Until == UntilPresent:
		return Status{State: Ready}
	}
	return s.living(now)
}

// living judges an object that is there and stays.
func (s *subject) living(now time.Time) Status {
	v := s.opts.Rules.Judge(s.input(now))
	status := statusOf(s.ID, s.object.GetUID(), v)
	if status.Rollout != nil {
		status.Rollout.Revision = s.revision
		status.Rollout.NewReady = s.newReady()
		s.status.Rollout = status.Rollout // the pod rules look at it
	}
	s.wake(now, v.Recheck)
	switch v.Phase {
	case rules.Ready:
		if s.gk.Kind == "CustomResourceDefinition" && !s.served {
			return Status{State: Progressing, Message: notServed}
		}
		if left := s.lasting(v.Grace, now); left > 0 {
			s.wake(now, left)
			status.State = Progressing
			return status
		}
		clear(s.since)
		if left := s.probation(status, now); left > 0 {
			s.wake(now, left)
			status.State, status.Message = Progressing, status.Message+"; waiting whether it stays so"
			status.Problem = s.lately(now)
		}
		return status
	case rules.Failed:
		return s.failing(status, v, now)
	}
	s.rolling, s.readySince = true, time.Time{}
	if s.denied != "" {
		return Status{State: Ready, Unverified: true, Message: "not verified", Notes: []string{s.denied}}
	}
	s.explain(&status, now)
	s.stall(&status, v, now)
	return status
}

// lasting is how long an object still has to stay ready that isn't so for good.
func (s *subject) lasting(grace time.Duration, now time.Time) time.Duration {
	if grace == 0 {
		return 0
	}
	if s.since[""] == (time.Time{}) {
		s.since[""] = now // the empty class: nothing is wrong
	}
	return grace - now.Sub(s.since[""])
}

// stay is how long a rollout has to stay ready whose containers nobody probes.
// The kubelet takes such a container for ready from its start to its end, and
// looks for containers that have ended every second; it takes up to another one
// until that is known on a node that is busy.
// (k8s.io/kubernetes/pkg/kubelet/pleg, genericPlegRelistPeriod)
const stay = 2 * time.Second

// probation is how long a workload that has just become ready is still to be
// looked at, because a container that crashes at its start looks ready for a
// moment. It is over at once for what was ready from the start.
func (s *subject) probation(status Status, now time.Time) time.Duration {
	if s.hurried || !s.rolling || !s.Changed || status.Rollout == nil || status.Rollout.Wanted == 0 || !rules.Unprobed(s.object) {
		return 0
	}
	if s.readySince.IsZero() {
		s.readySince = now
	}
	return stay - now.Sub(s.readySince)
}

// hurry ends the probation of what is ready when there is no time left for it,
// unless its containers have crashed before. It reports whether there was one.
func (s *subject) hurry() bool {
	if s.readySince.IsZero() || !s.frozen.IsZero() {
		return false
	}
	for _, m := range s.pods {
		if m.Pod.Restarted() {
			return false
		}
	}
	s.hurried = true
	return true
}

func (s *subject) input(now time.Time) rules.Input {
	in := rules.Input{Object: s.object, Baseline: s.Baseline, Previous: s.Previous, Changed: s.Changed,
		Complete: (s.Until == UntilComplete || s.AsJob) && !s.AsService, Applied: s.applied, Now: now,
		Status: s.hasStatus, Required: s.Required, Signals: s.signals, Override: cmp.Or(s.Override, s.ofKind)}
	if s.Required != "" && s.ofRevision() {
		in.NewReady = s.newReady()
	}
	if s.others != nil && !s.workload() {
		in.Busy, in.Calm = s.others()
	}
	return in
}

// newReady counts the ready ones of the new pods that are known.
func (s *subject) newReady() int {
	n := 0
	for _, m := range s.pods {
		if m.Pod.Ready && !m.Pod.Deleting {
			n++
		}
	}
	return n
}

// ofRevision reports whether the known pods are of the revision that the object
// has now: they are looked for after it was judged.
func (s *subject) ofRevision() bool {
	_, revision, owner := podsOf(s)
	return owner != "" && revision == s.revision
}

// wake asks to be judged again after some time.
func (s *subject) wake(now time.Time, after time.Duration) {
	if after > 0 {
		s.wakeAt(now.Add(after))
	}
}

func (s *subject) wakeAt(at time.Time) {
	if !at.IsZero() && (s.due.IsZero() || at.Before(s.due)) {
		s.due = at
	}
}

// own makes a failure of the object itself final when it has lasted.
func (s *subject) own(now time.Time, c Class, message string) Status {
	return s.failing(Status{State: Failed, Message: message},
		rules.Verdict{Class: c, Message: message, Grace: class.Of(c).Grace}, now)
}

func (s *subject) failing(status Status, v rules.Verdict, now time.Time) Status {
	at, ok := s.since[v.Class]
	if !ok {
		at = now
		s.since[v.Class] = at
	}
	p := &Problem{Class: v.Class, Title: titleOf(v.Class), Message: v.Message, Since: at, FinalAt: at.Add(v.Grace)}
	if now.Before(p.FinalAt) {
		status.State = Progressing
		s.wakeAt(p.FinalAt)
	}
	if found := s.podProblem(now); found != nil && status.State == Failed && v.Class == class.ProgressDeadline {
		// The pods say more than the controller.
		found.Message = v.Message + "; " + found.line()
		found.Class, found.Title, found.FinalAt = p.Class, p.Title, p.FinalAt
		p = found
	}
	status.Problem = p
	return status
}

// explain finds what holds a workload up, and whether that is final.
func (s *subject) explain(status *Status, now time.Time) {
	problem := s.creationProblem(status.Rollout, now)
	if found := s.podProblem(now); problem == nil || found != nil && worse(found, problem, now) {
		problem = found
	}
	if problem != nil {
		s.restarted = time.Time{}
	} else if problem = s.lately(now); problem == nil {
		return
	}
	status.Problem = problem
	status.Message = strings.TrimPrefix(status.Message+"; "+problem.line(), "; ")
	if final(problem, now) {
		status.State = Failed
	} else {
		s.wakeAt(problem.FinalAt)
	}
}

// restartNews is how long a container that has crashed must run again until that
// is news. Without a probe it looks ready as soon as it is started.
const restartNews = 5 * time.Second

// lately is the crash after which all containers have run for less than that; nil
// for none.
func (s *subject) lately(now time.Time) *Problem {
	p := s.status.Problem
	if p == nil || !runs(p.Class) {
		return nil
	}
	if s.restarted.IsZero() {
		s.restarted = now
	}
	at := s.restarted.Add(restartNews)
	if !now.Before(at) {
		return nil
	}
	s.wakeAt(at)
	held := *p
	held.FinalAt = time.Time{}
	return &held
}

func final(p *Problem, now time.Time) bool { return !p.FinalAt.IsZero() && !now.Before(p.FinalAt) }

// worse orders problems: what is final, then what will be first.
func worse(a, b *Problem, now time.Time) bool {
	if final(a, now) != final(b, now) {
		return final(a, now)
	}
	if a.FinalAt.IsZero() != b.FinalAt.IsZero() {
		return b.FinalAt.IsZero()
	}
	return a.FinalAt.Before(b.FinalAt)
}

func (p *Problem) line() string {
	text := p.Title
	if len(p.Pods) > 0 {
		text = "pod " + p.Pods[0]
		if p.PodCount > 1 {
			text += fmt.Sprintf(" and %d more", p.PodCount-1)
		}
		text += ": " + p.Title
	}
	if p.Message != "" {
		text += ": " + p.Message
	}
	return text
}

// stall fails an object that has stood still for too long, or that has used
// up its own time.
func (s *subject) stall(status *Status, v rules.Verdict, now time.Time) {
	if status.State == Failed {
		return
	}
	if s.Timeout > 0 {
		s.expire(status, class.Timeout, s.applied.Add(s.Timeout), "not ready after "+s.Timeout.String(), now)
	}
	patience, last := s.patience(v)
	if patience <= 0 || s.object.GetLabels()["kueue.x-k8s.io/queue-name"] != "" {
		return
	}
	s.expire(status, class.NoProgress, last.Add(patience), "no progress for "+patience.String(), now)
}

func (s *subject) patience(v rules.Verdict) (time.Duration, time.Time) {
	switch {
	case s.settings.NoProgress > 0:
		return s.settings.NoProgress, s.progressed
	case v.NoProgress < 0:
		return 0, s.progressed
	case v.NoProgress > 0 && s.gk.Kind == "Deployment":
		return v.NoProgress, s.progressed.Add(controllerFirst)
	case v.NoProgress > 0:
		return v.NoProgress, s.progressed
	case s.opts.NoProgress > 0:
		return s.opts.NoProgress, s.progressed
	}
	return noProgress, s.progressed
}

func (s *subject) expire(status *Status, c Class, at time.Time, what string, now time.Time) {
	if status.State == Failed {
		return
	}
	if now.Before(at) {
		s.wakeAt(at)
		return
	}
	p := &Problem{Class: c, Title: titleOf(c), Message: what, Since: s.progressed, FinalAt: at}
	if under := status.Problem; under != nil {
		full := *under
		full.Class, full.Title, full.FinalAt, full.Since = p.Class, p.Title, p.FinalAt, p.Since
		full.Message = what + ": " + under.Title
		if under.Message != "" {
			full.Message = what + ": " + under.Message
		}
		p = &full
	} else if status.Message != "" {
		p.Message = what + ": " + status.Message
	}
	status.State, status.Problem = Failed, p
	status.Message = p.Message
}

// soften applies what the user wants to happen on failure.
func (s *subject) soften(status *Status, now time.Time) {
	if status.State != Failed {
		return
	}
	late := s.Mode == failLate || s.opts.TolerateFailures || s.Awaited
	timedOut := status.Problem != nil && status.Problem.Class == class.Timeout
	switch {
	case s.Mode == failWarn || s.Mode == failIgnore:
		status.State, status.Unverified = Ready, true
		status.Notes = append(status.Notes, "failed, which is tolerated: "+status.Message)
	case late && !timedOut && s.canHeal(status):
		status.State = Progressing
		s.wake(now, 10*time.Second)
	}
}

// canHeal reports whether waiting longer makes any sense.
func (s *subject) canHeal(status *Status) bool {
	switch status.Problem.Class {
	case class.JobFailed, class.Replaced, class.Deleted, class.VolumeLost:
		return false
	case class.PodFailed:
		return s.gk != podKind
	}
	return true
}
