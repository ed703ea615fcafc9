package main

import (
	"fmt"
	"os"

	"deployer/internal/hide"
	"deployer/internal/view/output"
	"deployer/internal/view/run"
	"deployer/release"
)

// A console is where the run reads and writes, and how: what was asked for, and what must not be shown.
type console struct {
	streams  output.Streams
	call     call
	colour   output.Colour
	debug    bool
	format   output.Format // -o
	progress string        // auto, plain or none

	resultFile string // the files of the reports on the run; empty for none
	junitFile  string

	hidden *hide.Texts // what must not be shown; nil for commands that show what Helm shows
	view   *run.View   // shows the run; nil before it began

	brokenPipes  chan os.Signal // receives SIGPIPE while broken pipes are survived; otherwise nil
	readingFlags bool           // not all flags have their values yet
	heldWarnings []string       // to be shown later: by the view, which hasn't begun, or if the command fails, see isQuiet
	planShown    bool           // standard output has a plan
}

// reportsEnd reports whether the command tells programs how it ended.
func (c *console) reportsEnd() bool {
	return c.call.leaf != nil && c.call.leaf.is.has(reports) && (c.call.leaf.name != "status" || c.call.hasFlag("watch"))
}

// formatForPrograms returns JSON or YAML if the command reports its end in it; otherwise the table.
func (c *console) formatForPrograms() output.Format {
	if c.reportsEnd() && !c.call.asHelm && (c.format == output.FormatJSON || c.format == output.FormatYAML) {
		return c.format
	}
	return output.FormatTable
}

// hideValues makes the output hide values whose keys are confidential.
func (c *console) hideValues(values ...map[string]any) {
	if c.hidden == nil {
		c.hidden = &hide.Texts{}
	}
	for _, v := range values {
		c.hidden.AddValues(v)
	}
}

func (c *console) warn(text string) {
	if c.view != nil && !c.view.Closed() {
		c.view.Warn(text)
		return
	}
	isForView := c.view == nil && c.formatForPrograms() != output.FormatTable
	if c.readingFlags || isForView || c.call.asHelm && !c.streams.ErrTTY { // later flags decide whether it is shown
		c.heldWarnings = append(c.heldWarnings, text)
		return
	}
	c.printWarning(text)
}

// printWarning prints a warning at once, for warnings that Helm prints, too.
func (c *console) printWarning(text string) {
	fmt.Fprint(c.streams.Err, output.WarningLine(c.palette(), c.hidden.Hide(text)))
}

// releaseWarnings passes on the held warnings.
func (c *console) releaseWarnings(show func(text string)) {
	held := c.heldWarnings
	c.heldWarnings = nil
	for _, text := range held {
		show(text)
	}
}

// warnUnreadable says why some revisions can't be read. The command that shows them doesn't
// fail: it shows what it knows of them.
func (c *console) warnUnreadable(revisions []release.Summary) {
	for _, r := range revisions {
		if r.Unreadable != nil {
			c.warn(fmt.Sprintf("%s (%s)", r.Unreadable, r.Unreadable.Hint()))
		}
	}
}

// isQuiet reports whether nothing is written to standard error unless something
// fails: under the name helm where no person reads, for tasks of CI that take any
// such output for a failure. --debug and --progress plain ask for it.
func (c *console) isQuiet() bool {
	return c.call.asHelm && !c.streams.ErrTTY && !c.debug && c.progress != "plain"
}

// outPalette is that of standard output.
func (c *console) outPalette() output.Palette { return c.streams.OutPalette(c.colour) }

// palette is that of standard error.
func (c *console) palette() output.Palette { return c.streams.ErrPalette(c.colour) }
