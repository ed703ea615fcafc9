package hide

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Texts are confidential texts that are hidden wherever others have written them: charts put passwords into
// arguments, servers quote them, programs log them. A text is searched for, in many spellings, only
// if it can't be a word, and not where a name stands that contains it. A nil *Texts hides nothing. It is safe
// for concurrent use.
type Texts struct {
	mu      sync.Mutex
	search  search
	names   map[string]bool // in lower case: names of objects, keys, images and hosts
	open    map[string]bool // values that stand in plain sight
	learned map[string]bool // what learn was called with; true: as surely confidential
}

// locked calls do, unless t is nil.
func (t *Texts) locked(do func()) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.search = search{map[string][]term{}, map[string]*secret{}}
		t.names, t.open, t.learned = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	do()
}

// minSearched is the length, in bytes, from which a text is searched for.
const minSearched = 8

// canBeWord reports whether a text may be an ordinary word, or occur in others by chance: it is short, or has only letters of one case.
func canBeWord(text string) bool {
	return len(text) < minSearched || text == Placeholder ||
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLower(r) }) || !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsUpper(r) })
}

// isShown reports whether a text stays that was found at a place: it stands in plain sight, or is a name or in one.
func (t *Texts) isShown(at occurrence, in string) bool {
	if t.names[lowered(at.of.text)] || !at.of.sure && t.open[at.of.text] {
		return true
	}
	for at.from > 0 && inName(in[at.from-1]) {
		at.from--
	}
	for at.to < len(in) && inName(in[at.to]) {
		at.to++
	}
	return t.names[lowered(strings.Trim(in[at.from:at.to], "."))]
}

func inName(b byte) bool { return b == '.' || inBase64(b) && b != '/' && b != '+' }

// Hide replaces all confidential texts in a text by Placeholder.
func (t *Texts) Hide(text string) string {
	hidden, _ := t.hide(text)
	return hidden
}

// hide is Hide that also returns the hidden texts, in order.
func (t *Texts) hide(text string) (string, []string) {
	var found []occurrence
	t.locked(func() { found = joined(t.search.find(text, t.isShown)) })
	if len(found) == 0 {
		return text, nil
	}
	var b strings.Builder
	var out []string
	at := 0
	for _, s := range found {
		b.WriteString(text[at:s.from] + Placeholder)
		out = append(out, text[s.from:s.to])
		at = s.to
	}
	return b.String() + text[at:], out
}

// HidePath hides confidential texts in the path of a field, which may name items of lists by their values.
func (t *Texts) HidePath(path string) string {
	return strings.ReplaceAll(t.Hide(path), `="`+Placeholder+`"`, "="+Placeholder)
}

// OriginsIn returns the texts of t that occur in the given texts, in any spelling.
func (t *Texts) OriginsIn(texts ...string) []string {
	var found []string
	t.locked(func() {
		for _, text := range texts {
			for _, m := range t.search.find(text, t.isShown) {
				if utf8.ValidString(m.of.text) {
					found = append(found, m.of.text)
				}
			}
		}
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// HideValue returns a copy of JSON data without confidential texts. Keys aren't changed.
func (t *Texts) HideValue(v any) any {
	if t == nil {
		return v
	}
	return rewriteLeaves(v, false, false, func(leaf any, _ bool) any {
		if hidden, found := t.hide(textOf(leaf)); len(found) > 0 {
			return hidden
		}
		return leaf
	})
}
