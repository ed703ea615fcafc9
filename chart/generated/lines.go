package generated

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"deployer/internal/lazyregexp"
)

var pemBlock = lazyregexp.New(`-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END [A-Z0-9 ]+-----`)

// A unit is a line without its end, the end of a line, or a PEM block.
type unit struct {
	text string
	pem  string // the type of a PEM block; otherwise empty
}

// unitsOf splits text into units; joined, they are the text.
func unitsOf(text string) []unit {
	var out []unit
	plain := func(s string) {
		for line := range strings.Lines(s) {
			line, ended := strings.CutSuffix(line, "\n")
			if line != "" {
				out = append(out, unit{text: line})
			}
			if ended {
				out = append(out, unit{text: "\n"})
			}
		}
	}
	at := 0
	for _, m := range pemBlock().FindAllStringSubmatchIndex(text, -1) {
		plain(text[at:m[0]])
		out = append(out, unit{text: text[m[0]:m[1]], pem: text[m[2]:m[3]]})
		at = m[1]
	}
	plain(text[at:])
	return out
}

// compareLines splits text into lines, and each line into fixed and generated segments.
func (w *fieldWalker) compareLines(name string, v versions[string]) part {
	units := unitsOf(v.rendered)
	var others [][]unit
	for _, s := range v.rerendered {
		others = append(others, unitsOf(s))
	}
	others, shuffled := aligned(lineKeys(units), others, lineKeys)
	for _, other := range others {
		if !slices.EqualFunc(units, other, func(a, b unit) bool { return a.pem == b.pem && (a.text == "\n") == (b.text == "\n") }) {
			w.decider.result.Unsure = w.decider.result.Unsure || v.recorded != nil
			v.recorded = nil
			return w.token(name, v, "it differs as a whole each time")
		}
	}
	lines := make([]*line, len(units))
	for i, u := range units {
		texts := versions[string]{rendered: u.text}
		for _, other := range others {
			texts.rerendered = append(texts.rerendered, other[i].text)
		}
		switch {
		case texts.isStable():
		case u.pem != "":
			lines[i] = &line{segments: []segment{{texts, true}}, pem: u.pem}
		default:
			lines[i] = segmentsOf(texts)
		}
	}
	m := &matcher{units: units, lines: lines}
	if v.recorded != nil {
		m.old = unitsOf(*v.recorded)
	}
	var out joined
	for i, u := range units {
		if lines[i] == nil {
			out = append(out, fixed(u.text))
			continue
		}
		var found []*string
		why := ""
		if v.recorded != nil {
			found, why = m.find(i, *v.recorded)
		}
		at := 0
		var parts joined
		for _, s := range lines[i].segments {
			if !s.isGenerated {
				parts = append(parts, fixed(s.rendered))
				continue
			}
			generated := s.versions
			if at < len(found) {
				generated.recorded = found[at]
			}
			at++
			w.decider.result.Unsure = w.decider.result.Unsure || v.recorded != nil && generated.recorded == nil
			parts = append(parts, w.compareSegment(name, generated, why))
		}
		out = append(out, parts)
	}
	if shuffled {
		return w.keepLineOrder(name, out, units, v.recorded)
	}
	return out
}

// compareSegment compares a generated segment of a line. It looks into base64, such as after "Basic" in a header.
func (w *fieldWalker) compareSegment(name string, v versions[string], why string) part {
	if plain, ok := decodedVersions(v, false); ok {
		return encoded{w.compareText(name, plain, false)}
	}
	return w.token(name, v, why)
}

// A line consists of fixed and generated segments.
type line struct {
	segments []segment
	pem      string // the type of a PEM block; otherwise empty
}

// A segment is a piece of a line. A fixed one has only the rendered text.
type segment struct {
	versions[string]
	isGenerated bool
}

// hasWords reports whether there is a word in the fixed segments.
func (l *line) hasWords() bool {
	return slices.ContainsFunc(l.segments, func(s segment) bool { return !s.isGenerated && strings.ContainsFunc(s.rendered, isWord) })
}

// skeleton is the line with a mark in place of each generated segment.
func (l *line) skeleton() string {
	out := l.pem
	for _, s := range l.segments {
		if s.isGenerated {
			out += "\x00"
		} else {
			out += s.rendered
		}
	}
	return out
}

// match returns the texts that a recorded line has in place of the generated segments; nil if the
// fixed text differs.
func (l *line) match(text string) []string {
	pattern := ""
	for _, s := range l.segments {
		if s.isGenerated {
			pattern += "(.+?)"
		} else {
			pattern += regexp.QuoteMeta(s.rendered)
		}
	}
	m := regexp.MustCompile(`^(?s:` + pattern + `)$`).FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	texts := m[1:]
	for i, s := range l.segments {
		if !s.isGenerated {
			continue
		}
		// Beside another generated segment, nothing tells where a text of several words ends.
		if len(m) > 2 && !strings.ContainsFunc(s.rendered, isNotWord) && strings.ContainsFunc(texts[0], isNotWord) && l.touchesAnotherGenerated(i) {
			return nil
		}
		texts = texts[1:]
	}
	return m[1:]
}

// touchesAnotherGenerated reports whether only punctuation is between the generated segment at a place and
// another one.
func (l *line) touchesAnotherGenerated(at int) bool {
	wordless := func(i int) bool { return !strings.ContainsFunc(l.segments[i].rendered, isWord) }
	return at >= 2 && wordless(at-1) || at+2 < len(l.segments) && wordless(at+1)
}

func isWord(r rune) bool    { return unicode.IsLetter(r) || unicode.IsDigit(r) }
func isNotWord(r rune) bool { return !isWord(r) }

