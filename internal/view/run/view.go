// Package run shows runs while they happen, as lines, in place on a terminal or as
// JSON, and reports how they ended.
package run

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
	"deployer/internal/view/textfmt"
	"deployer/track"
)

// Options say how a run is shown. The zero value shows it in place on a
// terminal and as lines elsewhere.
type Options struct {
	Format   output.Format
	Progress string // auto, plain or none; none leaves warnings and the report of a failure
	// Quiet writes no warnings and no line of success: what would have been
	// written is written when the run fails.
	Quiet  bool
	Colour output.Colour
	// Timeout is that of the wait, to be shown; 0 for none.
	Timeout time.Duration
	// Subject is what is known of the run before it has begun.
	Subject page.Subject
	// ResultFile and JUnitFile are written by Close; empty for none.
	ResultFile, JUnitFile string
	// Hidden is taken out of all text from elsewhere; nil for nothing.
	Hidden *hide.Texts
	// ExitCode returns the program's exit code.
	ExitCode func(error) int
	// ErrorFollows reports whether the program writes an error in a line of its own after the report; nil means never.
	ErrorFollows func(error) bool
	// Getenv reads environment variables; nil means os.Getenv.
	Getenv func(string) string
}

// A View shows runs while they happen and reports how they ended. A run that
// is followed by the run that undoes it is shown as one.
type View struct {
	opts    Options
	streams output.Streams
	palette output.Palette
	glyphs  textfmt.Glyphs
	ci      ci
	now     func() time.Time
	began   time.Time
	live    bool // shown in place, on a terminal
	outputs *outputs

	mu           sync.Mutex
	renderer     renderer
	current      *runState               // the run that is shown
	failed       *runState               // the run that it undoes; nil for none
	beforeReport func(ended error) error // writes what stands before the report of the end; nil for nothing
	closed       bool

	err      error  // that everything ended with
	reported bool   // err has been shown
	written  Result // as it was reported; empty before

	stopTicking func() // waits for its end
}

// fit breaks a line that is longer than the terminal is wide, and indents what follows.
// Elsewhere lines stay whole, as programs look for them.
func (v *View) fit(line string, hanging int) string {
	if !v.live {
		return line
	}
	columns, _ := v.streams.Size()
	return textfmt.WrapLine(line, columns, hanging)
}

// A renderer is one way of showing a run. Its methods are called in turn, after the
// run state has taken the event in.
type renderer interface {
	handle(deploy.Event)
	tick()
	close() // takes down what is not meant to stay
}

// New returns a view of one run, or of a run and the run that undoes it.
// Close ends it.
func New(s output.Streams, o Options) *View {
	v := newView(s, o, time.Now, asyncOutputs(s))
	stop := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() { v.tick(stop) })
	v.stopTicking = sync.OnceFunc(func() {
		close(stop)
		ticking.Wait()
	})
	return v
}

// newView leaves the ticking to the caller.
func newView(s output.Streams, o Options, now func() time.Time, out *outputs) *View {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	v := &View{
		opts: o, streams: s, palette: s.ErrPalette(o.Colour), glyphs: textfmt.GlyphsFor(o.Getenv), ci: ciOf(o.Getenv, s.MarkTrusted),
		now: now, began: now(), outputs: out, current: newState(now), stopTicking: func() {},
	}
	v.current.op = &deploy.Operation{Release: o.Subject.Release, Namespace: o.Subject.Namespace, Place: o.Subject.Place}
	switch {
	case o.Format == output.FormatJSON:
		v.renderer = &jsonRenderer{view: v}
	case o.Progress == "none" || o.Quiet:
		v.renderer = &warningsOnly{view: v}
	case o.Progress != "plain" && s.ErrTTY && o.Getenv("TERM") != "dumb" && o.Getenv("CI") == "":
		v.live = true
		v.renderer = newTerminal(v)
	default:
		v.renderer = newLines(v, out.write)
	}
	return v
}

// tickEvery is how often the region is painted, at most: five times a second.
const tickEvery = 200 * time.Millisecond

func (v *View) tick(stop <-chan struct{}) {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			v.mu.Lock()
			v.renderer.tick()
			v.mu.Unlock()
		}
	}
}

// HandleEvent takes an event. It is a deploy.EventHandler.
func (v *View) HandleEvent(event deploy.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	if event.Kind == deploy.Began && v.current.ended != nil {
		v.failed, v.current = v.current, newState(v.now)
		v.current.warnings = slices.Clone(v.failed.warnings)
	}
	v.show(v.withoutHidden(event))
	if event.Kind == deploy.Began {
		for _, w := range plan.Warnings(event.Operation) {
			v.show(warned(w.String()))
		}
	}
}

// show shows an event that has nothing confidential; the same warning once.
func (v *View) show(event deploy.Event) {
	if event.Kind == track.Warned && slices.Contains(v.current.warnings, event.Text) {
		return
	}
	v.current.handle(event)
	v.renderer.handle(event)
}

func warned(text string) deploy.Event {
	return deploy.Event{Event: track.Event{Kind: track.Warned, Text: text}}
}

// Warn shows a warning. It may be called from any goroutine.
func (v *View) Warn(text string) {
	v.HandleEvent(warned(text))
}

