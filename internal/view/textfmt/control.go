// Package textfmt makes text fit to be shown: free of control characters, wrapped,
// padded, escaped for Markdown and shells, in the words of a sentence.
package textfmt

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"deployer/internal/lazyregexp"
)

// CleanLine makes one harmless line of text that comes from a cluster, a chart or a
// log: escape sequences and other control characters are taken out, line ends
// become blanks. What is left can't move a cursor, ring, colour or hide
// anything (https://cwe.mitre.org/data/definitions/150.html).
func CleanLine(s string) string {
	return strings.TrimSpace(withoutControls(s, func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return -1
	}))
}

// CleanText is CleanLine for text of several lines: line ends stay, tabs become blanks.
func CleanText(s string) string {
	return withoutControls(strings.ReplaceAll(s, "\r\n", "\n"), func(r rune) rune {
		switch r {
		case '\n':
			return r
		case '\r', '\t':
			return ' '
		}
		return -1
	})
}

func withoutControls(s string, control func(rune) rune) string {
	return MapControls(s, func(string) string { return "" }, control)
}

// MapControls maps escape sequences by sequence, and other control characters by control, which
// returns -1 for those to drop.
func MapControls(s string, sequence func(string) string, control func(rune) rune) string {
	if !strings.ContainsFunc(s, IsControl) && utf8.ValidString(s) {
		return s
	}
	character := func(r rune) rune {
		if IsControl(r) {
			return control(r)
		}
		return r
	}
	var b strings.Builder
	done := 0
	for _, at := range escape().FindAllStringIndex(s, -1) {
		b.WriteString(strings.Map(character, s[done:at[0]]) + sequence(s[at[0]:at[1]]))
		done = at[1]
	}
	return b.String() + strings.Map(character, s[done:])
}

// IsControl reports whether r is a control character, or one that changes the direction of
// text and can make it look like other text.
func IsControl(r rune) bool {
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' ||
		r == '\u200e' || r == '\u200f' || r == '\u061c' || r == '\u2028' || r == '\u2029'
}

// escape is an escape sequence: a CSI sequence, or a string (OSC, DCS, APC, PM, SOS) up to its end or the end of the
// line, or two characters.
// https://ecma-international.org/publications-and-standards/standards/ecma-48/
var escape = lazyregexp.New(`(?:\x1b\[|\x{9b})[ -?]*[@-~]?` +
	`|(?:\x1b[\]P_^X]|\x{9d}|\x{90})(?:[^\x07\x1b\x{9c}\r\n]|\x1b+[^\\\x07\x1b\x{9c}\r\n])*\x1b*(?:\x07|\\|\x{9c})?` +
	`|\x1b[ -~]?`)

// escapeLength is the length of the escape sequence that s begins with; 0 for none.
func escapeLength(s string) int {
	if !strings.HasPrefix(s, "\x1b") {
		return 0
	}
	return escape().FindStringIndex(s)[1]
}

// CleanIndentedLine is a line with its indentation, without control characters.
func CleanIndentedLine(s string) string {
	return strings.TrimRight(strings.ReplaceAll(CleanText(s), "\n", " "), " ")
}
