package run

import (
	"fmt"
	"strings"
	"time"

	"deployer/internal/view/textfmt"
)

const (
	// maxCauses is how many causes a report shows; the result file has all.
	maxCauses = 5
	// maxPods, maxEvents and maxLog bound what is shown of one cause.
	maxPods, maxEvents, maxLog = 3, 5, 20
)

// report writes how it ended to standard error.
func (e *View) report(r Result) {
	if r.Error == "" && r.Rollback == nil {
		if e.opts.Progress != "none" && !e.opts.Quiet {
			e.write(e.success(r))
		}
		return
	}
	e.write(e.failure(r))
}

// success is the line that stays of a run that went well.
func (e *View) success(r Result) string {
	p, g := e.palette, e.glyphs
	verb := map[string]string{"uninstall": "uninstalled from", "rollback": "rolled back in", "test": "tested in", "watch": "ready in"}[r.Verb]
	if verb == "" {
		verb = "deployed to"
	}
	text := fmt.Sprintf("%s %s %s %s in %s", p.Good.Sprint(g.Good), p.Bold.Sprint(textfmt.Line(r.Release)), verb, textfmt.Line(r.Namespace), took(r))
	total := len(r.Objects) - e.tally.hookObjects()
	switch r.Verb {
	case "test":
		text += fmt.Sprintf(" %s %s", g.Dot, passed(e.tally.hooked))
	case "watch":
		text += fmt.Sprintf(" %s %s", g.Dot, textfmt.Count(total, "object"))
	default:
		text += fmt.Sprintf(" %s %s: %s", g.Dot, textfmt.Count(total, "object"), e.tally.sums())
	}
	if n := r.Summary.Unverified; n > 0 {
		text += fmt.Sprintf(", %d ready unverified", n)
	}
	if slow := e.tally.slowest(); slow != nil {
		text += fmt.Sprintf(" %s slowest %s %s", g.Dot, textfmt.Line(slow.status.ID.String()), textfmt.Duration(slow.took))
	}
	text += "\n"
	if n := len(r.Warnings); n > 0 {
		text += p.Warn.Sprintf("  warnings (%d):", n) + " " + textfmt.Line(r.Warnings[0]) + "\n"
		for _, w := range r.Warnings[1:] {
			text += "    " + textfmt.Line(w) + "\n"
		}
	}
	return text
}

func passed(tests int) string {
	if tests == 0 {
		return "no tests"
	}
	return textfmt.Count(tests, "test") + " passed"
}

func took(r Result) string { return textfmt.Duration(time.Duration(r.Seconds * float64(time.Second))) }

// hookObjects counts the objects that hooks consist of.
func (t *state) hookObjects() int {
	n := 0
	for id, o := range t.tracked {
		if _, planned := t.changes[id]; o.hook && !planned {
			n++
		}
	}
	return n
}

// failure is the report of a run that went wrong. The last line is the verdict.
func (e *View) failure(r Result) string {
	p, g := e.palette, e.glyphs
	var b strings.Builder
	b.WriteString("\n" + p.Bad.Sprint(g.Bad) + " " + p.Bold.Sprint(headlineOf(r, g)) + "\n")
	shown := r.Causes[:min(len(r.Causes), maxCauses)]
	for i, c := range shown {
		if c.Fatal {
			b.WriteString(e.ci.annotation(strings.Join(c.Objects[:min(1, len(c.Objects))], ""), textfmt.Line(c.headline()+": "+c.Message)))
		}
		head := fmt.Sprintf("%d) %s", i+1, c.headline())
		tag := c.Class
		if !c.Fatal {
			tag += ", not yet fatal"
		}
		fmt.Fprintf(&b, "\n%s  %s\n", p.Bold.Sprint(textfmt.Line(head)), p.Faint.Sprint("["+textfmt.Line(tag)+"]"))
		e.details(&b, c)
	}
	if more := len(r.Causes) - len(shown); more > 0 {
		fmt.Fprintf(&b, "\n%s not shown\n", textfmt.Count(more, "more cause"))
	}
	e.bystanders(&b, r)
	if r.verdict == stoppedVerdict && r.Summary.NotReady > 0 && r.Status == "failed" {
		b.WriteString("\nwhat was applied stays, and its rollout goes on in the cluster\n")
	}
	b.WriteString("\n" + e.verdict(r) + "\n")
	return b.String()
}

