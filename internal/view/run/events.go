// Package run shows runs while they happen, as lines, in place on a terminal or as
// JSON, and reports how they ended.
package run

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/view/output"
	"deployer/internal/view/textfmt"
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
	// ResultFile and JUnitFile are written by Close; empty for none.
	ResultFile, JUnitFile string
	// Hidden is taken out of all text from elsewhere; nil for nothing.
	Hidden *hide.Texts
	// ExitCode tells with which code the program will end. Nil means 1 for errors.
	ExitCode func(error) int
	// Env reads environment variables; nil means os.Getenv.
	Env func(string) string
}

// View shows runs while they happen and reports how they ended. A run that
// is followed by the run that undoes it is shown as one.
type View struct {
	streams output.Streams
	opts    Options
	palette output.Palette
	glyphs  textfmt.Glyphs
	ci      ci
	now     func() time.Time
	out     io.Writer // standard output and standard error, or outlets in front of them
	err     io.Writer
	outlets []*output.AsyncWriter

	mu       sync.Mutex
	began    time.Time
	tally    *state
	earlier  []*state // failed runs that later ones undo
	face     renderer
	final    error // of everything
	known    bool  // final is set
	reported bool
	closed   bool
	failed   error  // the first failed write
	ended    Result // as it was reported; empty before
	stop     chan struct{}
	stopped  chan struct{}
}

// A renderer is one way of showing a run. Its methods are called in turn, after the
// tally has taken the event in.
type renderer interface {
	observe(deploy.Event)
	warn(text string)
	tick()
	close() // takes down what is not meant to stay
}

// New returns a view of one run, or of a run and the run that undoes it.
// Close ends it.
func New(s output.Streams, o Options) *View {
	e := newView(s, o, time.Now)
	messages, records := output.NewAsyncWriter(s.Err, output.MessageLimit, false), output.NewAsyncWriter(s.Data(), output.EventLimit, true)
	e.err, e.out, e.outlets = messages, records, []*output.AsyncWriter{records, messages}
	e.stop, e.stopped = make(chan struct{}), make(chan struct{})
	go e.run()
	return e
}

// newView leaves the ticking to the caller.
func newView(s output.Streams, o Options, now func() time.Time) *View {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.ExitCode == nil {
		o.ExitCode = func(err error) int {
			if err != nil {
				return 1
			}
			return 0
		}
	}
	e := &View{streams: s, opts: o, now: now, began: now(), glyphs: textfmt.GlyphsFor(o.Env), ci: ciOf(o.Env), out: s.Data(), err: s.Err}
	e.ci.own = s.Trusted
	e.palette = s.Palette(o.Colour, s.ErrTTY)
	e.tally = newState(now)
	switch {
	case o.Format == output.FormatJSON:
		e.face = &jsonLines{events: e}
	case o.Progress == "none" || o.Quiet:
		e.face = &warningsOnly{events: e}
	case o.Progress != "plain" && s.ErrTTY && o.Env("TERM") != "dumb" && o.Env("CI") == "":
		e.face = newTerminal(e)
	default:
		e.face = newLines(e, e.write)
	}
	return e
}

// tickEvery is how often the region is painted, at most: five times a second.
const tickEvery = 200 * time.Millisecond

func (e *View) run() {
	defer close(e.stopped)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			e.mu.Lock()
			e.face.tick()
			e.mu.Unlock()
		}
	}
}

// Observe takes an event. It is a deploy.Observer.
func (e *View) Observe(event deploy.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if _, ok := event.(deploy.Began); ok && e.tally.ended != nil {
		warnings := e.tally.warnings
		e.earlier = append(e.earlier, e.tally)
		e.tally = newState(e.now)
		e.tally.warnings = append(e.tally.warnings, warnings...)
	}
	event = e.withoutHidden(event)
	e.tally.add(event)
	e.face.observe(event)
}

// Warn shows something to know that stops nothing. It may be called from any
// goroutine. The same text is shown once.
func (e *View) Warn(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	text = e.text(text)
	before := len(e.tally.warnings)
	e.tally.warn(text)
	if len(e.tally.warnings) > before {
		e.face.warn(text)
	}
}

