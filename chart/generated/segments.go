package generated

import (
	"slices"
	"strings"
	"unicode/utf8"

	"deployer/internal/lazyregexp"
	"deployer/internal/lcs"
)

var (
	pieces  = lazyregexp.New(`[\pL\pN]+|(?s:.)`)
	base64s = lazyregexp.New(`[A-Za-z0-9+/]{16,}={0,2}`)
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
func randomBase64(text string, rerendered []string) [][][]int {
	texts := append([]string{text}, rerendered...)
	var all [][][]int
	for _, s := range texts {
		all = append(all, base64s().FindAllStringIndex(s, -1))
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
			encoded = encoded && isEncodedText(run)
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

// segmentsOf splits a line into fixed segments and segments that differ between renderings.
func segmentsOf(v versions[string]) *line {
	runs := randomBase64(v.rendered, v.rerendered)
	a := piecesOf(v.rendered, runs[0])
	fixed := slices.Repeat([]bool{true}, len(a))
	var others [][]string
	var pairs [][]int
	for i, s := range v.rerendered {
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
	l := &line{}
	for at := 0; at < len(a); {
		if fixed[at] {
			l.addFixed(a[at])
			at++
			continue
		}
		end := at + 1
		for next := end; next < len(a) && (!fixed[next] || isPunctuation(a[next])); next++ {
			if !fixed[next] {
				end = next + 1
			}
		}
		l.addRegion(a[at:end], counterparts(others, pairs, at, end))
		at = end
	}
	return l
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

// addFixed adds fixed text.
func (l *line) addFixed(text string) {
	if n := len(l.segments); n > 0 && !l.segments[n-1].isGenerated {
		l.segments[n-1].rendered += text
		return
	}
	l.segments = append(l.segments, segment{versions: versions[string]{rendered: text}})
}

// addRegion adds a stretch that differs between renderings. If its punctuation is the same in all
// of them, the punctuation is fixed, and each word is a generated segment. Otherwise the whole
// stretch is one generated segment.
func (l *line) addRegion(words []string, rerendered [][]string) {
	shape := shapeOf(words)
	hasOtherShape := func(other []string) bool { return !slices.Equal(shape, shapeOf(other)) }
	if len(words) == 1 || slices.ContainsFunc(rerendered, hasOtherShape) {
		whole, _ := convert(versions[[]string]{rendered: words, rerendered: rerendered}, func(words []string) (string, bool) {
			return strings.Join(words, ""), true
		})
		l.addGenerated(whole)
		return
	}
	for i, word := range words {
		if shape[i] != "" {
			l.addFixed(word)
			continue
		}
		l.addGenerated(versions[string]{rendered: word, rerendered: column(rerendered, i)})
	}
}

// minAffix is how many characters at the start or end of a generated word must be the same in
// all renderings to count as fixed text; fewer may be equal by chance.
const minAffix = 3

// addGenerated adds a generated segment, and the fixed text at its start and end.
func (l *line) addGenerated(v versions[string]) {
	text := v.rendered
	front, back := len(text), len(text)
	for _, other := range v.rerendered {
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
	if _, encoded := decodedVersions(v, false); encoded {
		front, back = 0, 0 // an equal beginning may end within an encoded character
	}
	if front < minAffix || !utf8.ValidString(text[:front]) {
		front = 0
	}
	if back < minAffix || back > len(text)-front-1 || !utf8.ValidString(text[len(text)-back:]) {
		back = 0
	}
	if front > 0 {
		l.addFixed(text[:front])
	}
	inner, _ := convert(v, func(s string) (string, bool) {
		from := min(front, len(s))
		return s[from:max(from, len(s)-back)], true
	})
	l.segments = append(l.segments, segment{inner, true})
	if back > 0 {
		l.addFixed(text[len(text)-back:])
	}
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