// BeforeReport sets what writes the text before the report of the end, such as the chart's notes. It gets the error of Close,
// and must not warn.
func (v *View) BeforeReport(write func(ended error) error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.beforeReport = write
}

// stopping is the kind of event that only a view makes: a signal has come. Its text says what the run does now.
const stopping track.EventKind = "stopping"

// Stopping says what a signal makes of the run, and how to give up. It may be called from any goroutine.
func (v *View) Stopping(signal string, rollsBack bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	what := "the run ends here"
	switch current := v.current; {
	case v.failed != nil:
		what = "the rollback goes on"
	case current.hasBegun && rollsBack:
		what = "the run ends here and is rolled back"
	case current.hasBegun:
		what = "the run ends here and is recorded as failed"
	}
	v.renderer.handle(deploy.Event{Event: track.Event{Kind: stopping, Text: signal + ": " + what + "; send it once more to give up"}})
}

// Close takes down what was drawn, reports how everything ended, and writes the files of the options.
// ended is nil, or the error that the program ends with. Close returns the first error of any write. A
// second call does nothing.
func (v *View) Close(ended error) error {
	v.stopTicking()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return v.outputs.firstError
	}
	v.closed = true
	v.outputs.waitForRoom()
	v.renderer.close()
	v.err = ended
	if v.beforeReport != nil {
		v.outputs.flush()
		v.outputs.check(v.beforeReport(ended))
	}
	if ended != nil || v.current.ended != nil {
		v.conclude()
	}
	return v.outputs.close()
}

// conclude reports the outcome in all the ways that were asked for.
func (v *View) conclude() {
	result := v.result()
	// A failure before the operation began is left to the caller, who prints it in one line.
	// JSON and YAML always have it.
	ran := v.current.hasBegun
	v.reported = ran || v.opts.Format == output.FormatJSON || v.opts.Format == output.FormatYAML
	if v.opts.Format == output.FormatYAML {
		v.outputs.check(output.Encode(v.outputs.data, output.FormatYAML, result))
	}
	if _, isHeld := v.renderer.(*warningsOnly); isHeld && v.opts.Quiet && v.err != nil {
		for _, text := range v.current.warnings {
			v.outputs.write(output.WarningLine(v.palette, text))
		}
	}
	shown := textfmt.Harmless(result)
	if ran && v.opts.Format != output.FormatJSON {
		v.outputs.write(v.report(shown))
	}
	if v.opts.ResultFile != "" {
		v.outputs.check(writeResult(v.opts.ResultFile, result))
	}
	if v.opts.JUnitFile != "" {
		v.outputs.check(writeJUnit(v.opts.JUnitFile, shown))
	}
	v.outputs.check(v.ci.summary(shown))
	if v.opts.Format == output.FormatJSON { // last: it is the end, and knows of the files
		result.recordUnwritten(v.outputs.firstError, v.opts.ExitCode(errors.Join(v.err, v.outputs.firstError)))
		now := v.now().UTC().Format(time.RFC3339Nano)
		v.outputs.writeJSON(ended{Format: output.JSONVersion, Event: "ended", Time: now, Result: result})
	}
	v.written = result
}

// RecordUnwritten corrects the result file, after Close, if the program ends with another code than it says, or if err says that
// something could not be written.
func (v *View) RecordUnwritten(code int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.closed || v.opts.ResultFile == "" || v.written.Document == "" || err == nil && v.written.ExitCode == code {
		return
	}
	v.written.recordUnwritten(err, code)
	_ = writeResult(v.opts.ResultFile, v.written) // if this fails too, only the exit code says so
}

// Closed reports whether Close was called: nothing is shown any more.
func (v *View) Closed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.closed
}

// Reported reports whether the report of the end already shows err, so that
// nothing more needs to be printed. It is meant to be asked after Close.
func (v *View) Reported(err error) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil || v.err == nil || !v.reported {
		return false
	}
	return errors.Is(err, v.err) || errors.Is(v.err, err)
}

// warningsOnly shows warnings and nothing else of a run; when quiet not even these.
type warningsOnly struct{ view *View }

func (w *warningsOnly) handle(event deploy.Event) {
	switch {
	case w.view.opts.Quiet:
	case event.Kind == track.Warned:
		w.view.outputs.write(output.WarningLine(w.view.palette, event.Text))
	case event.Kind == stopping:
		w.view.outputs.write("stopping: " + event.Text + "\n")
	}
}

func (w *warningsOnly) tick()  {}
func (w *warningsOnly) close() {}

// hideText is text from elsewhere without what is hidden, and with the name that the
// program was called by. It is asked before the text becomes part of a line or a
// document: there, names and words of ours that are the same are not to be hidden.
func (v *View) hideText(s string) string { return v.opts.Hidden.Hide(v.streams.WithCall(s)) }

// withoutHidden returns an event without confidential text. Errors aren't changed: their
// messages are filtered when they are written.
func (v *View) withoutHidden(event deploy.Event) deploy.Event {
	event.Event = textfmt.RewriteTagged(event.Event, v.hideText, v.streams.WithCall)
	event.Text = output.WithoutPasswords(event.Text) // libraries quote the URLs of repositories
	if event.Change != nil {
		change := *event.Change
		change.Reason = v.hideText(change.Reason)
		event.Change = &change
	}
	return event
}
