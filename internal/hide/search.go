package hide

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A search finds many terms in one pass. At each position it compares a hash of a few bytes,
// and the whole text only if that matches. Its cost grows with the length of the searched text,
// not with the number of terms.
type search struct {
	filter  [1 << 10]uint64 // bit set of the hashed heads of all terms
	byHead  map[uint32][]*term
	secrets map[string]*secret
}

func newSearch() search { return search{byHead: map[uint32][]*term{}, secrets: map[string]*secret{}} }

// A secret is a text that is searched for.
type secret struct {
	text string // empty for binary data
	sure bool   // it is hidden also if it stands in plain sight
}

// A term is a spelling of a secret.
type term struct {
	text          string // in lower case unless caseSensitive
	caseSensitive bool
	wholeWord     bool // found only as a whole word
	widen         int  // how many adjacent characters of base64 may belong to it
	of            *secret
}

// headLength is the length, in bytes, of the head of a term, by which it is found.
const headLength = 4

// add adds all spellings of a text.
func (s *search) add(text string, sure bool) {
	if known := s.secrets[text]; known != nil {
		known.sure = known.sure || sure
		return
	}
	of := &secret{text, sure}
	s.secrets[text] = of
	added := map[term]bool{}
	for _, p := range spellings(text, term{of: of, wholeWord: len(text) < minSearched || !hasLetter(text)}) {
		if p.of = of; !added[p] {
			added[p] = true
			s.addTerm(p)
		}
	}
}

// addTerm adds one spelling; one that is shorter than headLength is ignored.
func (s *search) addTerm(p term) {
	if !p.caseSensitive {
		p.text = lowered(p.text)
	}
	if len(p.text) < headLength {
		return
	}
	head := headOf(lowered(p.text[:headLength]), 0)
	i := slot(head)
	s.filter[i>>6] |= 1 << (i & 63)
	list := s.byHead[head]
	at, _ := slices.BinarySearchFunc(list, &p, func(a, b *term) int { return len(b.text) - len(a.text) }) // longest first
	s.byHead[head] = slices.Insert(list, at, &p)
}

func headOf(lower string, at int) uint32 {
	return uint32(lower[at]) | uint32(lower[at+1])<<8 | uint32(lower[at+2])<<16 | uint32(lower[at+3])<<24
}

func slot(head uint32) uint32 { return (head * 2654435761) >> 16 }

// lowered is a text with ASCII letters in lower case; no byte moves.
func lowered(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return 'A' <= r && r <= 'Z' }) {
		return text
	}
	out := []byte(text)
	for i, b := range out {
		if 'A' <= b && b <= 'Z' {
			out[i] += 'a' - 'A'
		}
	}
	return string(out)
}

// A span is a place in a text.
type span struct{ from, to int }

// A shownFunc reports whether a secret that was found at a place stays.
type shownFunc func(s *secret, in string, at span) bool

// find returns the places of terms in a text, in order and without overlaps, except those that are shown. note, which may be nil, is
// called for each secret that is found.
func (s *search) find(text string, isShown shownFunc, note func(*secret)) []span {
	if len(s.byHead) == 0 || len(text) < headLength {
		return nil
	}
	lower := lowered(text)
	var out []span
	for i := 0; i+headLength <= len(text); i++ {
		head := headOf(lower, i)
		if n := slot(head); s.filter[n>>6]&(1<<(n&63)) == 0 {
			continue
		}
		for _, p := range s.byHead[head] {
			at := span{i, i + len(p.text)}
			if !p.isAt(text, lower, i) || isShown(p.of, text, at) {
				continue
			}
			if note != nil {
				note(p.of)
			}
			out = appendSpan(out, widened(text, at, p.widen))
			break
		}
	}
	return out
}

// appendSpan adds a span to others that are in order, and joins it with those that it touches.
func appendSpan(to []span, s span) []span {
	for n := len(to); n > 0 && s.from <= to[n-1].to; n-- {
		s = span{min(s.from, to[n-1].from), max(s.to, to[n-1].to)}
		to = to[:n-1]
	}
	return append(to, s)
}

// isAt reports whether a term stands at a place; lower is the text in lower case.
func (p *term) isAt(text, lower string, i int) bool {
	in := lower
	if p.caseSensitive {
		in = text
	}
	return strings.HasPrefix(in[i:], p.text) && (!p.wholeWord || alone(text, i, i+len(p.text)))
}

// widened extends a span of base64 on both sides by adjacent characters, because they may contain
// bits of the term, and by padding. It adds at most limit characters on each side; if that is 0, nothing.
func widened(text string, s span, limit int) span {
	if limit == 0 {
		return s
	}
	for n := 0; n < limit && s.from > 0 && inBase64(text[s.from-1]); n++ {
		s.from--
	}
	for n := 0; n < limit && s.to < len(text) && inBase64(text[s.to]); n++ {
		s.to++
	}
	for n := 0; n < 2 && s.to < len(text) && text[s.to] == '='; n++ {
		s.to++
	}
	return s
}

func inBase64(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("+/-_", b) >= 0
}

// alone reports whether the text between two places is a whole word.
func alone(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !inWord(before) && !inWord(after)
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// findWrapped is find that also finds terms across the ends of lines: base64 is often written in lines of 64 or 76
// characters.
func (s *search) findWrapped(text string, isShown shownFunc, note func(*secret)) []span {
	found := s.find(text, isShown, note)
	if len(s.byHead) == 0 || !strings.Contains(text, "\n") {
		return found
	}
	joined, places := unwrapped(text)
	for _, f := range s.find(joined, isShown, note) {
		if f.to-f.from >= minSearched {
			found = append(found, span{int(places[f.from]), int(places[f.to-1]) + 1})
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	merged := found[:0]
	for _, f := range found {
		merged = appendSpan(merged, f)
	}
	return merged
}

// minWrapped is the length, in bytes, from which the word of a line may continue in the next line.
const minWrapped = 16

// unwrapped joins lines of one word each, without their indentation, and returns where each byte stood in the text; nothing if no
// lines are joined.
func unwrapped(text string) (string, []int32) {
	var out []byte
	var places []int32
	mayGoOn, joins := false, false
	for start := 0; start < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		word := strings.TrimSpace(text[start:end])
		oneWord := word != "" && !strings.ContainsAny(word, " \t")
		if mayGoOn && oneWord {
			joins = true
			out = bytes.TrimRightFunc(out, unicode.IsSpace)
			places = places[:len(out)]
			start += strings.Index(text[start:], word)
		}
		for ; start < end; start++ {
			out, places = append(out, text[start]), append(places, int32(start))
		}
		mayGoOn = oneWord && len(word) >= minWrapped
	}
	if !joins {
		return "", nil
	}
	return string(out), places
}
