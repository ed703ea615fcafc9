package retain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"deployer/internal/lazyregexp"
	"deployer/internal/lcs"
)

// timePattern matches times as Go prints them, and in RFC 3339.
const timePattern = `\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?[+-]\d\d:?\d\d|Z)?(?: [A-Z]{3,4})?(?: m=[+-][\d.]+)?`

// uuidPattern matches UUIDs. Their short words are often the same by chance.
const uuidPattern = `\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`

var (
	times  = lazyregexp.New("^" + timePattern + "$")
	digits = lazyregexp.New(`^\d+$`)
	pieces = lazyregexp.New(`[\pL\pN]+|(?s:.)`)
	uuids  = lazyregexp.New("^" + uuidPattern + "$")
	// runs matches what may be one piece with its punctuation: times, UUIDs, hashes of bcrypt, and base64.
	runs = lazyregexp.New("(?:" + timePattern + ")|" + uuidPattern + `|\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}|[A-Za-z0-9+/]{16,}={0,2}`)
)

// piecesOf cuts a line into words and single other characters. Each run, which is given by its beginning
// and end, stays in one piece.
func piecesOf(text string, runs [][]int) []string {
	var out []string
	at := 0
	for _, r := range runs {
		out = append(out, pieces().FindAllString(text[at:r[0]], -1)...)
		out = append(out, text[r[0]:r[1]])
		at = r[1]
	}
	return append(out, pieces().FindAllString(text[at:], -1)...)
}

// randomBase64 finds runs of base64 that are generated as a whole, including their
// punctuation. A run in which words repeat between renderings isn't one. Text in base64
// is always one.
func randomBase64(texts []string) [][][]int {
	var all [][][]int
	for _, s := range texts {
		all = append(all, runs().FindAllStringIndex(s, -1))
	}
	out := make([][][]int, len(all))
	for k := range all[0] {
		seen := map[string]bool{}
		ok, punctuated, encoded := true, false, true
		for i := range all {
			if len(all[i]) != len(all[0]) {
				return make([][][]int, len(all))
			}
			run := texts[i][all[i][k][0]:all[i][k][1]]
			ok = ok && len(run)%4 == 0
			encoded = encoded && isWhole(run)
			punctuated = punctuated || strings.ContainsAny(run, "+/=")
			for _, word := range strings.FieldsFunc(run, isNotWord) {
				ok = ok && (len(word) < 3 || !seen[word])
				seen[word] = true
			}
		}
		if !encoded && (!ok || !punctuated) {
			continue
		}
		for i := range all {
			out[i] = append(out[i], all[i][k])
		}
	}
	return out
}

// A segment is a piece of a line.
type segment struct {
	node         *node
	versions     []string // in each rendering; nil for text that is fixed
	isGenerated  bool
	isPartOfWord bool // the rest of its word is the same in all renderings, as far as they show
}

// segmentsOfLine splits the versions of a scalar; nil for one that isn't a line of text.
func segmentsOfLine(versions []*node) segments {
	isNoLine := func(n *node) bool { return n.tag != "" && n.tag != "!!str" || n.isPEM() || !utf8.ValidString(n.text) }
	if slices.ContainsFunc(versions, isNoLine) {
		return nil
	}
	n, last := versions[0], versions[len(versions)-1] // each rendering has its version beside those of the others
	if n.splitWith != last {
		n.split, n.splitWith = segmentsOf(textsOf(versions)), last
	}
	return n.split
}

// segmentsOf splits a line into fixed segments and segments that differ between renderings.
func segmentsOf(texts []string) segments {
	runs := randomBase64(texts)
	a := piecesOf(texts[0], runs[0])
	fixed := slices.Repeat([]bool{true}, len(a))
	var others [][]string
	var pairs [][]int
	for i, s := range texts[1:] {
		other := piecesOf(s, runs[i+1])
		pair := lcs.Pairs(len(a), len(other), maxComparisons, func(i, j int) bool { return a[i] == other[j] })
		if slices.Equal(shapeOf(a), shapeOf(other)) {
			// By position: in 14:06:13 and 03:13:16, both have the word 13 by chance.
			pair = samePlaces(a, other)
		}
		for j := range a {
			fixed[j] = fixed[j] && pair[j] >= 0
		}
		others, pairs = append(others, other), append(pairs, pair)
	}
	var out segments
	for at := 0; at < len(a); {
		if fixed[at] {
			out.addFixed(a[at])
			at++
			continue
		}
		end := at + 1
		for next := end; next < len(a) && (!fixed[next] || isPunctuation(a[next])); next++ {
			if !fixed[next] {
				end = next + 1
			}
		}
		out.addRegion(append([][]string{a[at:end]}, counterparts(others, pairs, at, end)...))
		at = end
	}
	return out
}

