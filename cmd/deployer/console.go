package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/internal/view/output"
	"deployer/internal/view/run"
	"deployer/release"
)

// A console is where the run reads and writes, and how: what was asked for, and what must not be shown.
type console struct {
	streams  output.Streams
	call     call
	colour   output.Colour
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

// outPalette is that of standard output.
func (c *console) outPalette() output.Palette { return c.streams.OutPalette(c.colour) }

// palette is that of standard error.
func (c *console) palette() output.Palette { return c.streams.ErrPalette(c.colour) }

// readSecret asks for a password on the terminal, without showing it. When ctx
// ends the terminal shows again what is typed.
func (c *console) readSecret(ctx context.Context, question string) (string, error) {
	fd := -1 // asked for once: whoever is left reading below may outlive the file
	if in, ok := c.streams.In.(*os.File); ok {
		fd = int(in.Fd())
	}
	if !term.IsTerminal(fd) {
		return "", program.WithHint(errors.New("a password is needed, but standard input is not a terminal"), "pipe it in with --password-stdin")
	}
	shows, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	var secret []byte
	err = c.ask(ctx, question, func() (err error) {
		secret, err = term.ReadPassword(fd)
		return err
	})
	fmt.Fprintln(c.streams.Err)
	if err != nil && ctx.Err() != nil { // whoever reads is left to the end of the process
		return "", errors.Join(err, term.Restore(fd, shows))
	}
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return string(secret), nil
}

// readLine asks for a line on the terminal.
func (c *console) readLine(ctx context.Context, question string) (string, error) {
	var line string
	err := c.ask(ctx, question, func() (err error) {
		line, err = bufio.NewReader(c.streams.In).ReadString('\n')
		return err
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// ask waits for an answer, or until ctx ends: a read can't be told to stop.
func (c *console) ask(ctx context.Context, question string, answer func() error) error {
	fmt.Fprint(c.streams.Err, question)
	return kube.WaitFor(ctx, answer)
}

// readPipedSecret is --password-stdin: all of standard input but its last line end.
func (c *console) readPipedSecret(ctx context.Context) (string, error) {
	var data []byte
	if err := kube.WaitFor(ctx, func() (err error) {
		data, err = io.ReadAll(c.streams.In)
		return err
	}); err != nil {
		return "", fmt.Errorf("reading the password from standard input: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

func (c *console) readPassword(ctx context.Context, stdin bool) (string, error) {
	if stdin {
		return c.readPipedSecret(ctx)
	}
	return c.readSecret(ctx, "Password: ")
}

// passphrases gives the passphrase of a signing key: the first line of a file
// or of standard input (-), or when path is empty what the user types.
func (c *console) passphrases(ctx context.Context, path string) func(key string) ([]byte, error) {
	return func(key string) ([]byte, error) {
		if path == "" {
			secret, err := c.readSecret(ctx, fmt.Sprintf("Password for key %q >  ", key))
			return []byte(secret), err
		}
		in := c.streams.In
		if path != "-" {
			file, err := os.Open(path)
			if err != nil {
				return nil, fmt.Errorf("reading the passphrase: %w", err)
			}
			defer file.Close()
			in = file
		}
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && (line == "" || !errors.Is(err, io.EOF)) {
			return nil, fmt.Errorf("reading the passphrase: %w", err)
		}
		return []byte(strings.TrimRight(line, "\r\n")), nil
	}
}
