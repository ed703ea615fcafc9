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
	display *display
	outputs *outputs

	mu       sync.Mutex
	runs     *runs
	renderer renderer
	outcome  outcome
	closed   bool
	// beforeReport writes what stands before the report of the end; nil for nothing.
	beforeReport func(ended error) error

	stopTicking func() // waits for its end
}

// A display has what all renderers need to show a run.
type display struct {
	opts    Options
	streams output.Streams
	palette output.Palette
	glyphs  textfmt.Glyphs
	ci      ci
	now     func() time.Time
	began   time.Time
	live    bool // shown in place, on a terminal
}

// fit breaks a line that is longer than the terminal is wide, and indents what follows.
// Elsewhere lines stay whole, as programs look for them.
func (d *display) fit(line string, hanging int) string {
	if !d.live {
		return line
	}
	columns, _ := d.streams.Size()
	return textfmt.WrapLine(line, columns, hanging)
}

// runs are the run that is shown, and the failed ones before it that it undoes.
type runs struct {
	current *runState
	failed  []*runState
}

// An outcome is how everything ended.
type outcome struct {
	err      error
	reported bool   // err has been shown
	result   Result // as it was reported; empty before
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
	d := &display{opts: o, streams: s, palette: s.ErrPalette(o.Colour), glyphs: textfmt.GlyphsFor(o.Getenv), ci: ciOf(o.Getenv, s.MarkTrusted), now: now, began: now()}
	v := &View{display: d, outputs: out, runs: &runs{current: newState(now)}, stopTicking: func() {}}
	v.runs.current.op = &deploy.Operation{Release: o.Subject.Release, Namespace: o.Subject.Namespace, Place: o.Subject.Place}
	switch {
	case o.Format == output.FormatJSON:
		v.renderer = &jsonRenderer{display: d, runs: v.runs, outputs: out}
	case o.Progress == "none" || o.Quiet:
		v.renderer = &warningsOnly{display: d, outputs: out, hold: o.Quiet}
	case o.Progress != "plain" && s.ErrTTY && o.Getenv("TERM") != "dumb" && o.Getenv("CI") == "":
		d.live = true
		v.renderer = newTerminal(d, v.runs, out)
	default:
		v.renderer = newLines(d, v.runs, out.write)
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
	if event.Kind == deploy.Began && v.runs.current.ended != nil {
		failed := v.runs.current
		v.runs.failed = append(v.runs.failed, failed)
		v.runs.current = newState(v.display.now)
		v.runs.current.warnings = slices.Clone(failed.warnings)
	}
	v.show(v.display.withoutHidden(event))
	if event.Kind == deploy.Began {
		for _, w := range plan.Warnings(event.Operation) {
			v.show(warned(w.String()))
		}
	}
}

// show shows an event that has nothing confidential; the same warning once.
func (v *View) show(event deploy.Event) {
	if event.Kind == track.Warned && slices.Contains(v.runs.current.warnings, event.Text) {
		return
	}
	v.runs.current.handle(event)
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
	switch current := v.runs.current; {
	case len(v.runs.failed) > 0:
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
	v.outcome.err = ended
	if v.beforeReport != nil {
		v.outputs.flush()
		v.outputs.check(v.beforeReport(ended))
	}
	if ended != nil || v.runs.current.ended != nil {
		v.conclude()
	}
	return v.outputs.close()
}

// conclude reports the outcome in all the ways that were asked for.
func (v *View) conclude() {
	result := v.result()
	// A failure before the operation began is left to the caller, who prints it in one line.
	// JSON and YAML always have it.
	ran := v.runs.current.hasBegun
	v.outcome.reported = ran || v.display.opts.Format == output.FormatJSON || v.display.opts.Format == output.FormatYAML
	if v.display.opts.Format == output.FormatYAML {
		v.outputs.check(output.Encode(v.outputs.data, output.FormatYAML, result))
	}
	if w, ok := v.renderer.(*warningsOnly); ok && v.outcome.err != nil {
		w.release()
	}
	shown := textfmt.Harmless(result)
	if ran && v.display.opts.Format != output.FormatJSON {
		v.outputs.write((&finalReport{display: v.display, state: v.runs.current, err: v.outcome.err}).text(shown))
	}
	if v.display.opts.ResultFile != "" {
		v.outputs.check(writeResult(v.display.opts.ResultFile, result))
	}
	if v.display.opts.JUnitFile != "" {
		v.outputs.check(writeJUnit(v.display.opts.JUnitFile, shown))
	}
	v.outputs.check(v.display.ci.summary(shown))
	if v.display.opts.Format == output.FormatJSON { // last: it is the end, and knows of the files
		result.recordUnwritten(v.outputs.firstError, v.display.opts.ExitCode(errors.Join(v.outcome.err, v.outputs.firstError)))
		now := v.display.now().UTC().Format(time.RFC3339Nano)
		v.outputs.writeJSON(ended{Format: output.JSONVersion, Event: "ended", Time: now, Result: result})
	}
	v.outcome.result = result
}

// RecordUnwritten corrects the result file, after Close, if the program ends with another code than it says, or if err says that
// something could not be written.
func (v *View) RecordUnwritten(code int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.closed || v.display.opts.ResultFile == "" || v.outcome.result.Document == "" || err == nil && v.outcome.result.ExitCode == code {
		return
	}
	v.outcome.result.recordUnwritten(err, code)
	_ = writeResult(v.display.opts.ResultFile, v.outcome.result) // if this fails too, only the exit code says so
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
	if err == nil || v.outcome.err == nil || !v.outcome.reported {
		return false
	}
	return errors.Is(err, v.outcome.err) || errors.Is(v.outcome.err, err)
}

// warningsOnly shows warnings and nothing else of a run; or holds them back.
type warningsOnly struct {
	display *display
	outputs *outputs
	hold    bool
	held    []string
}

func (w *warningsOnly) handle(event deploy.Event) {
	switch {
	case event.Kind == track.Warned && w.hold:
		w.held = append(w.held, event.Text)
	case event.Kind == track.Warned:
		w.outputs.write(output.WarningLine(w.display.palette, event.Text))
	case event.Kind == stopping && !w.hold:
		w.outputs.write("stopping: " + event.Text + "\n")
	}
}

// release writes what was held back.
func (w *warningsOnly) release() {
	for _, text := range w.held {
		w.outputs.write(output.WarningLine(w.display.palette, text))
	}
}

func (w *warningsOnly) tick()  {}
func (w *warningsOnly) close() {}

// hideText is text from elsewhere without what is hidden, and with the name that the
// program was called by. It is asked before the text becomes part of a line or a
// document: there, names and words of ours that are the same are not to be hidden.
func (d *display) hideText(s string) string { return d.opts.Hidden.Hide(d.streams.WithCall(s)) }

// withoutHidden returns an event without confidential text. Errors aren't changed: their
// messages are filtered when they are written.
func (d *display) withoutHidden(event deploy.Event) deploy.Event {
	event.Event = textfmt.RewriteTagged(event.Event, d.hideText, d.streams.WithCall)
	event.Text = output.WithoutPasswords(event.Text) // libraries quote the URLs of repositories
	if event.Change != nil {
		change := *event.Change
		change.Reason = d.hideText(change.Reason)
		event.Change = &change
	}
	return event
}
