package hide

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Mark stands where a confidential text stood.
const Mark = "(hidden)"

// Texts are confidential texts, to be taken out of whatever is shown: charts
// write passwords into arguments, servers quote them, programs log them. A nil
// *Texts hides nothing. It is safe for concurrent use.
type Texts struct {
	mu    sync.Mutex
	whole map[string]bool // hidden where it is all of a value
	parts map[string]bool // hidden also inside of texts
	names map[string]bool // what isn't hidden inside of texts although it is confidential: it names something
	order []string        // parts, longest first; nil when it has to be made again
}

// The lengths, in bytes, from which a text is hidden. Shorter ones are in every
// text by chance.
const (
	leastWhole  = 3  // all of a value, when its key says that it is confidential
	leastNamed  = 6  // inside of a text, when its key says that it is confidential
	leastPart   = 8  // inside of a text, when it has more than letters
	leastWord   = 16 // inside of a text, when it has nothing but letters
	leastLine   = 20 // a line of a text of several
	sureAnyhow  = 12 // from here on also in the middle of a word
	mostEncoded = 1 << 20
)

// Object makes the confidential values of an object known.
func (t *Texts) Object(obj *unstructured.Unstructured) {
	if t == nil || obj == nil {
		return
	}
	f := Of(obj)
	if !f.Any() {
		return
	}
	f.each(nil, obj.Object, func(names []string, text string) {
		key := names[len(names)-1]
		t.add(text, suspect(key) == telling)
		if IsSecret(obj) && names[0] == "data" {
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(plain) {
				t.add(string(plain), suspect(key) == telling)
			}
		}
	})
}

// each calls do for every confidential text in a value.
func (f Fields) each(names []string, v any, do func(names []string, text string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			f.each(append(names[:len(names):len(names)], key), item, do)
		}
	case []any:
		for _, item := range v {
			f.each(append(names[:len(names):len(names)], Item), item, do)
		}
	case string:
		if f.At(names) || len(names) == 1 && f.At([]string{names[0], Item}) && names[0] != "metadata" {
			do(names, v)
		}
	}
}

// Values makes those of a user's values known whose keys say that they are
// confidential, and all that is below such a key.
func (t *Texts) Values(values map[string]any) {
	if t != nil {
		t.values(values, innocent)
	}
}

func (t *Texts) values(v any, s suspicion) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			t.values(item, below(s, key))
		}
	case []any:
		for _, item := range v {
			t.values(item, s)
		}
	case string:
		if s == telling || s == doubtful && strings.ContainsAny(v, "0123456789") {
			t.add(v, s == telling)
		}
	case int, int32, int64, float64, json.Number:
		if data, err := json.Marshal(v); err == nil && s == telling && len(data) >= leastNamed {
			t.add(string(data), true)
		}
	}
}

// below judges a key in a map that has been judged.
func below(s suspicion, key string) suspicion {
	if s == telling && !isReference(key) {
		return telling
	}
	return suspect(key)
}

// Name makes known that a text names something that is shown everywhere, such
// as an object: it isn't hidden inside of texts, also when it is confidential.
func (t *Texts) Name(name string) {
	if t == nil || name == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[string]bool{}
	}
	t.names[name], t.order = true, nil
}

// add makes a text known; named says that its key tells that it is confidential.
func (t *Texts) add(text string, named bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.whole == nil {
		t.whole, t.parts = map[string]bool{}, map[string]bool{}
	}
	trimmed := strings.TrimSpace(text)
	if t.whole[text] && (t.parts[trimmed] || !named) || ordinary[strings.ToLower(trimmed)] {
		return
	}
	if named && len(trimmed) >= leastWhole || len(trimmed) >= leastPart {
		t.whole[text], t.whole[trimmed] = true, true
	}
	least := leastPart
	switch {
	case named:
		least = leastNamed
	case onlyLetters(trimmed):
		least = leastWord
	}
	if len(trimmed) < least {
		return
	}
	t.order = nil
	for _, v := range variants(trimmed) {
		t.parts[v] = true
	}
	t.inside(trimmed)
}

