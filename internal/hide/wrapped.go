package hide

import (
	"slices"
	"strings"
)

// leastWrapped is the length, in bytes, from which a line of one word may go on in the next line.
const leastWrapped = 16

// findWrapped is find, also over the ends of lines: base64 is often written in lines of 64 or 76 characters.
func (s *search) findWrapped(text string, skip func(string) bool, note func(*part)) []span {
	found := s.find(text, skip, note)
	joined, places := unwrapped(text)
	if places == nil {
		return found
	}
	for _, f := range s.find(joined, skip, note) {
		if f.to-f.from >= leastRandom {
			found = append(found, span{places[f.from], places[f.to-1] + 1})
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	merged := found[:0]
	for _, f := range found {
		merged = appendSpan(merged, f)
	}
	return merged
}

// unwrapped joins lines of one word each, however they are indented, and tells where each byte of the joined text
// was. Without such lines, places is nil.
func unwrapped(text string) (joined string, places []int) {
	var out strings.Builder
	copied, wordEnd, mayGoOn := 0, 0, false
	take := func(to int) {
		for ; copied < to; copied++ {
			out.WriteByte(text[copied])
			places = append(places, copied)
		}
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
		mayGoOn, wordEnd = oneWord && len(word) >= leastWrapped, at+len(word)
		start += len(line) + 1
	}
	if copied == 0 {
		return "", nil
	}
	take(len(text))
	return out.String(), places
}
