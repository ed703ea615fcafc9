package hide

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Placeholder stands where a confidential text stood.
const Placeholder = "(hidden)"

// Texts are confidential texts that are hidden in all output: charts write passwords into
// arguments, servers quote them, programs log them. They are found in many spellings: upper
// and lower case, base64, hexadecimal, escaped for URLs, JSON and XML, and between quotes. A nil *Texts hides
// nothing. It is safe for concurrent use.
type Texts struct {
	mu     sync.Mutex
	whole  map[string]bool // hidden as a whole value
	search search          // hidden also inside texts
	names  map[string]bool // in lower case: visible names, not hidden inside texts
	hosts  map[string]bool // in lower case: identifiers; those that begin with a visible name aren't hidden inside texts

	classes map[string]keyClass // by key; see classOfNested
	added   map[keyedText]bool  // what add has been called with
}

// A keyedText is a text and the class of its key.
type keyedText struct {
	text string
	key  keyClass
}

// The minimum lengths, in bytes, of hidden texts. Shorter texts and numbers occur in other
// texts by chance.
const (
	minWhole       = 3 // all of a value, when its key says that it is confidential
	minOrdinary    = 8 // all of a value that is an ordinary word
	minInside      = headLength
	minKeyedNumber = 6 // a number inside of a text, when its key says that it is confidential
	minNumber      = 8 // a number inside of a text
	minLine        = 8 // a line without a key, of a text of several lines
	minBinary      = 8 // binary data
)

// AddObject adds the confidential values of an object.
func (t *Texts) AddObject(obj *unstructured.Unstructured) {
	if t == nil || obj == nil {
		return
	}
	f := ConfidentialFields(obj)
	if !f.Any() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f.eachHidden(nil, obj.Object, func(names []string, text string) {
		key := classifyKey(names[len(names)-1])
		t.add(text, key)
		if IsSecret(obj) && names[0] == "data" {
			if data, err := base64.StdEncoding.DecodeString(text); err == nil {
				t.addSecretData(data, key)
			}
		}
	})
}

// addSecretData adds a value of a Secret's data, decoded.
func (t *Texts) addSecretData(data []byte, key keyClass) {
	switch {
	case utf8.Valid(data):
		t.add(string(data), key)
	case len(data) >= minBinary && len(data) <= maxEncoded:
		t.search.add(term{text: hex.EncodeToString(data)}, "")
		for _, core := range base64Cores(string(data)) {
			t.search.add(core, "")
		}
	}
}

// eachHidden calls do for every confidential text in a value.
func (f Fields) eachHidden(names []string, v any, do func(names []string, text string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			f.eachHidden(append(names[:len(names):len(names)], key), item, do)
		}
	case []any:
		for _, item := range v {
			f.eachHidden(append(names[:len(names):len(names)], Item), item, do)
		}
	case string:
		if f.IsHidden(names) || len(names) == 1 && f.IsHidden([]string{names[0], Item}) && names[0] != "metadata" {
			do(names, v)
		}
	default:
		if text, ok := numberText(v); ok && f.IsHidden(names) {
			do(names, text)
		}
	}
}

// AddValues adds the values of a user or a chart whose keys are confidential, all values
// below such a key, and passwords at known places in other values, such as URLs.
func (t *Texts) AddValues(values map[string]any) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.addValuesByKey(values, ordinaryKey)
	}
}

// addValuesByKey adds the confidential ones of values. class is that of the key whose value v is.
func (t *Texts) addValuesByKey(v any, class keyClass) {
	switch v := v.(type) {
	case map[string]any:
		name, _, named := namedValue(v)
		for key, item := range v {
			if named && key == "value" {
				key = name
			}
			t.addValuesByKey(item, t.classOfNested(class, key))
		}
	case []any:
		for _, item := range v {
			t.addValuesByKey(item, class)
		}
	case string:
		if class == confidentialKey || class == ambiguousKey && strings.ContainsAny(v, "0123456789") {
			t.add(v, class)
			return
		}
		t.addEmbedded(v)
	default:
		if text, ok := numberText(v); ok && class == confidentialKey {
			t.add(text, class)
		}
	}
}

// classOfNested returns the class of a key in a map, whose own key has the class parent. Classifying is slow, so classes
// are remembered: the values of all revisions have mostly the same keys. t must be locked.
func (t *Texts) classOfNested(parent keyClass, key string) keyClass {
	if parent == confidentialKey && !referenceWords().MatchString(wordsOf(key)) {
		return confidentialKey
	}
	class, ok := t.classes[key]
	if !ok {
		class = classifyKey(key)
		if t.classes == nil {
			t.classes = map[string]keyClass{}
		}
		t.classes[key] = class
	}
	return class
}

