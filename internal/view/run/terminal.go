package run

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/textfmt"
	"deployer/track"
)

const (
	// maxRegion bounds the region that is painted in place, in lines.
	maxRegion = 16
	// maxText is where the ages of objects stand on a wide terminal.
	maxText = 110
	// barCells is how wide the bar is; less on narrow terminals.
	barCells = 24
)

// terminalRenderer shows a run in a region that is painted in place: the bar, what
// fails, what is slow. What is finished, and logs, scroll by above it. Events
// only change what will be painted next; tick paints, in one goroutine.
type terminalRenderer struct {
	view     *View
	lines    *lineRenderer
	pending  strings.Builder // lines to stand above the region
	frame    strings.Builder // the bar writes here
	bar      *progressbar.ProgressBar
	drawn    int    // lines of the region on the screen
	region   string // as drawn
	barWidth int    // of the bar
}

func newTerminal(v *View) *terminalRenderer {
	t := &terminalRenderer{view: v}
	t.lines = newLines(v, t.above)
	t.lines.silent = true
	columns, _ := v.streams.Size()
	t.barWidth = min(barCells, columns/4)
	t.bar = progressbar.NewOptions(1,
		// A frame is written at once, so that it never flickers: the bar draws
		// into the frame, the frame goes to standard error.
		progressbar.OptionSetWriter(&t.frame),
		progressbar.OptionSetWidth(t.barWidth),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(0), // tick is the throttle
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionSetTheme(progressbar.Theme{
			Saucer: v.glyphs.Full, SaucerHead: v.glyphs.Head, SaucerPadding: v.glyphs.Empty, BarStart: "", BarEnd: "",
		}),
	)
	return t
}

func (t *terminalRenderer) handle(event deploy.Event) {
	if event.Kind != track.ProblemSeen { // the region shows what can still heal
		t.lines.handle(event)
	}
}

// tick paints what has changed.
func (t *terminalRenderer) tick() {
	t.lines.tick()
	if t.view.outputs.isHeld() {
		return
	}
	if !t.view.current.hasBegun {
		t.paint("")
		return
	}
	columns, rows := t.view.streams.Size()
	t.paint(t.compose(columns, rows))
}

// maxPending bounds what waits to stand above the region of a terminal that
// isn't read. It is half of what the writer queues, which leaves out the rest: the
// first lines beyond it take the region down, and must not be left out.
const maxPending = output.MessageLimit / 2

// above takes lines to stand above the region.
func (t *terminalRenderer) above(text string) {
	if t.pending.WriteString(text); t.pending.Len() > maxPending {
		t.paint("")
	}
}

// close takes the region down and leaves the lines above it.
func (t *terminalRenderer) close() {
	t.lines.close()
	t.paint("")
}

// paint replaces the region by another and puts the finished lines above it,
// in one write.
func (t *terminalRenderer) paint(region string) {
	if region == t.region && t.pending.Len() == 0 {
		return
	}
	var b strings.Builder
	if t.drawn > 0 {
		back := "\r"
		if t.drawn > 1 {
			back += fmt.Sprintf("\x1b[%dA", t.drawn-1)
		}
		b.WriteString(t.view.streams.MarkTrusted(back + "\x1b[J"))
	}
	b.WriteString(t.pending.String())
	t.pending.Reset()
	t.drawn = 0
	if region != "" {
		t.drawn = strings.Count(region, "\n") + 1
		b.WriteString(region)
	}
	t.region = region
	t.view.outputs.write(b.String())
}

// compose makes the region: at most half of the terminal.
func (t *terminalRenderer) compose(columns, rows int) string {
	room := max(min(rows/2, maxRegion), 2)
	out := []string{t.header(columns)}
	unready := t.view.current.unready()
	room -= 2 // the header and the last line
	for i, o := range unready {
		text := t.objectLines(o, columns)
		if len(text) > room-1 && !(i == len(unready)-1 && len(text) <= room) {
			if len(text) > 1 && room > 1 {
				out, room = append(out, text[0]), room-1
				i++
			}
			if more := len(unready) - i; more > 0 && room > 0 {
				out = append(out, t.cut(fmt.Sprintf("  %s %d more in progress", t.view.glyphs.Busy, more), columns))
			}
			break
		}
		out, room = append(out, text...), room-len(text)
	}
	return strings.Join(append(out, t.footer(columns)), "\n")
}

