package hide

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A search finds many terms in one pass. At each position it compares a hash of a few bytes,
// and the whole text only if that matches. Its cost grows with the length of the searched text,
// not with the number of terms. The zero value has no terms.
type search struct {
	filter [1 << 10]uint64 // bit set of the hashed heads of all terms
	byHead map[uint32][]*term
	known  map[term]bool    // terms that were added, with widen 0
	origin map[*term]string // the text that each term is a spelling of; nil unless NewTextsWithOrigins has made it
}

// A term is a text that is searched for.
type term struct {
	text          string // in lower case unless caseSensitive
	caseSensitive bool
	wholeWord     bool // found only as a whole word
	widen         int  // how many adjacent characters of base64 may belong to it
}

// headLength is the length, in bytes, of the head of a term, by which it is found.
const headLength = 4

// add adds a term, which is a spelling of origin. Terms shorter than headLength are ignored.
func (s *search) add(p term, origin string) {
	if !p.caseSensitive {
		p.text = lowered(p.text)
	}
	key := p
	key.widen = 0
	if len(p.text) < headLength || s.known[key] {
		return
	}
	insert(&s.known, key)
	if s.origin != nil {
		s.origin[&p] = origin
	}
	head := headOf(lowered(p.text[:headLength]), 0)
	i := slot(head)
	s.filter[i>>6] |= 1 << (i & 63)
	list := s.byHead[head]
	at, _ := slices.BinarySearchFunc(list, &p, func(a, b *term) int { return len(b.text) - len(a.text) }) // longest first
	if s.byHead == nil {
		s.byHead = map[uint32][]*term{}
	}
	s.byHead[head] = slices.Insert(list, at, &p)
}

func headOf(lower string, at int) uint32 {
	return uint32(lower[at]) | uint32(lower[at+1])<<8 | uint32(lower[at+2])<<16 | uint32(lower[at+3])<<24
}

func slot(head uint32) uint32 { return (head * 2654435761) >> 16 }

// lowered is a text with ASCII letters in lower case; no byte moves.
func lowered(text string) string {
	for i := range len(text) {
		if 'A' <= text[i] && text[i] <= 'Z' {
			out := []byte(text)
			for j := i; j < len(out); j++ {
				if 'A' <= out[j] && out[j] <= 'Z' {
					out[j] += 'a' - 'A'
				}
			}
			return string(out)
		}
	}
	return text
}

// A span is a place in a text.
type span struct{ from, to int }

// find returns the places of terms in a text, in order and without overlaps. It passes over
// terms for whose text skip returns true. note is called for each term that is found; it may
// be nil.
func (s *search) find(text string, skip func(string) bool, note func(*term)) []span {
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
			if !p.isAt(text, lower, i) || skip(p.text) {
				continue
			}
			if note != nil {
				note(p)
			}
			found := span{i, i + len(p.text)}
			if p.widen > 0 {
				found = widened(text, found, p.widen)
			}
			out = appendSpan(out, found)
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
// bits of the term, and by padding. It adds at most limit characters on each side.
func widened(text string, s span, limit int) span {
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