// Finish tells how everything ended: nil, or the error that the program ends
// with. Without it the last Ended event counts. Call it before Close.
func (e *View) Finish(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.final, e.known = err, true
}

// Close takes down what was drawn, reports how it ended, and writes the files
// of the options. It returns the first error of any write. A second call does
// nothing.
func (e *View) Close() error {
	if e.stop != nil {
		e.mu.Lock()
		if !e.closed {
			select {
			case <-e.stop:
			default:
				close(e.stop)
			}
		}
		e.mu.Unlock()
		<-e.stopped
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.failed
	}
	e.closed = true
	for _, o := range e.outlets {
		o.WaitForRoom()
	}
	e.face.close()
	if !e.known && e.tally.ended != nil {
		e.final, e.known = e.tally.ended.Err, true
		if len(e.earlier) > 0 && e.final == nil {
			e.final = e.earlier[0].ended.Err
		}
	}
	if e.known && (e.final != nil || e.tally.ended != nil) {
		e.conclude()
	}
	for _, o := range e.outlets {
		e.check(o.Close())
	}
	return e.failed
}

// conclude reports the outcome in all the ways that were asked for.
func (e *View) conclude() {
	result := e.result()
	// What failed before there was anything to do is left to the caller, who
	// says it in one line; programs that read our JSON are told in any case.
	ran := e.tally.op != nil
	e.reported = ran || e.opts.Format == output.FormatJSON
	if e.opts.Format == output.FormatYAML {
		e.check(output.Encode(e.out, output.FormatYAML, result))
	}
	if q, ok := e.face.(*warningsOnly); ok && e.final != nil {
		q.release()
	}
	if ran && e.opts.Format != output.FormatJSON {
		e.report(result)
	}
	if e.opts.ResultFile != "" {
		e.check(WriteResult(e.opts.ResultFile, result))
	}
	if e.opts.JUnitFile != "" {
		e.check(WriteJUnit(e.opts.JUnitFile, result))
	}
	e.check(e.ci.summary(result))
	if e.opts.Format == output.FormatJSON { // last: it is the end, and knows of the files
		result.untold(e.failed, e.opts.ExitCode(errors.Join(e.final, e.failed)))
		e.emit(endedEvent(result, e.now()))
	}
	e.ended = result
}

// Untold writes into the result file, after Close, with which code the program
// ends because something could not be written.
func (e *View) Untold(code int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed || e.opts.ResultFile == "" || e.ended.Document == "" {
		return
	}
	e.ended.untold(err, code)
	_ = WriteResult(e.opts.ResultFile, e.ended) // when that is what failed, the exit code alone tells
}

// Closed tells whether Close was called: nothing is shown any more.
func (e *View) Closed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// Reported tells whether the report of the end already shows err, so that
// nothing more needs to be printed. It is meant to be asked after Close.
func (e *View) Reported(err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil || e.final == nil || !e.reported {
		return false
	}
	return errors.Is(err, e.final) || errors.Is(e.final, err)
}

// write writes text to standard error.
func (e *View) write(text string) {
	_, err := e.err.Write([]byte(text))
	e.check(err)
}

// check keeps the first error.
func (e *View) check(err error) {
	if e.failed == nil {
		e.failed = err
	}
}

// warningsOnly shows warnings and nothing else of a run; or holds them back.
type warningsOnly struct {
	events *View
	held   []string
}

func (q *warningsOnly) observe(event deploy.Event) {
	if w, ok := event.(deploy.Warned); ok {
		q.warn(w.Text)
	}
}

func (q *warningsOnly) warn(text string) {
	if q.events.opts.Quiet {
		q.held = append(q.held, text)
		return
	}
	q.events.write(q.events.palette.Warn.Sprint("Warning:") + " " + textfmt.Line(text) + "\n")
}

// release writes what was held back.
func (q *warningsOnly) release() {
	q.events.opts.Quiet = false
	for _, text := range q.held {
		q.warn(text)
	}
	q.held = nil
}

func (q *warningsOnly) tick()  {}
func (q *warningsOnly) close() {}
