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

// lineAboveFits reports whether what stands directly above entry i says as above a recorded one whose it is.
func (e *entries) lineAboveFits(i int, old *node) bool {
	c := ofEntry
	if positionIn(fixedLineKey(e.columns[i])) != "" {
		c = ofPosition
	}
	var words [][]string
	for k := range e.columns[i] {
		words = append(words, c.wordsAbove(len(e.columns), i, func(j int) *node { return e.columns[j][k] }))
	}
	return wordsFit(words, c.wordsAbove(len(e.old), slices.Index(e.old, old), func(j int) *node { return e.old[j] }))
}

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

// wordsAbove are the words of the comments directly above an entry of a list.
func (c care) wordsAbove(n, at int, entry func(int) *node) (out []string) {
	for ; at > 0 && at < n; at-- {
		above, first := entry(at-1), entry(at)
		for first.kind == items && len(first.children) > 0 {
			first = first.children[0]
		}
		isAbove := above.isLine() && first.span[0]-above.span[1] <= len("\r\n")
		if !isAbove || !above.isComment {
			return out
		}
		out = append(out, c.wordsOf(above.text)...)
	}
	return out
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
	for i := 0; c > ofField && i < len(n.children); i++ {
		out = append(out, c.wordsOn(n.children[i])...)
	}
	return out
}

// wordComment matches a comment of one word, which may say whose the lines below are.
var wordComment = lazyregexp.New(`^\s*(?:#|//|;)\s*[\pL\pN]\S*\s*$`)
