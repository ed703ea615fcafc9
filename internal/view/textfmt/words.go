package textfmt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"deployer/internal/lazyregexp"
)

// Count writes a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "sh") {
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// List joins words as in a sentence.
func List(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Quoted puts words in quotes.
func Quoted(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strconv.Quote(w)
	}
	return out
}

// Capitalized begins a sentence.
func Capitalized(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + s[size:]
}

// Duration writes a duration the way people say it: 9s, 1m12s.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// WithNotes adds to a text the notes that aren't empty, in parentheses.
func WithNotes(text string, notes ...string) string {
	notes = slices.DeleteFunc(slices.Clone(notes), func(note string) bool { return note == "" })
	if len(notes) == 0 {
		return text
	}
	return text + " (" + strings.Join(notes, ", ") + ")"
}

// AndMore is what follows the first of many names when n aren't named; empty when all are.
func AndMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// FirstLine is a text up to its first line end.
func FirstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

// First names the first of many things, and says how many more there are.
func First(names []string, limit int) string {
	limit = min(limit, len(names))
	return strings.Join(names[:limit], ", ") + AndMore(len(names)-limit)
}

// plainWord is a word that means itself in a shell.
var plainWord = lazyregexp.New(`^[\w./:@,+=%-]+$`)

// ShellWord makes text safe to paste into a shell.
func ShellWord(s string) string { return ShellQuoted(CleanLine(s)) }

// ShellQuoted is a word as it is written for a shell, which is to take it as it is.
func ShellQuoted(word string) string {
	if plainWord().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
