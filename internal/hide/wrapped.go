package hide

import (
	"slices"
	"strings"
)

// minWrapped is the length, in bytes, from which the word of a line may continue in the next line.
const minWrapped = 16

// findWrapped is find that also finds terms across the ends of lines: base64 is often written in lines of 64 or 76
// characters.
func (s *search) findWrapped(text string, skip func(string) bool, note func(*term)) []span {
	if len(s.byHead) == 0 {
		return nil
	}
	found := s.find(text, skip, note)
	joined, pieces := unwrapped(text)
	if len(pieces) == 0 {
		return found
	}
	for _, f := range s.find(joined, skip, note) {
		if f.to-f.from >= minRandom {
			found = append(found, span{pieces.placeOf(f.from), pieces.placeOf(f.to-1) + 1})
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	merged := found[:0]
	for _, f := range found {
		merged = appendSpan(merged, f)
	}
	return merged
}

// A piece is a stretch of a joined text.
type piece struct {
	at   int // where it begins in the joined text
	from int // where it begins in the original
}

// pieces are the pieces of a joined text, in the order of at. The first one is at 0.
type pieces []piece

// placeOf returns the place in the original of a byte of the joined text.
func (p pieces) placeOf(at int) int {
	i, found := slices.BinarySearchFunc(p, at, func(p piece, at int) int { return p.at - at })
	if !found {
		i-- // it is inside the piece before
	}
	return p[i].from + at - p[i].at
}

// unwrapped joins lines of one word each, without their indentation. from are the pieces of the joined text; there are
// none if no lines are joined.
func unwrapped(text string) (joined string, from pieces) {
	var out strings.Builder
	copied, wordEnd, mayGoOn := 0, 0, false
	take := func(to int) {
		from = append(from, piece{out.Len(), copied})
		out.WriteString(text[copied:to])
	}
	for start := 0; start < len(text); {
		line, _, _ := strings.Cut(text[start:], "\n")
		word := strings.TrimSpace(line)
		at := start + strings.Index(line, word)
		oneWord := word != "" && !strings.ContainsAny(word, " \t")
		if mayGoOn && oneWord {
			take(wordEnd)
			copied = at
		}
		mayGoOn, wordEnd = oneWord && len(word) >= minWrapped, at+len(word)
		start += len(line) + 1
	}
	if copied == 0 {
		return "", nil
	}
	take(len(text))
	return out.String(), from
}
