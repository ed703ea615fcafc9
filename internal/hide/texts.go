package hide

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Placeholder stands where a confidential text stood.
const Placeholder = "(hidden)"

// Texts are confidential texts that are hidden wherever others have written them: charts put passwords into
// arguments, servers quote them, programs log them. A text is searched for, also where it is escaped or encoded, only
// if it can't be a word, and not where a name stands that contains it. A nil *Texts hides nothing. It is safe
// for concurrent use.
type Texts struct {
	mu      sync.Mutex
	search  search
	names   map[string]bool // in lower case: names of objects, keys, images and hosts
	open    map[string]bool // values that stand in plain sight
	classes map[string]keyClass
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
		t.search = search{byHead: map[uint32][]term{}, secrets: map[string]*secret{}}
		t.names, t.open, t.classes, t.learned = map[string]bool{}, map[string]bool{}, map[string]keyClass{}, map[string]bool{}
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

// AddVisibleName registers a name that is shown everywhere.
func (t *Texts) AddVisibleName(name string) { t.locked(func() { t.addName(name) }) }

func (t *Texts) addName(name string) { t.names[lowered(name)] = true }

// isShown reports whether a text stays that was found at a place: it is a name or part of one, or stands in plain sight.
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
	return t.names[lowered(in[at.from:at.to])]
}

func inName(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("-_.", b) >= 0
}

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

// OriginsIn returns the texts of t that occur in the given texts, in any spelling.
func (t *Texts) OriginsIn(texts ...string) []string {
	found := map[string]bool{}
	t.locked(func() {
		for _, text := range texts {
			for _, m := range t.search.find(text, t.isShown) {
				found[m.of.text] = utf8.ValidString(m.of.text)
			}
		}
	})
	maps.DeleteFunc(found, func(_ string, isText bool) bool { return !isText })
	return slices.Sorted(maps.Keys(found))
}

// HideValue returns a copy of JSON data without confidential texts. Keys aren't changed.
func (t *Texts) HideValue(v any) any {
	if t == nil {
		return v
	}
	switch v := v.(type) {
	case string:
		return t.Hide(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = t.HideValue(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = t.HideValue(item)
		}
		return out
	}
	if text, ok := numberText(v); ok {
		if hidden, found := t.hide(text); len(found) > 0 {
			return hidden
		}
	}
	return v
}

// AddObject learns the confidential values of an object, and the names and values that it shows.
func (t *Texts) AddObject(obj *unstructured.Unstructured) {
	if obj == nil {
		return
	}
	t.locked(func() {
		f := ConfidentialFields(obj)
		t.addOpen(f, nil, "", obj.Object)
		if f.Any() {
			f.eachHidden(nil, obj.Object, func(names []string, text string) { t.learnField(obj, names, text, false) })
		}
	})
}

// AddGenerated learns the values at paths of a Secret as texts that the chart has generated: they can't be words.
func (t *Texts) AddGenerated(obj *unstructured.Unstructured, isGenerated func(path string) bool) {
	if !IsSecret(obj) {
		return
	}
	t.locked(func() {
		ConfidentialFields(obj).eachHidden(nil, obj.Object, func(names []string, text string) {
			path := slices.Clone(names) // as records write it
			for i, name := range path {
				if strings.ContainsAny(name, ".[]") {
					path[i] = strconv.Quote(name)
				}
			}
			if isGenerated(strings.Join(path, ".")) {
				t.learnField(obj, names, text, true)
			}
		})
	})
}

// AddValues learns the values of a user or a chart whose keys are confidential, all values
// below such a key, and passwords at known places in other values, such as URLs.
func (t *Texts) AddValues(values map[string]any) {
	t.locked(func() { t.learnByKey(values, ordinaryKey, true) })
}

// AddText learns a confidential text.
func (t *Texts) AddText(text string) { t.locked(func() { t.learn(text, true) }) }
