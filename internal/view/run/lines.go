package run

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
	"deployer/internal/view/textfmt"
	"deployer/track"
	"deployer/track/class"
)

const (
	// maxSilence is how long a run without a terminal may print nothing, half a minute
	// including one tick: CI systems kill silent jobs.
	maxSilence = 30*time.Second - tickEvery
	// firstWaitingLine is when the first line about unready objects is printed.
	firstWaitingLine = 3 * time.Second
	// gatherFor is how long objects are collected that share a line.
	gatherFor = 500 * time.Millisecond
	// maxNames is how many objects share a line.
	maxNames = 8
	// maxWaiting is how many unready objects a heartbeat names.
	maxWaiting = 5
)

// lineRenderer shows a run as lines, each of which can be understood alone: time since
// the beginning, a word, the object, the news.
type lineRenderer struct {
	view          *View
	out           func(text string)
	silent        bool // no heartbeat: something else shows what is waited for
	last          time.Time
	waitAnnounced bool // the first line of the wait has been printed
	waitFrom      time.Time

	gathered gathered
	problems map[kube.ID]string // last shown, to show each once
	group    string             // open in the log of the CI system
}

// gathered are objects with the same news, which share a line.
type gathered struct {
	word, why string
	names     []string
	since     time.Time
}

func newLines(v *View, out func(string)) *lineRenderer {
	return &lineRenderer{view: v, out: out, last: v.now(), problems: map[kube.ID]string{}}
}

func (l *lineRenderer) handle(e deploy.Event) {
	id := e.Status.ID.String()
	switch e.Kind {
	case deploy.Began:
		l.began(e.Operation)
	case deploy.StepBegan:
		if e.Step == deploy.StepWait {
			l.waitAnnounced, l.waitFrom = false, l.view.now()
		}
	case deploy.Applied:
		l.applied(e)
	case deploy.HookRan:
		l.hookRan(e)
	case track.StatusChanged:
		l.status(e.Status)
	case track.ProblemSeen:
		l.problem(e.Status)
	case track.Recovered:
		delete(l.problems, e.Status.ID)
		l.say("recovered", strings.TrimSpace(id+" "+e.Status.Message))
	case track.LogWritten:
		l.log(id, e.Log)
	case track.EventSeen:
		if e.ShowEvent {
			l.say("event", fmt.Sprintf("%s %s: %s [%s]", id, e.Seen.Reason, e.Seen.Message, e.Seen.Object))
		}
	case track.APILost:
		l.say("warn", "API server unreachable; failure timers paused: "+e.Text)
	case track.APIRegained:
		l.say("recovered", "the API server is back after "+textfmt.Duration(e.Lost))
	case deploy.StepEnded:
		l.stepEnded(e)
	case track.Warned:
		l.say("warn", e.Text)
	case stopping:
		l.say("stopping", e.Text)
	case deploy.Ended:
		l.flush()
	}
}

func (l *lineRenderer) began(op *deploy.Operation) {
	of := page.SubjectOf(op)
	text := fmt.Sprintf("%s %s %s", of.Release, l.view.glyphs.Arrow, of.Where())
	if of.Revision > 0 && of.Verb != deploy.Uninstall {
		text += fmt.Sprintf(" revision %d", of.Revision)
	}
	switch of.Verb {
	case deploy.Test:
		l.say("test", fmt.Sprintf("%s: %s", text, textfmt.Count(len(op.Hooks.Before), "test")))
	case deploy.Watch:
		l.say("watch", text)
	default:
		sentence := strings.TrimPrefix(plan.Outline(op).Conclusion(), "Plan: ")
		l.say("plan", fmt.Sprintf("%s of %s: %s", of.Verb, text, sentence))
	}
}

func (l *lineRenderer) applied(e deploy.Event) {
	c := e.Change
	switch {
	case e.Step == deploy.StepHook || c.Action == decide.Unchanged:
	case c.Action == decide.Keep:
		l.gather("kept", c.ID.String(), c.Reason)
	case c.Action == decide.GiveBack:
		l.gather("returned", c.ID.String(), c.Reason)
	case e.Step == deploy.StepPrune:
		l.gather("removed", actionDone(c.Action, c.ID), "")
	default:
		l.gather("applied", actionDone(c.Action, c.ID), "")
	}
}

func (l *lineRenderer) hookRan(e deploy.Event) {
	names, failureReported := l.view.current.namesOfHook(e.Hook)
	switch {
	case e.Err == nil:
		for _, name := range names {
			l.say("hook", fmt.Sprintf("%s succeeded in %s", name, textfmt.Duration(e.Took)))
		}
	case !failureReported: // else the line of its object has
		l.say("FAILED", fmt.Sprintf("hook %s after %s: %s", textfmt.List(names), textfmt.Duration(e.Took), l.view.hideText(whyHookFailed(e.Err))))
	}
}