// A matcher finds lines in a recorded text.
type matcher struct {
	units []unit
	lines []*line // nil for units without generated segments
	old   []unit  // of the recorded text
}

// find returns the recorded text for each generated segment of line i, nil for one without a
// counterpart, and why there is none.
func (m *matcher) find(i int, recorded string) ([]*string, string) {
	const moved = "what is around it isn't what it was"
	l := m.lines[i]
	if len(m.units) == 1 && len(l.segments) == 1 && l.pem == "" {
		return []*string{&recorded}, "" // all of it is generated
	}
	var siblings []int
	for j, other := range m.lines {
		if other != nil && other.skeleton() == l.skeleton() && m.context(m.units, j, l) == m.context(m.units, i, l) {
			siblings = append(siblings, j)
		}
	}
	var found [][]string
	for j, u := range m.old {
		switch {
		case u.pem != l.pem || u.text == "\n" || m.context(m.old, j, l) != m.context(m.units, i, l):
		case u.pem != "":
			found = append(found, []string{u.text})
		default:
			if texts := l.match(u.text); texts != nil {
				found = append(found, texts)
			}
		}
	}
	if len(found) > 0 && len(found) != len(siblings) {
		return nil, "several recorded values match"
	}
	if len(found) > 0 {
		var out []*string
		for _, text := range found[slices.Index(siblings, i)] {
			out = append(out, &text)
		}
		return out, ""
	}
	if l.pem != "" {
		return nil, moved
	}
	return m.nearby(i), moved
}

// nearby finds the recorded text of the generated segments of a changed line by the words right beside
// them.
func (m *matcher) nearby(i int) []*string {
	l := m.lines[i]
	var out []*string
	for at := range l.segments {
		if !l.segments[at].isGenerated {
			continue
		}
		out = append(out, nil)
		pattern := l.textAround(at)
		if pattern == "" || mayContainQuotes(l.segments[at]) {
			continue
		}
		re := regexp.MustCompile(pattern)
		count := func(units []unit) (n int, last string) {
			for j, u := range units {
				if u.pem != "" || m.context(units, j, l) != m.context(m.units, i, l) {
					continue
				}
				for _, found := range re.FindAllStringSubmatch(u.text, -1) {
					n, last = n+1, found[1]
				}
			}
			return n, last
		}
		mine, _ := count(m.units)
		recorded, value := count(m.old)
		if mine == 1 && recorded == 1 {
			out[len(out)-1] = &value
		}
	}
	return out
}

// mayContainQuotes reports whether a generated segment has punctuation, such as quotes, that may also be
// what ends it. In a line that has changed, nothing tells where such a value ends.
func mayContainQuotes(s segment) bool {
	return slices.ContainsFunc(append([]string{s.rendered}, s.rerendered...), func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool { return !isWord(r) && !strings.ContainsRune("+/=-_.$", r) })
	})
}

// textAround returns a regular expression for a generated segment with the word before it, or without
// one with the word after it; empty if there is neither.
func (l *line) textAround(at int) string {
	var left, right segment
	if at > 0 {
		left = l.segments[at-1]
	}
	if at+1 < len(l.segments) {
		right = l.segments[at+1]
	}
	if left.isGenerated || right.isGenerated {
		return ""
	}
	before, after := left.rendered, right.rendered
	if !strings.ContainsFunc(before, isWord) {
		i := strings.IndexFunc(after, isWord)
		if i < 0 {
			return ""
		}
		if j := strings.IndexFunc(after[i:], isNotWord); j >= 0 {
			after = after[:i+j]
		}
		if len(before)+len(after) < minAffix {
			return ""
		}
		return `^` + regexp.QuoteMeta(before) + `([^\s]+?)` + regexp.QuoteMeta(after)
	}
	// From the beginning of the word before the segment up to the next word.
	word := strings.TrimRightFunc(before, isNotWord)
	before = before[len(strings.TrimRightFunc(word, isWord)):]
	if len(before) < minAffix {
		return "" // it may be the same by chance
	}
	if at == 1 && before == left.rendered {
		before = `^` + regexp.QuoteMeta(before)
	} else {
		before = `(?:^|[^\pL\pN])` + regexp.QuoteMeta(before)
	}
	if i := strings.IndexFunc(after, isWord); i >= 0 {
		after = after[:i]
	}
	if after == "" {
		if at+1 < len(l.segments) {
			return ""
		}
		return before + `(\S+)$`
	}
	return before + `([^\s]+?)` + regexp.QuoteMeta(after)
}

var section = lazyregexp.New(`^\s*\[[^\]]*\]\s*$`)

// context returns the lines that enclose a line by indentation, and its section header. For
// a line without words it adds the line before.
func (m *matcher) context(units []unit, i int, l *line) string {
	var out []string
	depth, inSection := indentation(units[i].text), false
	previous := ""
	for j := i - 1; j >= 0; j-- {
		text := units[j].text
		trimmed := strings.TrimSpace(text)
		if trimmed == "" {
			continue
		}
		if previous == "" {
			previous = trimmed
			if units[j].pem != "" || strings.ContainsFunc(text, unicode.IsControl) {
				previous = "-"
			}
		}
		switch {
		case units[j].pem != "":
		case section().MatchString(text) && !inSection:
			out, inSection = append(out, trimmed), true
		case indentation(text) < depth:
			depth = indentation(text)
			out = append(out, trimmed)
		}
	}
	if len(units) > 1 && !l.hasWords() && l.pem == "" {
		out = append(out, "\x00"+previous)
	}
	return strings.Join(out, "\n")
}

func indentation(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }
