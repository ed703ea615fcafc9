package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/textfmt"
	"deployer/track"
	"deployer/track/class"
)

// A Result is the outcome of a run as programs read it: --result-file, -o yaml,
// and the last event of -o json. Its JSON is a promise, see docs/json.md.
type Result struct {
	Format   int    `json:"format"`
	Document string `json:"document"` // "result"
	page.Subject
	Status   string  `json:"status"` // deployed, uninstalled, tested, ready, failed, rolled_back, rollback_failed
	ExitCode int     `json:"exit_code"`
	Began    string  `json:"began"`
	Seconds  float64 `json:"seconds"`
	Error    string  `json:"error,omitempty" text:"free"`
	Hint     string  `json:"hint,omitempty" text:"free"`
	// WriteError is what could not be written, in one line; the rest of the result
	// holds all the same.
	WriteError string         `json:"output_error,omitempty"`
	Summary    ResultSummary  `json:"summary"`
	Causes     []Cause        `json:"causes"`
	Objects    []ObjectResult `json:"objects"`
	Warnings   []string       `json:"warnings" text:"command"`
	// Rollback is the run that undid this one; nil when there was none.
	Rollback *Result `json:"rollback,omitempty"`

	verdict string // one of the verdicts
}

// ResultSummary counts objects.
type ResultSummary struct {
	Created    int `json:"created"`
	Updated    int `json:"updated"`
	Recreated  int `json:"recreated"`
	Deleted    int `json:"deleted"`
	GivenBack  int `json:"given_back,omitempty"`
	Kept       int `json:"kept"`
	Unchanged  int `json:"unchanged"`
	Ready      int `json:"ready"`
	Unverified int `json:"unverified"`
	Failed     int `json:"failed"`
	NotReady   int `json:"not_ready"`
}

// An ObjectResult is what became of one object.
type ObjectResult struct {
	Object     string        `json:"object"`
	Group      string        `json:"group"`
	Action     decide.Action `json:"action,omitempty"` // create, update, ...; empty for hooks
	Source     string        `json:"source,omitempty"`
	State      string        `json:"state,omitempty"` // waiting, progressing, ready, failed or gone; empty when not waited for
	Message    string        `json:"message,omitempty" text:"free"`
	Class      class.Class   `json:"class,omitempty"`
	Seconds    float64       `json:"seconds,omitempty"` // until that state
	Unverified bool          `json:"unverified,omitempty"`
}

// isUnfinished reports whether an object that was waited for was not yet ready or gone, and hadn't failed.
func (o ObjectResult) isUnfinished() bool {
	return o.State == string(track.Waiting) || o.State == string(track.Progressing)
}

// signalCodes is less than all exit codes of programs that a signal has ended.
const signalCodes = 128

// result sums up everything that was shown.
func (v *View) result() Result {
	return textfmt.RewriteTagged(v.summedUp(), v.hideText, v.streams.WithCall)
}

// summedUp sums up everything that happened.
func (v *View) summedUp() Result {
	first, err := v.current, v.err
	if v.failed != nil {
		first = v.failed
		if err == nil {
			err = first.ended.Err
		}
	}
	var rolled *deploy.RolledBackError
	cause := err
	if errors.As(err, &rolled) {
		cause = rolled.Cause
	}
	r := first.result(cause)
	r.Began = page.Timestamp(v.began)
	r.Seconds = roundedSeconds(v.now().Sub(v.began))
	r.ExitCode = v.opts.ExitCode(v.err)
	if v.failed != nil || rolled != nil {
		undone := v.current.rollbackResult(rolled, v.failed != nil)
		r.Rollback, r.Status = &undone, "rolled_back"
		if undone.Error != "" {
			r.Status = "rollback_failed"
		}
	}
	first.suggest(&r, err)
	if err != nil && r.ExitCode > signalCodes {
		r.stopped()
	}
	if r.Rollback != nil && r.Rollback.isIncomplete() {
		r.Causes = append(r.Causes, r.Rollback.Causes...)
	}
	return r
}

// isIncomplete reports whether a rollback has put everything back but for what can't go back.
func (r Result) isIncomplete() bool {
	return slices.ContainsFunc(r.Causes, func(c Cause) bool { return c.Class == classStayed })
}