// whyHookFailed says in one line why a hook failed.
func whyHookFailed(err error) string {
	if late, ok := errors.AsType[*track.TimeoutError](err); ok && len(late.NotReady) == 1 {
		return "not " + string(late.Goal) + " in time: " + textfmt.FirstLine(late.NotReady[0].Message)
	}
	return strings.TrimSuffix(textfmt.FirstLine(err.Error()), ":")
}

func (l *lineRenderer) stepEnded(e deploy.Event) {
	switch {
	case e.Err != nil:
		l.flush()
	case e.Step == deploy.StepApply:
		l.flush()
		l.say("applied", fmt.Sprintf("%s: %s", l.view.current.progress.applied, l.view.current.actionCounts()))
	case e.Step == deploy.StepWait:
		l.flush()
		l.say(string(l.view.current.goal()), fmt.Sprintf("%s %s in %s", allObjectsText(e.Objects), l.view.current.goal(), textfmt.Duration(e.Took)))
	}
}

func (l *lineRenderer) status(s track.Status) {
	id := s.ID.String()
	if o := l.view.current.tracked[s.ID]; o != nil && o.hook && s.State != track.Failed {
		return // how a hook ended has a line of its own
	}
	switch s.State {
	case track.Ready:
		if s.Total > 0 {
			id += fmt.Sprintf(" %d/%d", s.Done, s.Total)
		}
		if s.Unverified {
			id += " (unverified)"
		}
		for _, note := range s.Notes {
			id += " (" + note + ")"
		}
		if o := l.view.current.tracked[s.ID]; o != nil && o.took >= time.Second {
			id += " " + textfmt.Duration(o.took)
		}
		l.gather("ready", id, "")
	case track.Gone:
		l.gather("gone", id, "")
	case track.Failed:
		if l.view.current.isHook(s.ID) {
			id = "hook " + id
		}
		if s.Finding != nil && l.problems[s.ID] == problemKey(s.Finding) { // its words have been shown
			short := *s.Finding
			short.Message = ""
			s.Finding = &short
		}
		l.say("FAILED", id+" "+problemText(s))
	}
}

func problemKey(p *track.Finding) string {
	return string(p.Class) + "\x00" + p.Container + "\x00" + p.Message
}

// problem shows a problem once, until it becomes another.
func (l *lineRenderer) problem(s track.Status) {
	if s.Finding == nil || s.State == track.Failed {
		return
	}
	key := problemKey(s.Finding)
	if l.problems[s.ID] == key {
		return
	}
	l.problems[s.ID] = key
	l.say("problem", s.ID.String()+" "+problemText(s))
}

func (l *lineRenderer) log(id string, entry *track.LogLine) {
	name := id + " " + entry.Pod + "/" + entry.Container
	l.flush()
	l.openGroup(name)
	if entry.Dropped > 0 {
		l.print("log", fmt.Sprintf("%s | (%s left out)", name, textfmt.Count(entry.Dropped, "line")))
	}
	l.print("log", name+" | "+textfmt.CleanIndentedLine(entry.Text))
}

// gather collects objects with the same news, for the same reason, into one line.
func (l *lineRenderer) gather(word, name, why string) {
	if l.gathered.word != word || l.gathered.why != why {
		l.flush()
	}
	if len(l.gathered.names) == 0 {
		l.gathered = gathered{word: word, why: why, since: l.view.now()}
	}
	l.gathered.names = append(l.gathered.names, name)
}

// flush prints the line that was being gathered.
func (l *lineRenderer) flush() {
	if len(l.gathered.names) == 0 {
		return
	}
	line := l.gathered
	l.gathered = gathered{}
	text := textfmt.First(line.names, maxNames)
	if line.why != "" {
		text += ": " + line.why
	}
	l.say(line.word, text)
}

// say prints a line of its own.
func (l *lineRenderer) say(word, text string) {
	l.flush()
	l.openGroup("")
	l.print(word, textfmt.CleanLine(text))
}

func (l *lineRenderer) print(word, text string) {
	l.last = l.view.now()
	elapsed := l.last.Sub(l.view.began)
	stamp := fmt.Sprintf("%02d:%02d", int(elapsed.Minutes()), int(elapsed.Seconds())%60)
	line := l.view.palette.Faint.Sprint(stamp) + " " + l.paint(word) + " " + text
	if word != "log" { // what a container writes keeps its lines
		line = l.view.fit(line, len("00:00 recovered "))
	}
	l.out(line + "\n")
}

// openGroup changes the group of the CI system's log; empty is none.
func (l *lineRenderer) openGroup(group string) {
	if l.group == group {
		return
	}
	if l.group != "" {
		l.out(l.view.ci.end(l.group, l.view.now()))
	}
	if group != "" {
		l.out(l.view.ci.begin(group, l.view.now()))
	}
	l.group = group
}

