package output

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"deployer/internal/lazyregexp"
	"deployer/internal/program"
	"deployer/internal/view/textfmt"
)

// A filter cleans all text for a terminal or a log. It removes escape sequences for terminals
// and defuses commands of CI systems, except those marked with the nonce of this run. It also
// puts in how the program was called. It is safe for concurrent use.
type filter struct {
	to    io.Writer
	call  *program.Call
	nonce int // a number that nobody can guess, in all sequences of ours

	mu      sync.Mutex
	midLine bool // the current line has text other than blanks
}

func (f *filter) Write(data []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := io.WriteString(f.to, f.clean(string(data))); err != nil {
		return 0, err
	}
	return len(data), nil
}

// The marks around text that is passed on unchanged.
func (f *filter) beginMark() string { return fmt.Sprintf("\x1b[%d;1p", f.nonce) }
func (f *filter) endMark() string   { return fmt.Sprintf("\x1b[%d;0p", f.nonce) }

// clean returns the filtered text.
func (f *filter) clean(text string) string {
	text = f.call.Insert(text)
	var out strings.Builder
	for text != "" {
		foreign, rest, found := strings.Cut(text, f.beginMark())
		out.WriteString(f.withoutCommands(f.withoutControls(foreign)))
		if !found {
			break
		}
		own, after, _ := strings.Cut(rest, f.endMark())
		out.WriteString(own)
		if own != "" {
			f.midLine = !strings.HasSuffix(own, "\n")
		}
		text = after
	}
	return out.String()
}

// withoutControls takes out escape sequences that aren't colours of ours, and
// characters that control terminals but for line ends and tabs.
func (f *filter) withoutControls(text string) string {
	dangerous := func(r rune) bool { return textfmt.IsControl(r) && r != '\n' && r != '\t' }
	if !strings.ContainsFunc(text, dangerous) && utf8.ValidString(text) {
		return text
	}
	colour := fmt.Sprintf("\x1b[%d;", f.nonce)
	coloured := false
	ownColours := func(sequence string) string {
		switch codes, ours := strings.CutPrefix(sequence, colour); {
		case ours && strings.HasSuffix(codes, "m"):
			coloured = true
			return "\x1b[" + codes
		case coloured && colourEnds[sequence] != "":
			coloured = false
			return colourEnds[sequence]
		}
		return ""
	}
	return textfmt.MapControls(strings.ReplaceAll(text, "\r\n", "\n"), ownColours, func(r rune) rune {
		switch r {
		case '\n', '\t':
			return r
		case '\r':
			return ' '
		}
		return -1
	})
}

// colourEnds maps the sequences that end our colours, which also end the mark, to the
// sequences that are written.
var colourEnds = map[string]string{"\x1b[0;0m": "\x1b[0m", "\x1b[0;22m": "\x1b[22m"}

// withoutCommands changes what the log of a CI system takes for a command. That is
// done everywhere: a container in a CI job doesn't know that it is in one.
//
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
// https://learn.microsoft.com/en-us/azure/devops/pipelines/scripts/logging-commands
// https://www.jetbrains.com/help/teamcity/service-messages.html
func (f *filter) withoutCommands(text string) string {
	var out strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		if !f.midLine && strings.Contains(line, "::") {
			line = lineCommand().ReplaceAllString(line, "${1}: :")
		}
		if strings.Contains(line, "##") {
			line = command().ReplaceAllString(line, "# #${1}")
		}
		out.WriteString(line)
		f.midLine = !strings.HasSuffix(line, "\n") && (f.midLine || strings.TrimSpace(textfmt.WithoutColours(line)) != "")
	}
	return out.String()
}

var (
	lineCommand = lazyregexp.New(`^((?:[\pZ\t]|\x1b\[[0-9;]*m)*)::`) // at the beginning of a line; blanks and our colours may be before it
	command     = lazyregexp.New(`(?i)##(\[|vso\[|teamcity\[)`)      // anywhere
)

// Inline cleans a text that stands in the middle of a line of ours.
func Inline(text string) string { return (&filter{midLine: true}).clean(text) }