// AddVisibleName registers a text, such as an object's name, that is shown everywhere. It
// isn't hidden inside other texts, even if it is also confidential.
func (t *Texts) AddVisibleName(name string) {
	if t == nil || name == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	insert(&t.names, lowered(name))
}

// add adds a confidential text, depending on the class of its key.
func (t *Texts) add(text string, key keyClass) {
	if t.added[keyedText{text, key}] {
		return // revisions have most in common
	}
	insert(&t.added, keyedText{text, key})
	trimmed := strings.TrimSpace(text)
	if meaningless[strings.ToLower(trimmed)] {
		return
	}
	common := isOrdinary(trimmed)
	if key == confidentialKey && len(trimmed) >= minWhole || len(trimmed) >= minOrdinary || len(trimmed) >= minInside && !common && hasLetter(trimmed) {
		insert(&t.whole, text)
		insert(&t.whole, trimmed)
	}
	switch {
	case len(trimmed) < minInside:
	case !hasLetter(trimmed):
		if len(trimmed) >= minNumber || key == confidentialKey && len(trimmed) >= minKeyedNumber {
			t.searchFor(trimmed, term{wholeWord: true})
		}
	case common:
		if key == confidentialKey {
			t.searchFor(trimmed, term{wholeWord: true, caseSensitive: true})
		}
	case key == identifierKey:
		insert(&t.hosts, lowered(trimmed))
		t.searchFor(trimmed, term{wholeWord: true})
	case key != confidentialKey && quantity().MatchString(trimmed):
	default:
		t.searchFor(trimmed, term{})
	}
	t.addParts(trimmed, key)
}

// insert adds a key to a set, which may be nil.
func insert[K comparable](set *map[K]bool, key K) {
	if *set == nil {
		*set = map[K]bool{}
	}
	(*set)[key] = true
}

// searchFor adds all spellings of a text to the search; see spellings for like.
func (t *Texts) searchFor(text string, like term) {
	for _, p := range spellings(text, like) {
		t.search.add(p, text)
	}
}

// Hide replaces all confidential texts in a text by Placeholder.
func (t *Texts) Hide(text string) string {
	hidden, _ := t.hide(text)
	return hidden
}

// hide is Hide that also returns the hidden texts, in order.
func (t *Texts) hide(text string) (string, []string) {
	if t == nil || text == "" {
		return text, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if trimmed := strings.TrimSpace(text); (t.whole[text] || t.whole[trimmed]) && !t.isName(lowered(trimmed)) {
		return Placeholder, []string{trimmed}
	}
	found := t.search.findWrapped(text, t.isName, nil)
	if len(found) == 0 {
		return text, nil
	}
	var b strings.Builder
	var out []string
	at := 0
	for _, s := range found {
		b.WriteString(text[at:s.from])
		b.WriteString(Placeholder)
		out = append(out, text[s.from:s.to])
		at = s.to
	}
	b.WriteString(text[at:])
	return b.String(), out
}

// isName reports whether a text, in lower case, is a visible name, or a host that begins
// with one.
func (t *Texts) isName(text string) bool {
	if t.names[text] {
		return true
	}
	if t.hosts[text] {
		for i := range text {
			if (text[i] == '-' || text[i] == '.') && t.names[text[:i]] {
				return true
			}
		}
	}
	return false
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
	return t.hideNumber(v)
}

// hideNumber returns Placeholder for a confidential number, otherwise the number.
func (t *Texts) hideNumber(v any) any {
	if text, ok := numberText(v); ok {
		if hidden, found := t.hide(text); len(found) > 0 {
			return hidden
		}
	}
	return v
}

// HideManifest is HideValue for an object; the fields that identify it aren't changed.
func (t *Texts) HideManifest(obj map[string]any) map[string]any {
	out, _ := t.HideValue(obj).(map[string]any)
	if out == nil {
		return nil
	}
	restore := func(to, from map[string]any, keys ...string) {
		for _, key := range keys {
			if v, ok := from[key]; ok {
				to[key] = v
			}
		}
	}
	restore(out, obj, "apiVersion", "kind")
	before, _ := obj["metadata"].(map[string]any)
	after, _ := out["metadata"].(map[string]any)
	restore(after, before, "name", "namespace", "generateName")
	return out
}