func isPunctuation(s string) bool { return !strings.ContainsFunc(s, isWord) }

// counterparts returns what each repeated rendering has between the same neighbours as the pieces in a range.
func counterparts(others [][]string, pairs [][]int, from, to int) [][]string {
	var out [][]string
	for i, other := range others {
		begin, end := 0, len(other)
		if from > 0 {
			begin = pairs[i][from-1] + 1
		}
		if to < len(pairs[i]) {
			end = pairs[i][to]
		}
		out = append(out, other[begin:max(begin, end)])
	}
	return out
}

type segments []segment

// addFixed adds fixed text.
func (l *segments) addFixed(text string) {
	if n := len(*l); n > 0 && !(*l)[n-1].isGenerated {
		(*l)[n-1].node.text += text
		return
	}
	*l = append(*l, segment{node: &node{text: text, opened: true}})
}

// addRegion adds a stretch that differs between renderings. If its punctuation is the same in all
// of them, the punctuation is fixed, and each word is a generated segment. Otherwise the whole
// stretch is one generated segment.
func (l *segments) addRegion(versions [][]string) {
	words := versions[0]
	shape := shapeOf(words)
	if len(words) == 1 || isOneWord(versions) || slices.ContainsFunc(versions, func(other []string) bool { return !slices.Equal(shape, shapeOf(other)) }) {
		var whole []string
		for _, v := range versions {
			whole = append(whole, strings.Join(v, ""))
		}
		l.addGenerated(whole)
		return
	}
	for i, word := range words {
		if shape[i] != "" {
			l.addFixed(word)
			continue
		}
		var texts []string
		for _, v := range versions {
			texts = append(texts, v[i])
		}
		l.addGenerated(texts)
	}
}

// isOneWord reports whether a stretch has the same length in all renderings and the words in it haven't, as where a random text has
// punctuation in it by chance.
func isOneWord(versions [][]string) bool {
	length := func(words []string) int { return len(strings.Join(words, "")) }
	isMoved := func(other []string) bool {
		return !slices.EqualFunc(versions[0], other, func(a, b string) bool { return len(a) == len(b) })
	}
	isOther := func(other []string) bool { return length(other) != length(versions[0]) }
	return slices.ContainsFunc(versions, isMoved) && !slices.ContainsFunc(versions, isOther)
}

// minAffix is how many characters at the start or end of a generated word must be the same in
// all renderings to count as fixed text; fewer may be equal by chance. Where it decides, one more rendering tells: see
// Renderer.Decide.
const minAffix = 3

// addGenerated adds a generated segment, and the fixed text at its start and end.
func (l *segments) addGenerated(texts []string) {
	text := texts[0]
	front, back := len(text), len(text)
	encoded := true
	for _, other := range texts {
		encoded = encoded && (isWhole(other) || digits().MatchString(other))
	}
	for _, other := range texts[1:] {
		n := 0
		for n < len(other) && n < front && other[n] == text[n] {
			n++
		}
		front = n
		n = 0
		for n < len(other)-front && n < back && n < len(text)-front && other[len(other)-1-n] == text[len(text)-1-n] {
			n++
		}
		back = n
	}
	if front < minAffix || encoded || !utf8.ValidString(text[:front]) {
		front = 0
	}
	if back < minAffix || encoded || back > len(text)-front-1 || !utf8.ValidString(text[len(text)-back:]) {
		back = 0
	}
	if front > 0 {
		l.addFixed(text[:front])
	}
	var inner []string
	for _, s := range texts {
		from := min(front, len(s))
		inner = append(inner, s[from:max(from, len(s)-back)])
	}
	*l = append(*l, segment{node: &node{text: inner[0]}, versions: inner, isGenerated: true, isPartOfWord: front+back > 0})
	if back > 0 {
		l.addFixed(text[len(text)-back:])
	}
}

