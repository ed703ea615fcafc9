package run

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"deployer/internal/deploy"
	"deployer/internal/view/textfmt"
)

const (
	// maxCauses is how many causes a report shows; the result file has all.
	maxCauses = 5
	// maxPods, maxEvents and maxLog bound what is shown of one cause.
	maxPods, maxEvents, maxLog = 3, 5, 20
	// maxSummary is how many characters of the cause the last line has.
	maxSummary = 200
)

// report is how the run ended, for people: empty when a success isn't to be reported.
func (v *View) report(r Result) string {
	switch o := v.opts; {
	case r.Error != "" || r.Rollback != nil:
		return v.failure(r)
	case o.Progress == "none" || o.Quiet:
		return ""
	}
	return v.success(r)
}

// success is the line that stays of a run that went well.
func (v *View) success(r Result) string {
	p, g := v.palette, v.glyphs
	verb := cmp.Or(map[deploy.Verb]string{deploy.Uninstall: "uninstalled from", deploy.Rollback: "rolled back in", deploy.Test: "tested in", deploy.Watch: "ready in"}[r.Verb], "deployed to")
	text := fmt.Sprintf("%s %s %s %s in %s", p.Good.Sprint(g.Good), p.Bold.Sprint(r.Release), verb, r.Where(), took(r))
	what, n := "object", len(r.Objects)-v.current.hookObjects()
	if r.Verb == deploy.Test {
		what, n = "test", v.current.progress.hooked.done
	}
	done := textfmt.Count(n, what)
	switch {
	case r.Verb == deploy.Watch:
	case n == 0:
		done = "no " + what + "s"
	case r.Verb == deploy.Test:
		done += " passed"
	default:
		done += ": " + v.current.actionCounts()
	}
	text += fmt.Sprintf(" %s %s", g.Dot, done)
	if n := r.Summary.Unverified; n > 0 {
		text += fmt.Sprintf(", %d ready unverified", n)
	}
	if slow := v.current.slowest(); slow != nil {
		text += fmt.Sprintf(" %s slowest %s %s", g.Dot, slow.status.ID, textfmt.Duration(slow.took))
	}
	if n := len(r.Warnings); n > 0 { // they have lines of their own
		text += fmt.Sprintf(" %s %s", g.Dot, p.Warn.Sprint(textfmt.Count(n, "warning")))
	}
	return v.fit(text, 2) + "\n"
}

func took(r Result) string { return textfmt.Duration(time.Duration(r.Seconds * float64(time.Second))) }

// hookObjects counts the objects that hooks consist of.
func (t *runState) hookObjects() int {
	n := 0
	for id, o := range t.tracked {
		if _, planned := t.changes[id]; o.hook && !planned {
			n++
		}
	}
	return n
}

// failure is the report of a run that went wrong. The last line is the verdict.
func (v *View) failure(r Result) string {
	p, g := v.palette, v.glyphs
	var b strings.Builder
	b.WriteString("\n" + v.fit(p.Bad.Sprint(g.Bad)+" "+p.Bold.Sprint(headlineOf(r, g)), 2) + "\n")
	shown := r.Causes[:min(len(r.Causes), maxCauses)]
	for i, c := range shown {
		if c.Fatal || i == 0 {
			lines := append([]string{c.summary()}, c.changed(v.glyphs)...)
			b.WriteString(v.ci.annotation(strings.Join(c.Objects[:min(1, len(c.Objects))].Names(), ""), lines...))
		}
		head := fmt.Sprintf("%d) %s", i+1, c.headline())
		tag := string(c.Class)
		if !c.Fatal && c.Class != classStopped {
			tag += ", not yet fatal"
		}
		b.WriteString("\n" + v.fit(p.Bold.Sprint(head)+"  "+p.Faint.Sprint("["+tag+"]"), 3) + "\n")
		v.details(&b, c)
	}
	if more := len(r.Causes) - len(shown); more > 0 {
		fmt.Fprintf(&b, "\n%s not shown\n", textfmt.Count(more, "more cause"))
	}
	v.otherObjects(&b, r)
	if r.verdict == verdictStopped && r.Summary.NotReady > 0 && r.Status == "failed" {
		b.WriteString("\nwhat was applied stays, and its rollout continues in the cluster\n")
	}
	b.WriteString("\n" + v.fit(v.verdictLine(r), 2) + "\n")
	return b.String()
}