func (l *lineRenderer) paint(word string) string {
	padded := textfmt.Pad(word, len("recovered"))
	switch word {
	case "ready", "gone", "recovered", "hook":
		return l.view.palette.Good.Sprint(padded)
	case "problem", "warn", "stopping":
		return l.view.palette.Warn.Sprint(padded)
	case "FAILED":
		return l.view.palette.Bad.Sprint(padded)
	case "log":
		return l.view.palette.Faint.Sprint(padded)
	}
	return padded
}

func (l *lineRenderer) tick() {
	now := l.view.now()
	if len(l.gathered.names) > 0 && now.Sub(l.gathered.since) >= gatherFor {
		l.flush()
	}
	if l.silent || l.view.current.ended != nil {
		return
	}
	first := l.view.current.step == deploy.StepWait && !l.waitAnnounced && now.Sub(l.waitFrom) >= firstWaitingLine
	if (first || now.Sub(l.last) >= maxSilence) && len(l.gathered.names) == 0 {
		l.sayWaiting()
	}
}

// sayWaiting says what is still waited for.
func (l *lineRenderer) sayWaiting() {
	unready := l.view.current.unready()
	if l.view.current.step == deploy.StepWait {
		l.waitAnnounced = true
	}
	switch step := l.view.current.step; {
	case step == "":
		l.say("waiting", "for the plan and the lock of the release")
		return
	case step == deploy.StepRecord:
		l.say("waiting", "for the record of the release")
		return
	case len(unready) == 0:
		l.say("waiting", "for the step "+string(step))
		return
	}
	var parts []string
	for _, o := range unready[:min(len(unready), maxWaiting)] {
		text := strings.TrimSuffix(o.status.ID.String()+" "+progressText(o.status, ""), " ")
		parts = append(parts, textfmt.WithNotes(text, reasonOf(o.status))+" "+textfmt.Duration(l.view.current.age(o)))
	}
	l.say("waiting", fmt.Sprintf("%d left: %s%s", len(unready), strings.Join(parts, ", "), textfmt.AndMore(len(unready)-maxWaiting)))
}

func (l *lineRenderer) close() {
	l.flush()
	l.openGroup("")
}

// actionsDone are the words for what was done.
var actionsDone = map[decide.Action]string{decide.Create: "created", decide.Update: "updated", decide.Recreate: "recreated", decide.Delete: "deleted", decide.GiveBack: "given back", decide.Keep: "kept", decide.Unchanged: "unchanged"}

func actionDone(action decide.Action, id kube.ID) string {
	return actionsDone[action] + " " + id.String()
}

func allObjectsText(n int) string {
	switch n {
	case 1:
		return "the object is"
	case 2:
		return "both objects are"
	}
	return fmt.Sprintf("all %d objects are", n)
}

// actionCounts counts what was done.
func (t *runState) actionCounts() string {
	var parts []string
	for _, action := range []decide.Action{decide.Create, decide.Update, decide.Recreate, decide.Delete, decide.GiveBack, decide.Keep, decide.Unchanged} {
		if n := t.actions[action]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, actionsDone[action]))
		}
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}

// problemText is what holds an object up, on one line.
func problemText(s track.Status) string {
	p := s.Finding
	if p == nil {
		return s.Message
	}
	var more []string
	if len(p.Pods) > 0 {
		more = append(more, "pod "+p.Pods[0]+textfmt.AndMore(max(p.PodCount, len(p.Pods))-1))
	}
	if len(p.Nodes) > 0 {
		more = append(more, "on "+p.Nodes[0])
	}
	if p.ExitCode != nil && !strings.Contains(p.Message, "exit code") {
		more = append(more, fmt.Sprintf("exit code %d", *p.ExitCode))
	}
	more = append(more, attempts(p.Class, p.Attempts, p.Limit))
	return textfmt.WithNotes(p.Text(), more...)
}

// attempts says how often something was tried, and how often makes it final:
// crashes of a container, or how often its probe had it killed, else pulls and starts.
func attempts(c class.Class, n, limit int) string {
	word := cmp.Or(aboutClasses[c].unit, "attempt")
	switch {
	case n <= 0, n == 1 && limit <= 1, aboutClasses[c].uncounted:
		return ""
	case n <= limit:
		return fmt.Sprintf("%s %d of %d", word, n, limit)
	}
	return textfmt.Count(n, word)
}

// progressText is how much of an object there is of how much, empty where nothing is counted. What old pods add to the counts
// of a rollout isn't.
func progressText(s track.Status, what string) string {
	switch r := s.Rollout; {
	case r != nil && r.Old > 0 && r.Desired > 0:
		return fmt.Sprintf("%d/%d new", min(max(r.NewReady, r.Available-r.Old), r.Desired), r.Desired)
	case s.Total > 0:
		return strings.TrimSuffix(fmt.Sprintf("%d/%d %s", s.Done, s.Total, what), " ")
	}
	return ""
}

func reasonOf(s track.Status) string {
	if p := s.Finding; p != nil && p.Title != "" {
		return p.Title // the rest was shown when it appeared
	}
	return problemText(s)
}