// inside makes known what is in a text of several lines: each line by itself,
// as it may be shown with an indentation, and in JSON what has telling keys.
func (t *Texts) inside(text string) {
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); len(line) >= leastLine {
			t.parts[line] = true
		}
	}
	if !strings.HasPrefix(text, "{") {
		return
	}
	var content map[string]any
	if json.Unmarshal([]byte(text), &content) != nil {
		return
	}
	t.within(content, innocent)
}

func (t *Texts) within(v any, s suspicion) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if key == "auth" { // of a registry: https://github.com/moby/moby, cli/config/types
				t.within(item, telling)
				continue
			}
			t.within(item, below(s, key))
		}
	case []any:
		for _, item := range v {
			t.within(item, s)
		}
	case string:
		if s == telling && len(v) >= leastNamed && !ordinary[strings.ToLower(v)] {
			for _, form := range variants(v) {
				t.parts[form] = true
			}
		}
	}
}

// ordinary texts are no secrets, whatever says so.
var ordinary = map[string]bool{
	"true": true, "false": true, "null": true, "none": true, "default": true, "disabled": true, "enabled": true,
	"localhost": true, "127.0.0.1": true, "0.0.0.0": true, "production": true, "development": true,
}

func onlyLetters(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
}

// variants are the forms in which a text is written elsewhere.
func variants(text string) []string {
	out := []string{text}
	if len(text) > mostEncoded {
		return out
	}
	for _, plain := range []string{text, text + "\n"} {
		data := []byte(plain)
		out = append(out, base64.StdEncoding.EncodeToString(data), base64.RawStdEncoding.EncodeToString(data),
			base64.URLEncoding.EncodeToString(data), base64.RawURLEncoding.EncodeToString(data))
	}
	// Servers quote values in messages, and what writes the message escapes it again.
	for _, quoted := range append(escaped(text), text) {
		out = append(append(out, quoted, html.EscapeString(quoted)), escaped(quoted)...) // as XML and JSON have it
	}
	return append(out, url.QueryEscape(text), url.PathEscape(text))
}

// escaped is a text as it stands in JSON, where <, > and & may be escaped or not.
func escaped(text string) []string {
	var out []string
	for _, angles := range []bool{true, false} {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(angles)
		if e.Encode(text) == nil {
			out = append(out, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`))
		}
	}
	return out
}

// Hide takes all that is confidential out of a text.
func (t *Texts) Hide(text string) string {
	if t == nil || text == "" {
		return text
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if trimmed := strings.TrimSpace(text); (t.whole[text] || t.whole[trimmed]) && !t.isName(trimmed) {
		return Mark
	}
	if t.order == nil {
		t.sort()
	}
	for _, part := range t.order {
		if len(part) <= len(text) && strings.Contains(text, part) {
			text = replaced(text, part)
		}
	}
	return text
}

func (t *Texts) sort() {
	t.order = make([]string, 0, len(t.parts))
	for part := range t.parts {
		if !t.isName(part) {
			t.order = append(t.order, part)
		}
	}
	slices.SortFunc(t.order, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
}

// isName tells whether a text is a name, or begins with one as the names of
// pods and hosts do.
func (t *Texts) isName(text string) bool {
	for i := range text {
		if (text[i] == '-' || text[i] == '.') && t.names[text[:i]] {
			return true
		}
	}
	return t.names[text]
}

// replaced takes a part out of a text; a short one only where it is a word.
func replaced(text, part string) string {
	if len(part) >= sureAnyhow {
		return strings.ReplaceAll(text, part, Mark)
	}
	var b strings.Builder
	for {
		i := strings.Index(text, part)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(part):])
		b.WriteString(text[:i])
		if inWord(before) || inWord(after) {
			b.WriteString(text[i : i+len(part)])
		} else {
			b.WriteString(Mark)
		}
		text = text[i+len(part):]
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// Value takes all that is confidential out of JSON data, a copy of it where
// something is.
func (t *Texts) Value(v any) any {
	if t == nil {
		return v
	}
	switch v := v.(type) {
	case string:
		return t.Hide(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = t.Value(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = t.Value(item)
		}
		return out
	}
	return v
}
