package hide

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"deployer/internal/lazyregexp"
)

// A search finds many terms in one pass: at each position it compares only the terms that begin with the bytes there.
// Its cost grows with the length of the searched text, not with the number of terms.
type search struct {
	byHead  map[string][]term // by their first bytes in lower case
	secrets map[string]*secret
}

// A secret is a text that is searched for.
type secret struct {
	text string
	sure bool // it is hidden also if it stands in plain sight
}

// A term is a spelling of a secret.
type term struct {
	text      string // in lower case unless inBase64
	inBase64  bool
	wholeWord bool // found only as a whole word
	of        *secret
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
	for _, p := range spellings(text) {
		if !p.inBase64 {
			p.text = lowered(p.text)
		}
		if p.of = of; !added[p] && len(p.text) >= headLength {
			added[p] = true
			head := lowered(p.text[:headLength])
			s.byHead[head] = append(s.byHead[head], p)
		}
	}
}

// lowered is a text with ASCII letters in lower case; no byte moves.
func lowered(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// An occurrence is a place in a text where a secret stands.
type occurrence struct {
	from, to int
	of       *secret
}

// find returns where terms stand in a text, except those that are shown. It finds them also across the ends of lines,
// because base64 is often written in lines of 64 or 76 characters.
func (s *search) find(text string, isShown func(occurrence, string) bool) []occurrence {
	if len(s.byHead) == 0 {
		return nil
	}
	found := s.findInLines(text, isShown)
	if strings.Contains(text, "\n") {
		whole, places := unwrapped(text)
		for _, m := range s.findInLines(whole, isShown) {
			found = append(found, occurrence{places[m.from], places[m.to-1] + 1, m.of})
		}
	}
	return found
}

func (s *search) findInLines(text string, isShown func(occurrence, string) bool) []occurrence {
	lower := lowered(text)
	var out []occurrence
	for i := 0; i+headLength <= len(text); i++ {
		for _, p := range s.byHead[lower[i:i+headLength]] {
			m := occurrence{i, i + len(p.text), p.of}
			if p.isAt(text, lower, i) && !isShown(m, text) {
				if p.inBase64 {
					m = m.widened(text)
				}
				out = append(out, m)
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
func (p term) isAt(text, lower string, i int) bool {
	in := lower
	if p.inBase64 {
		in = text
	}
	return strings.HasPrefix(in[i:], p.text) && (!p.wholeWord || alone(text, i, i+len(p.text)))
}

// widened extends a match of base64 on both sides by the characters that may contain bits of the term (of base64 in base64,
// these are three), and by padding.
func (m occurrence) widened(text string) occurrence {
	for n := 0; n < 3 && m.from > 0 && inBase64(text[m.from-1]); n++ {
		m.from--
	}
	for n := 0; n < 3 && m.to < len(text) && inBase64(text[m.to]); n++ {
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

// lineEnd matches the end of a line with the indentation of the next one.
var lineEnd = lazyregexp.New(`\s*\n\s*`)

// unwrapped joins the lines of a text, and returns where each byte stood in it.
func unwrapped(text string) (string, []int) {
	var out strings.Builder
	var places []int
	start := 0
	for _, end := range append(lineEnd().FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		out.WriteString(text[start:end[0]])
		for ; start < end[0]; start++ {
			places = append(places, start)
		}
		start = end[1]
	}
	return out.String(), places
}
