package hide

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A search finds many texts in one pass: at each position it compares only those that begin with the bytes there.
// Its cost grows with the length of the searched text, not with their number.
type search struct {
	byHead   map[uint32][]term // by their first headLength bytes
	filter   [1 << 10]uint64   // a bit for each head's hash, which is quicker to look at
	secrets  map[string]*secret
	shortest int // length of the shortest term
}

// A secret is a text that is searched for.
type secret struct {
	text      string
	sure      bool // it is hidden also if it stands in plain sight
	wholeWord bool // it is found only as a whole word, because numbers occur in others by chance
}

// A term is a form of a secret, in lower case.
type term struct {
	text string
	of   *secret
}

const headLength = 4

// maxDecoded is how often a text is decoded: a Secret has base64 of base64, which may be written in lines.
const maxDecoded = 3

// add adds a text, and the forms of it that decoding doesn't lead back to it.
func (s *search) add(text string, sure bool) {
	if known := s.secrets[text]; known != nil {
		known.sure = known.sure || sure
		return
	}
	of := &secret{text, sure, len(text) < minSearched || len(text) < 2*minSearched && strings.Trim(text, "-.0123456789") == ""}
	s.secrets[text] = of
	forms := append(scientific(text), text,
		strings.ReplaceAll(text, " ", "+"),           // in the query of a URL
		strings.ToUpper(text), strings.ToLower(text)) // letters beyond ASCII, and bytes that aren't letters: �
	for i := range forms {
		forms[i] = lowered(forms[i])
	}
	slices.Sort(forms)
	for _, form := range slices.Compact(forms) {
		if len(form) < headLength {
			continue
		}
		head := headOf(form, 0)
		s.byHead[head] = append(s.byHead[head], term{form, of})
		s.filter[slot(head)>>6] |= 1 << (slot(head) & 63)
		if s.shortest == 0 || len(form) < s.shortest {
			s.shortest = len(form)
		}
	}
}

func headOf(text string, at int) uint32 {
	return binary.LittleEndian.Uint32([]byte(text[at : at+headLength]))
}

func slot(head uint32) uint32 { return head * 2654435761 >> 16 }

// scientific returns the scientific notations of a number: 1e+06, as templates print it, and 1×10⁶, as errors of JSON schemas do.
func scientific(text string) []string {
	value, err := strconv.ParseFloat(text, 64)
	short := strconv.FormatFloat(value, 'e', -1, 64)
	mantissa, exponent, isLarge := strings.Cut(short, "e+")
	if err != nil || !isLarge {
		return nil
	}
	return []string{short, mantissa + "×10" + superscript.Replace(exponent)}
}

var superscript = strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

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

// find returns where secrets stand in a text, and in what is left of it when it is decoded, except those that are shown there.
func (s *search) find(text string, isShown func(occurrence, string) bool) []occurrence {
	if len(s.byHead) == 0 {
		return nil
	}
	var out []occurrence
	seen := map[string]bool{"": true}
	views := []view{{text: text}}
	for n := 0; n <= maxDecoded; n++ {
		var decoded []view
		for _, v := range views {
			if seen[v.text] {
				continue
			}
			seen[v.text] = true
			out = s.appendIn(out, v, isShown)
			if n < maxDecoded {
				decoded = append(decoded, v.decoded(s.shortest)...)
			}
		}
		views = decoded
	}
	return out
}

// appendIn appends the occurrences in one view. What isn't encoded is the same in the original, with more around it.
func (s *search) appendIn(out []occurrence, v view, isShown func(occurrence, string) bool) []occurrence {
	lower := lowered(v.text)
	for i := 0; i+headLength <= len(lower); i++ {
		head := headOf(lower, i)
		if s.filter[slot(head)>>6]&(1<<(slot(head)&63)) == 0 {
			continue
		}
		for _, p := range s.byHead[head] {
			end := i + len(p.text)
			if !strings.HasPrefix(lower[i:], p.text) || p.of.wholeWord && !v.inDigits && !alone(v.text, i, end) || isShown(occurrence{i, end, p.of}, v.text) {
				continue
			}
			if from, to := v.inOriginal(i, end); v.from == nil || to-from > len(p.text) {
				out = append(out, occurrence{from, to, p.of})
			}
		}
	}
	return out
}

// joined returns occurrences in order, those that touch each other as one.
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

// alone reports whether the text between two places is a whole word.
func alone(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !inWord(before) && !inWord(after)
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