// header is the bar behind the name of the operation.
func (t *terminalRenderer) header(columns int) string {
	of, revision := page.SubjectOf(t.view.current.op), ""
	if of.Revision > 0 {
		revision = fmt.Sprintf("revision %d", of.Revision)
	}
	name := fmt.Sprintf("%s %s %s %s %s", t.view.glyphs.Title, textfmt.Capitalized(string(of.Verb)), of.Release, t.view.glyphs.Arrow, of.Namespace)
	name = textfmt.WithNotes(name, of.Context, revision)
	name += "  " + clock(t.view.now().Sub(t.view.began))
	room := columns - t.barWidth - 10
	if t.view.opts.Timeout > 0 && t.view.current.step == deploy.StepWait {
		limited := name + fmt.Sprintf("  %s timeout", textfmt.Duration(t.view.opts.Timeout))
		if textfmt.Width(limited) <= room {
			name = limited
		}
	}
	name = t.view.glyphs.Fit(name, room)
	done, total := t.view.current.work()
	t.bar.ChangeMax(total + 1) // never full before the end: the record is written last
	t.frame.Reset()
	_ = t.bar.Set(done) // fails only when there is more done than there is to do
	t.frame.Reset()
	t.bar.Describe(name)
	return strings.TrimSpace(textfmt.CleanLine(t.frame.String()))
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// objectLines are an object that isn't ready, and below it the pod that shows why.
func (t *terminalRenderer) objectLines(o *awaitedObject, columns int) []string {
	s := o.status
	sign, paint := t.view.glyphs.Busy, t.view.palette.Faint.Sprint
	switch {
	case s.State == track.Failed:
		sign, paint = t.view.glyphs.Bad, t.view.palette.Bad.Sprint
	case s.Finding != nil:
		sign, paint = t.view.glyphs.Warn, t.view.palette.Warn.Sprint
	}
	progress := cmp.Or(progressText(s, "ready"), string(s.State))
	age := textfmt.Duration(t.view.current.age(o).Truncate(time.Second))
	text := fmt.Sprintf("%s  %s  %s", textfmt.Pad(s.ID.String(), t.nameCells(columns)), textfmt.Pad(progress, 11), t.headOf(s))
	room := columns - 6 - textfmt.Width(age)
	text = textfmt.Pad(t.view.glyphs.Fit(textfmt.CleanIndentedLine(text), room), min(room, maxText))
	out := []string{"  " + paint(sign) + " " + text + "  " + t.view.palette.Faint.Sprint(age)}
	if p := s.Finding; p != nil && len(p.Pods) > 0 {
		out = append(out, t.cut("      "+t.view.glyphs.Branch+" "+exemplar(s), columns))
	}
	return out
}

// nameCells is how wide the column of the objects is: as their longest name, but no wider
// than half of the terminal.
func (t *terminalRenderer) nameCells(columns int) int {
	longest := 0
	for id := range t.view.current.tracked {
		longest = max(longest, textfmt.Width(id.String()))
	}
	return min(longest, columns/2)
}

// headOf is the news about an object without its pods.
func (t *terminalRenderer) headOf(s track.Status) string {
	if s.Finding == nil {
		return s.Message
	}
	bare := *s.Finding
	bare.Pods, bare.Nodes = nil, nil
	s.Finding = &bare
	text := problemText(s)
	if left := bare.FinalAt.Sub(t.view.now()); left > 0 && s.State != track.Failed {
		text = "fails in " + textfmt.Duration(left.Round(time.Second)) + ": " + text
	}
	return text
}

// exemplar names one pod of a problem and what still serves.
func exemplar(s track.Status) string {
	p := s.Finding
	text := ""
	if p.PodTotal > 0 {
		text = fmt.Sprintf("%d of %s, first ", p.PodCount, textfmt.Count(p.PodTotal, "new pod"))
	}
	text += p.Pods[0]
	if len(p.Nodes) > 0 {
		text += " on " + p.Nodes[0]
	}
	if s.Rollout != nil && s.Rollout.OldServing > 0 {
		text += fmt.Sprintf("; old revision still serves with %s", textfmt.Count(s.Rollout.OldServing, "pod"))
	}
	return text
}

// footer counts what is done.
func (t *terminalRenderer) footer(columns int) string {
	run := t.view.current
	parts := []string{"applied " + run.progress.applied.String()}
	for _, of := range []struct {
		what string
		counter
	}{{"hooks", run.progress.hooked}, {string(run.goal()), run.awaited()}, {"pruned", run.progress.pruned}} {
		if of.total > 0 {
			parts = append(parts, of.what+" "+of.counter.String())
		}
	}
	if run.step != "" {
		parts = append(parts, "now: "+string(run.step))
	}
	return t.cut("  "+strings.Join(parts, " "+t.view.glyphs.Dot+" "), columns)
}

func (t *terminalRenderer) cut(text string, columns int) string {
	return t.view.glyphs.Fit(textfmt.CleanIndentedLine(text), columns-1)
}
