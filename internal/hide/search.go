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

// An occurrence is a place in a text where a secret stands.
type occurrence struct {
	from, to int
	of       *secret
}

// find returns where terms stand in a text, except those that are shown.
func (s *search) find(text string, isShown func(occurrence, string) bool) []occurrence {
	if len(s.byHead) == 0 || len(text) < headLength {
		return nil
	}
	lower := lowered(text)
	var out []occurrence
	for i := 0; i+headLength <= len(text); i++ {
		head := headOf(lower, i)
		if n := slot(head); s.filter[n>>6]&(1<<(n&63)) == 0 {
			continue
		}
		for _, p := range s.byHead[head] {
			m := occurrence{i, i + len(p.text), p.of}
			if p.isAt(text, lower, i) && !isShown(m, text) {
				out = append(out, m.widened(text, p.widen))
				break
			}
		}
	}
	return out
}

// joined returns matches in order, those that touch each other as one.
func joined(found []occurrence) []occurrence {
	slices.SortFunc(found, func(a, b occurrence) int { return a.from - b.from })
	out := found[:0]
	for _, m := range found {
		if last := len(out) - 1; last >= 0 && m.from <= out[last].to {
			out[last].to = max(out[last].to, m.to)
		} else {
			out = append(out, m)
		}
	}
	return out
}

// isAt reports whether a term stands at a place; lower is the text in lower case.
func (p *term) isAt(text, lower string, i int) bool {
	in := lower
	if p.caseSensitive {
		in = text
	}
	return strings.HasPrefix(in[i:], p.text) && (!p.wholeWord || alone(text, i, i+len(p.text)))
}

// widened extends a match of base64 on both sides by adjacent characters, because they may contain
// bits of the term, and by padding. It adds at most limit characters on each side; if that is 0, nothing.
func (m occurrence) widened(text string, limit int) occurrence {
	if limit == 0 {
		return m
	}
	for n := 0; n < limit && m.from > 0 && inBase64(text[m.from-1]); n++ {
		m.from--
	}
	for n := 0; n < limit && m.to < len(text) && inBase64(text[m.to]); n++ {
		m.to++
	}
	for n := 0; n < 2 && m.to < len(text) && text[m.to] == '='; n++ {
		m.to++
	}
	return m
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
func (s *search) findWrapped(text string, isShown func(occurrence, string) bool) []occurrence {
	found := s.find(text, isShown)
	if len(s.byHead) == 0 || !strings.Contains(text, "\n") {
		return found
	}
	lines, places := unwrapped(text)
	for _, m := range s.find(lines, isShown) {
		if m.to-m.from >= minSearched {
			found = append(found, occurrence{int(places[m.from]), int(places[m.to-1]) + 1, m.of})
		}
	}
	return found
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
