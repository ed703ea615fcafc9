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
	lines, shuffled, ok := linesOf(v)
	if !ok {
		w.decider.result.Unsure = w.decider.result.Unsure || v.recorded != nil
		v.recorded = nil
		return w.token(name, v, "it differs as a whole each time")
	}
	m := &matcher{units: units, lines: lines, unchanged: w.unchanged}
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

// linesOf splits the lines of a text into fixed and generated segments; a line without generated ones is nil. shuffled says that
// the lines come in another order each time. It isn't ok if the renderings have different lines.
func linesOf(v versions[string]) (lines []*line, shuffled, ok bool) {
	units := unitsOf(v.rendered)
	var others [][]unit
	for _, s := range v.rerendered {
		others = append(others, unitsOf(s))
	}
	others, shuffled = aligned(lineKeys(units), others, lineKeys)
	for _, other := range others {
		if !slices.EqualFunc(units, other, func(a, b unit) bool { return a.pem == b.pem && (a.text == "\n") == (b.text == "\n") }) {
			return nil, false, false
		}
	}
	lines = make([]*line, len(units))
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
	return lines, shuffled, true
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
			pattern += s.pattern()
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

// pattern is a regular expression for another value of a generated segment. If it consists of letters and digits, so does the
// other one: it must not contain what belongs to another entry.
func (s segment) pattern() string {
	texts := append([]string{s.rendered}, s.rerendered...)
	consistsOf := func(other string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool {
			return strings.ContainsFunc(text, func(r rune) bool { return isNotWord(r) && !strings.ContainsRune(other, r) })
		})
	}
	switch {
	case consistsOf(""):
		return `([\pL\pN]+?)`
	case consistsOf("+/=.$-_"):
		return `([\pL\pN+/=.$_-]+?)`
	}
	return "(.+?)"
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
	// unchanged says that the recorded object has everything that is fixed in this one.
	unchanged bool
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
	if len(found) > 0 && len(found) != len(siblings) || len(siblings) > 1 && !m.unchanged {
		return nil, "several entries are alike, so that nothing tells which of them it was"
	}
	if !m.sameIdentities(i) {
		return nil, moved
	}
	if len(found) > 0 {
		var out []*string
		for _, text := range found[slices.Index(siblings, i)] {
			out = append(out, &text)
		}
		return out, ""
	}
	return nil, moved
}

// sameIdentities reports whether the lines beside line i that say whose it is are as recorded.
func (m *matcher) sameIdentities(i int) bool {
	if m.unchanged {
		return true
	}
	beside := func(units []unit, context string) (texts []string, at []int) {
		for j, u := range units {
			if u.pem == "" && m.enclosing(units, j) == context {
				texts, at = append(texts, u.text), append(at, j)
			}
		}
		return texts, at
	}
	context := m.enclosing(m.units, i)
	now, at := beside(m.units, context)
	before, _ := beside(m.old, context)
	return sameIdentities(now, before, func(k int) bool { return m.lines[at[k]] != nil })
}

var section = lazyregexp.New(`^\s*\[[^\]]*\]\s*$`)

// context returns what encloses a line. For a line without words it adds the line before.
func (m *matcher) context(units []unit, i int, l *line) string {
	out, previous := enclosingLines(units, i)
	if len(units) > 1 && !l.hasWords() && l.pem == "" {
		out = append(out, "\x00"+previous)
	}
	return strings.Join(out, "\n")
}

// enclosing returns the lines that enclose a line by indentation, and its section header.
func (m *matcher) enclosing(units []unit, i int) string {
	out, _ := enclosingLines(units, i)
	return strings.Join(out, "\n")
}

func enclosingLines(units []unit, i int) (out []string, previous string) {
	depth, inSection := indentation(units[i].text), false
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
	return out, previous
}

func indentation(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }
