// Package textfmt makes text fit to be shown: free of control characters, wrapped,
// padded, escaped for Markdown and shells, in the words of a sentence.
package textfmt

import (
	"strings"
	"unicode"
	"unicode/utf8"
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
	var b strings.Builder
	for i := 0; i < len(s); {
		if n := EscapeLength(s[i:]); n > 0 {
			b.WriteString(sequence(s[i : i+n]))
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if IsControl(r) {
			if r = control(r); r < 0 {
				continue
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// IsControl reports whether r is a control character, or one that changes the direction of
// text and can make it look like other text.
func IsControl(r rune) bool {
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' ||
		r == '\u200e' || r == '\u200f' || r == '\u061c' || r == '\u2028' || r == '\u2029'
}

// EscapeLength returns the length of the escape sequence that s begins with, 0 for
// none: CSI sequences, and strings (OSC, DCS, APC, PM, SOS) up to their end.
// https://ecma-international.org/publications-and-standards/standards/ecma-48/
func EscapeLength(s string) int {
	start := 0
	var kind byte
	switch {
	case len(s) >= 2 && s[0] == 0x1b:
		start, kind = 2, s[1]
	case strings.HasPrefix(s, "\u009b"):
		start, kind = 2, '['
	case strings.HasPrefix(s, "\u009d"), strings.HasPrefix(s, "\u0090"):
		start, kind = 2, ']'
	default:
		return 0
	}
	switch kind {
	case '[':
		for i := start; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case ']', 'P', '_', '^', 'X':
		return start + stringEnd(s[start:])
	}
	if kind < 0x20 || kind > 0x7e {
		return 1
	}
	return start
}

// stringEnd finds where a control string ends: after BEL or ST, or before the
// end of the line when neither comes.
func stringEnd(s string) int {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case strings.HasPrefix(s[i:], "\u009c"):
			return i + 2
		case s[i] == '\n' || s[i] == '\r':
			return i
		}
	}
	return len(s)
}

// CleanIndentedLine is a line with its indentation, without control characters.
func CleanIndentedLine(s string) string {
	return strings.TrimRight(strings.ReplaceAll(CleanText(s), "\n", " "), " ")
}