// details writes the lines of a cause, its log folded where that is possible. Lines of a log,
// and commands, which are copied, aren't broken.
func (v *View) details(b *strings.Builder, c Cause) {
	log, next := c.Logs, c.Next
	c.Logs, c.Next = nil, nil
	for _, l := range c.lines(v.glyphs) {
		b.WriteString(v.fit("   "+l, len("   message  ")) + "\n")
	}
	now := v.now()
	for _, tail := range log {
		title := "log of " + logTitle(tail)
		b.WriteString(v.ci.begin(title, now))
		for _, l := range logLines(tail) {
			fmt.Fprintf(b, "   %s\n", l)
		}
		b.WriteString(v.ci.end(title, now))
	}
	for _, l := range suggestionLines(next) {
		fmt.Fprintf(b, "   %s\n", l)
	}
}

// headlineOf says in one sentence what happened.
func headlineOf(r Result, g textfmt.Glyphs) string {
	revision := ""
	if r.Revision > 0 && r.Verb != deploy.Uninstall && r.Verb != deploy.Watch {
		revision = fmt.Sprintf("revision %d", r.Revision)
	}
	text := textfmt.WithNotes(fmt.Sprintf("%s %s %s", r.Release, g.Arrow, r.Namespace), r.Context, revision)
	if r.Release == "" {
		text = "run"
	}
	verdict := cmp.Or(r.verdict, verdictFailed)
	if verdict == verdictRejected {
		text += " REJECTED, nothing was changed"
	} else {
		text += fmt.Sprintf(" %s after %s", verdict, took(r))
	}
	fatal := 0
	for _, c := range r.Causes {
		if c.Fatal {
			fatal++
		}
	}
	var parts []string
	if fatal > 0 {
		parts = append(parts, textfmt.Count(fatal, "cause"))
	}
	switch other := len(r.Causes) - fatal; {
	case other > 0 && fatal == 0:
		parts = append(parts, textfmt.Count(other, "problem"))
	case other > 0:
		parts = append(parts, textfmt.Count(other, "other problem"))
	}
	if n := r.Summary.NotReady; n > 0 {
		parts = append(parts, fmt.Sprintf("%s not %s", textfmt.Count(n, "object"), goalOf(r.Verb)))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// otherObjects names objects that are blocked by others, and unfinished ones.
func (v *View) otherObjects(b *strings.Builder, r Result) {
	named := map[string]bool{}
	var blocked, unfinished []string
	for _, c := range r.Causes {
		for _, o := range c.Objects.Names() {
			named[o] = true
		}
		for _, o := range c.Blocks.Names() {
			if !named[o] {
				named[o] = true
				blocked = append(blocked, o)
			}
		}
	}
	for _, o := range r.Objects {
		if named[o.Object] || !o.isUnfinished() {
			continue
		}
		unfinished = append(unfinished, textfmt.WithNotes(o.Object, textfmt.CleanLine(o.Message)))
	}
	if len(blocked) > 0 {
		b.WriteString("\n" + v.fit("not ready because of the above: "+textfmt.First(blocked, maxNames), 2) + "\n")
	}
	if len(unfinished) > 0 {
		b.WriteString("\n" + v.fit("not ready when the run ended: "+textfmt.First(unfinished, maxNames), 2) + "\n")
	}
}

// verdictLine is the last line. It has the first cause, because the report may have scrolled it away.
func (v *View) verdictLine(r Result) string {
	text := ""
	if r.Release != "" {
		text = fmt.Sprintf("  release %s, namespace %s", r.Release, r.Namespace)
		text += deploy.Place{Context: r.Context}.InTitle()
		if r.Revision > 0 {
			text += fmt.Sprintf(", revision %d", r.Revision)
		}
	}
	dot := " " + v.glyphs.Dot + " "
	if undo := r.Rollback; undo != nil {
		what := map[deploy.Verb]string{deploy.Uninstall: "uninstalled", deploy.Rollback: "rolled back"}[undo.Verb]
		if undo.isIncomplete() {
			text += dot + what + ", but not completely"
		} else if undo.Error != "" {
			text += dot + "the " + string(undo.Verb) + " failed too: " + textfmt.CleanLine(undo.Error)
		} else if text += dot + what; undo.Verb == deploy.Rollback && undo.Revision > 0 {
			text += fmt.Sprintf(" as revision %d", undo.Revision)
		}
	}
	text += dot + fmt.Sprintf("exit code %d", r.ExitCode)
	if v.opts.ResultFile != "" {
		text += dot + "report: " + v.opts.ResultFile
	}
	if len(r.Causes) > 0 {
		first := r.Causes[0]
		if follows := v.opts.ErrorFollows; follows != nil && follows(v.err) {
			first.Message = "" // the error has it
		}
		text += dot + v.glyphs.Fit(first.summary(), maxSummary)
	}
	return v.palette.Bad.Sprint(cmp.Or(r.verdict, verdictFailed)) + text
}