// recordUnwritten says what could not be written, if anything, and the exit code.
func (r *Result) recordUnwritten(err error, code int) {
	r.ExitCode = code
	if err != nil {
		r.WriteError = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
}

// stopped sets the verdict of a run that a signal has ended.
func (r *Result) stopped() {
	r.verdict = verdictStopped
	for i := range r.Causes {
		if c := &r.Causes[i]; c.Class == classError {
			c.Class, c.Title = classStopped, "The run was stopped"
		}
	}
}

// rollbackResult is the result of the run that undid another. It may not have begun.
func (t *runState) rollbackResult(rolled *deploy.RolledBackError, ran bool) Result {
	var err error
	if rolled != nil {
		err = rolled.Rollback
	} else if t.ended != nil {
		err = t.ended.Err
	}
	if !ran {
		r := Result{
			Format: output.JSONVersion, Document: "result", Subject: page.Subject{Verb: rolled.Verb, Release: rolled.Release}, Status: "failed",
			Causes: []Cause{}, Objects: []ObjectResult{}, Warnings: []string{},
		}
		if err != nil {
			r.Error = err.Error()
		}
		return r
	}
	r := t.result(err)
	t.suggest(&r, err)
	if err != nil {
		r.ExitCode = 1
	}
	return r
}

// successStatuses are the statuses of successful runs of verbs that don't deploy.
var successStatuses = map[deploy.Verb]string{deploy.Uninstall: "uninstalled", deploy.Test: "tested", deploy.Watch: "ready"}

// result sums up one run that ended with err, without suggestions.
func (t *runState) result(err error) Result {
	r := Result{
		Format: output.JSONVersion, Document: "result", Subject: page.SubjectOf(t.op),
		Status: cmp.Or(successStatuses[t.op.Verb], "deployed"), Causes: []Cause{}, Objects: t.objects(), Warnings: append([]string{}, t.warnings...),
		Began: page.Timestamp(t.began), Seconds: roundedSeconds(t.now().Sub(t.began)),
	}
	if t.ended != nil {
		r.Seconds = roundedSeconds(t.ended.Took)
	}
	if err != nil {
		r.Status, r.Error, r.Hint = "failed", err.Error(), output.Hint(err)
		c := &causeCollector{state: t}
		c.collect(err)
		r.Causes, r.verdict = append(r.Causes, c.causes...), c.verdict
	}
	r.Summary = t.summary()
	return r
}

func (t *runState) summary() ResultSummary {
	s := ResultSummary{
		Created: t.actions[decide.Create], Updated: t.actions[decide.Update], Recreated: t.actions[decide.Recreate],
		Deleted: t.actions[decide.Delete], GivenBack: t.actions[decide.GiveBack], Kept: t.actions[decide.Keep], Unchanged: t.actions[decide.Unchanged],
	}
	for _, o := range t.tracked {
		switch {
		case o.hook:
		case o.status.State == track.Failed:
			s.Failed++
		case o.arrived():
			s.Ready++
			if o.status.Unverified {
				s.Unverified++
			}
		default:
			s.NotReady++
		}
	}
	return s
}

// objects lists what became of each object, in order of their names.
func (t *runState) objects() []ObjectResult {
	out := []ObjectResult{}
	for id, c := range t.changes {
		out = append(out, t.objectResult(id, c))
	}
	for id := range t.tracked {
		if _, planned := t.changes[id]; !planned {
			out = append(out, t.objectResult(id, apply.Change{}))
		}
	}
	slices.SortFunc(out, func(a, b ObjectResult) int {
		return cmp.Or(strings.Compare(a.Object, b.Object), strings.Compare(a.Group, b.Group))
	})
	return out
}

func (t *runState) objectResult(id kube.ID, c apply.Change) ObjectResult {
	out := ObjectResult{Object: id.String(), Group: id.Group, Action: c.Action, Source: c.Source}
	o := t.tracked[id]
	if o == nil {
		return out
	}
	s := o.status
	out.State, out.Message, out.Unverified = string(s.State), s.Message, s.Unverified
	out.Seconds = roundedSeconds(t.age(o))
	if s.Finding != nil {
		out.Class, out.Message = s.Finding.Class, cmp.Or(s.Message, s.Finding.Message)
	}
	return out
}

func roundedSeconds(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }

// writeResult writes r to a file as indented JSON: see writeOutcomeFile.
func writeResult(path string, r Result) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeOutcomeFile(path, append(data, '\n'))
}

// resultMarkdown writes a result for the page of a CI job.
func resultMarkdown(r Result) string {
	g := textfmt.UnicodeGlyphs
	var b strings.Builder
	if r.Error == "" {
		fmt.Fprintf(&b, "### ✓ %s %s → %s in %s\n\n", textfmt.EscapeMarkdown(r.Release), textfmt.EscapeMarkdown(r.Status), textfmt.EscapeMarkdown(r.Where()), took(r))
		b.WriteString(r.Summary.markdown())
	} else {
		fmt.Fprintf(&b, "### ✗ %s\n", textfmt.EscapeMarkdown(headlineOf(r, g)))
		for i, c := range r.Causes {
			text := c.text(g)
			fence := textfmt.Fence(text)
			fmt.Fprintf(&b, "\n**%d. %s** (%s)\n\n%s\n%s%s\n", i+1, textfmt.EscapeMarkdown(c.headline()), textfmt.EscapeMarkdown(string(c.Class)), fence, text, fence)
		}
	}
	if undo := r.Rollback; undo != nil {
		outcome := "succeeded"
		if undo.isIncomplete() {
			outcome = "succeeded, but for what can't go back"
		} else if undo.Error != "" {
			outcome = "failed: " + undo.Error
		}
		fmt.Fprintf(&b, "\nThe %s %s.\n", textfmt.EscapeMarkdown(string(undo.Verb)), textfmt.EscapeMarkdown(outcome))
	}
	return b.String() + page.MarkdownWarnings(r.Warnings, len(r.Warnings), 0) + "\n"
}

// markdown is a table of what was done. What hardly any run does has a column only where it was done.
func (s ResultSummary) markdown() string {
	names, counts, line := "|", "|", "|"
	for _, c := range []struct {
		name   string
		n      int
		always bool
	}{
		{"created", s.Created, true}, {"updated", s.Updated, true}, {"recreated", s.Recreated, true}, {"deleted", s.Deleted, true},
		{"given back", s.GivenBack, false}, {"kept", s.Kept, false}, {"unchanged", s.Unchanged, true},
	} {
		if c.always || c.n > 0 {
			names, line, counts = names+" "+c.name+" |", line+"---|", fmt.Sprintf("%s %d |", counts, c.n)
		}
	}
	return names + "\n" + line + "\n" + counts + "\n"
}
