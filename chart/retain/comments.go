package retain

import (
	"slices"
	"strings"

	"deployer/internal/lazyregexp"
)

// A care says which words of a comment may say whose an entry is.
type care int

const (
	ofField    care = iota // what says of whom something is
	ofEntry                // that, also in the entry, and a single word
	ofPosition             // all
)

// wordsFit reports whether recorded words of comments are those that are the same in all versions.
func wordsFit(versions [][]string, old []string) bool {
	isOther := func(v []string) bool { return !slices.Equal(v, versions[0]) }
	if !slices.ContainsFunc(versions[1:], isOther) {
		return slices.Equal(versions[0], old)
	}
	for i, word := range versions[0] {
		isFixed := !slices.ContainsFunc(versions, func(v []string) bool { return i >= len(v) || v[i] != word })
		if isFixed && (i >= len(old) || old[i] != word) {
			return false
		}
	}
	return true
}

var (
	// lineComment matches a line that is a comment, and longComment one that goes on until longCommentEnds matches.
	lineComment     = lazyregexp.New(`^\s*(?:#(?:[^!]|$)|//|;|--(?:\s|$)|<!--|/\*)`)
	longComment     = lazyregexp.New(`^\s*(?:<!--|/\*)`)
	longCommentEnds = lazyregexp.New(`(?:-->|\*/)`)
	// versionWord matches a word of a version, a date or a time.
	versionWord = lazyregexp.New(`^(?:v?\d+|\d+T\d+|\d+Z)$`)
	// whose matches a word of a comment that says whose something is.
	whose = lazyregexp.New(`(?i)\b(?:of|for|belongs?|password|credentials?|(?:user|account|owner|login|member|customer|tenant|client|admin|e?mail|role|name)(?:name)?s?)\b|['’]s\b`)
	// datesInText matches dates and times, also as date prints them.
	datesInText = lazyregexp.New(timePattern + `|\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:` + month + ` {1,2}\d{1,2}|\d{1,2} ` + month + `)\b(?: \d\d:\d\d:\d\d(?: [A-Z]{3,4})?)?`)
)

const month = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*`

// wordsOf are the words of a comment that may say whose what is below it is, without versions and dates.
func (c care) wordsOf(text string) []string {
	words := strings.FieldsFunc(datesInText().ReplaceAllString(text, ""), isNotWord)
	if len(words) > 1 && c < ofPosition && !whose().MatchString(text) {
		return nil
	}
	return slices.DeleteFunc(words, versionWord().MatchString)
}

// sameComments reports whether versions of a field of a text have the words that were recorded in the comments on it. An entry, which
// may be another one, must also have those of what is below it, and none that are new.
func (c care) sameComments(versions []*node, old *node) bool {
	return old == nil || slices.Contains(versions, nil) || c == ofField && len(c.wordsOn(old)) == 0 || wordsFit(mapped(versions, c.wordsOn), c.wordsOn(old))
}

// wordsOn are the words of the comments on a field, and of an entry on what is below it. A word behind a field that isn't an entry is an
// option.
func (c care) wordsOn(n *node) (out []string) {
	if words := c.wordsOf(n.behind); c > ofField || len(words) > 1 {
		out = words
	}
	for line := range strings.Lines(n.comment) {
		out = append(out, c.wordsOf(line)...)
	}
	if c > ofField && n.header() == nil {
		for _, child := range n.children {
			out = append(out, c.wordsOn(child)...)
		}
	}
	return out
}