// isWhole reports whether a text has no parts of its own in a line: base64 of text, a salted hash, a time, or a UUID.
func isWhole(text string) bool {
	l := (&node{text: text}).open()
	return l != nil && l.format == inBase64 || bcrypted().MatchString(text) || times().MatchString(text) || uuids().MatchString(text)
}

// shapeOf returns the punctuation among pieces, with empty texts in place of words.
func shapeOf(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		if isPunctuation(word) {
			out[i] = word
		}
	}
	return out
}

// samePlaces pairs the pieces of a with equal ones in the same places of b.
func samePlaces(a, b []string) []int {
	out := slices.Repeat([]int{-1}, len(a))
	for i := range a {
		if a[i] == b[i] {
			out[i] = i
		}
	}
	return out
}

// maxComparisons bounds the work of comparing two lines: the product of their lengths.
const maxComparisons = 1_000_000

// hasWords reports whether there is a word in the fixed segments.
func (l segments) hasWords() bool {
	return slices.ContainsFunc(l, func(s segment) bool { return !s.isGenerated && strings.ContainsFunc(s.node.text, isWord) })
}

// match returns the texts that a recorded line has in place of the generated segments; nil if the fixed text differs.
func (l segments) match(text string) []string {
	rest := text
	for _, s := range l {
		_, behind, found := strings.Cut(rest, s.node.text)
		if !s.isGenerated && !found {
			return nil // which is found out faster
		}
		if !s.isGenerated {
			rest = behind
		}
	}
	pattern := ""
	for _, s := range l {
		if s.isGenerated {
			pattern += s.pattern()
		} else {
			pattern += regexp.QuoteMeta(s.node.text)
		}
	}
	m := regexp.MustCompile(`^(?s:` + pattern + `)$`).FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	texts := m[1:]
	for i, s := range l {
		if !s.isGenerated {
			continue
		}
		// Beside another generated segment, nothing tells where a text of several words ends.
		if len(m) > 2 && !strings.ContainsFunc(s.node.text, isNotWord) && strings.ContainsFunc(texts[0], isNotWord) && l.touchesAnotherGenerated(i) {
			return nil
		}
		texts = texts[1:]
	}
	return m[1:]
}

// pattern is a regular expression for another value of a generated segment. If it consists of letters and digits, so does the
// other one: it must not contain what belongs to another entry.
func (s segment) pattern() string {
	consistsOf := func(other string) bool {
		return !slices.ContainsFunc(s.versions, func(text string) bool {
			return strings.ContainsFunc(text, func(r rune) bool { return isNotWord(r) && !strings.ContainsRune(other, r) })
		})
	}
	switch {
	case consistsOf("") && s.mayBeBase64():
		return fmt.Sprintf(`([\pL\pN]+?|[A-Za-z0-9+/_-]{%d})`, len(s.versions[0])) // by chance, none of these has punctuation
	case consistsOf(""):
		return `([\pL\pN]+?)`
	case consistsOf("+/=.$-_"):
		return `([\pL\pN+/=.$_-]+?)`
	}
	return "(.+?)"
}

// mayBeBase64 reports whether a generated segment has the length of bytes in base64 in all renderings.
func (s segment) mayBeBase64() bool {
	const shortest, longest = 16, 1000 // the longest that regular expressions count
	n := len(s.versions[0])
	return n >= shortest && n <= longest && n%4 == 0 && !slices.ContainsFunc(s.versions, func(text string) bool { return len(text) != n })
}

// touchesAnotherGenerated reports whether only punctuation is between the generated segment at a place and
// another one.
func (l segments) touchesAnotherGenerated(at int) bool {
	wordless := func(i int) bool { return !strings.ContainsFunc(l[i].node.text, isWord) }
	return at >= 2 && wordless(at-1) || at+2 < len(l) && wordless(at+1)
}

func isWord(r rune) bool    { return unicode.IsLetter(r) || unicode.IsDigit(r) }
func isNotWord(r rune) bool { return !isWord(r) }