// details writes the lines of a cause, its log folded where that is possible.
func (e *View) details(b *strings.Builder, c Cause) {
	log, next := c.Logs, c.Next
	c.Logs, c.Next = nil, nil
	for _, l := range c.lines(e.glyphs) {
		fmt.Fprintf(b, "   %s\n", l)
	}
	now := e.now()
	for _, tail := range log {
		title := "log of " + tail.title()
		b.WriteString(e.ci.begin(title, now))
		for _, l := range tail.lines() {
			fmt.Fprintf(b, "   %s\n", l)
		}
		b.WriteString(e.ci.end(title, now))
	}
	for _, l := range nextLines(next) {
		fmt.Fprintf(b, "   %s\n", l)
	}
}

// headlineOf says in one sentence what happened.
func headlineOf(r Result, g textfmt.Glyphs) string {
	text := fmt.Sprintf("%s %s %s", r.Release, g.Arrow, r.Namespace)
	if r.Release == "" {
		text = "run"
	}
	if r.Revision > 0 && r.Verb != "uninstall" && r.Verb != "watch" {
		text += fmt.Sprintf(" (revision %d)", r.Revision)
	}
	verdict := r.verdict
	if verdict == "" {
		verdict = "FAILED"
	}
	if verdict == "REJECTED" {
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
		parts = append(parts, fmt.Sprintf("%s not %s", textfmt.Count(n, "object"), aimOf(r.Verb)))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return textfmt.Line(text)
}

// headline is what happened to what.
func (c Cause) headline() string {
	text := c.Title
	if c.Hook != "" {
		text += " in " + c.Hook
	}
	objects := c.Objects
	if len(objects) == 0 {
		return text
	}
	if more := len(objects) - 3; more > 0 {
		return fmt.Sprintf("%s: %s and %d more", text, strings.Join(objects[:3], ", "), more)
	}
	return text + ": " + strings.Join(objects, ", ")
}

// bystanders names what is not ready for another reason than its own, and what
// had not finished.
func (e *View) bystanders(b *strings.Builder, r Result) {
	told := map[string]bool{}
	var blocked, unfinished []string
	for _, c := range r.Causes {
		for _, o := range c.Objects {
			told[o] = true
		}
		for _, o := range c.Blocks {
			if !told[o] {
				told[o] = true
				blocked = append(blocked, textfmt.Line(o))
			}
		}
	}
	for _, o := range r.Objects {
		if told[o.Object] || o.State != "waiting" && o.State != "progressing" {
			continue
		}
		text := textfmt.Line(o.Object)
		if o.Message != "" {
			text += " (" + textfmt.Line(o.Message) + ")"
		}
		unfinished = append(unfinished, text)
	}
	if len(blocked) > 0 {
		fmt.Fprintf(b, "\nnot ready because of the above: %s\n", firstNames(blocked))
	}
	if len(unfinished) > 0 {
		fmt.Fprintf(b, "\nnot finished when it ended: %s\n", firstNames(unfinished))
	}
}

func firstNames(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		return strings.Join(names[:maxNames], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// verdict is the last line.
func (e *View) verdict(r Result) string {
	word := r.verdict
	if word == "" {
		word = "FAILED"
	}
	text := ""
	if r.Release != "" {
		text = fmt.Sprintf("  release %s, namespace %s", textfmt.Line(r.Release), textfmt.Line(r.Namespace))
		if r.Revision > 0 {
			text += fmt.Sprintf(", revision %d", r.Revision)
		}
	}
	dot := " " + e.glyphs.Dot + " "
	if undo := r.Rollback; undo != nil {
		what := map[string]string{"uninstall": "uninstalled", "rollback": "rolled back"}[undo.Verb]
		if undo.Error != "" {
			text += dot + "the " + textfmt.Line(undo.Verb) + " failed too: " + textfmt.Line(undo.Error)
		} else if text += dot + what; undo.Verb == "rollback" && undo.Revision > 0 {
			text += fmt.Sprintf(" as revision %d", undo.Revision)
		}
	}
	text += dot + fmt.Sprintf("exit code %d", r.ExitCode)
	if e.opts.ResultFile != "" {
		text += dot + "report: " + textfmt.Line(e.opts.ResultFile)
	}
	return e.palette.Bad.Sprint(word) + text
}
