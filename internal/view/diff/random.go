package diff

import (
	"encoding/base64"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/hide"
)

// A Variation is how an object differs from itself rendered again.
type Variation struct {
	secret bool
	fields map[string]*variant // by path
}

// A variant is a field that comes out otherwise each time.
type variant struct {
	comes bool // it isn't always there
	first any
	again []any
}

// Vary compares an object with what the same templates gave again.
func Vary(first *unstructured.Unstructured, again ...*unstructured.Unstructured) *Variation {
	v := &Variation{secret: hide.IsSecret(first), fields: map[string]*variant{}}
	for _, other := range again {
		w := &walker{}
		w.maps(path{}, encoded(content(first), v.secret), encoded(content(other), v.secret), nil)
		for _, c := range w.out {
			f := v.fields[c.Path]
			if f == nil {
				f = &variant{first: c.Before}
				v.fields[c.Path] = f
			}
			f.comes = f.comes || c.Kind != Changed
			f.again = append(f.again, c.After)
		}
	}
	return v
}

// encoded puts stringData of a Secret where the server puts it: into data.
func encoded(object map[string]any, secret bool) map[string]any {
	plain, ok := object["stringData"].(map[string]any)
	if !ok || !secret {
		return object
	}
	out := map[string]any{}
	for key, v := range object {
		out[key] = v
	}
	delete(out, "stringData")
	data := map[string]any{}
	old, _ := object["data"].(map[string]any)
	for key, v := range old {
		data[key] = v
	}
	for key, v := range plain {
		if text, ok := v.(string); ok {
			v = base64.StdEncoding.EncodeToString([]byte(text))
		}
		data[key] = v
	}
	out["data"] = data
	return out
}

// explains tells whether a field's change is only what templates make up. Of a
// text it has to be within the parts that differ each time.
func (v *Variation) explains(p path, c Change) bool {
	if v == nil {
		return false
	}
	f := v.fields[p.text]
	switch {
	case f == nil:
		return false
	case f.comes:
		return true
	case c.Kind != Changed:
		return false
	}
	before, first := f.text(v, p, c.Before), f.text(v, p, f.first)
	if before == nil || first == nil {
		return true // a number or the like, which has no parts
	}
	var again []string
	for _, other := range f.again {
		if text := f.text(v, p, other); text != nil {
			again = append(again, *text)
		}
	}
	return onlyRandom(*before, *first, again)
}

// text is a value if it is text; of a Secret's data, decoded.
func (f *variant) text(v *Variation, p path, value any) *string {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	if v.secret && len(p.names) > 0 && p.names[0] == "data" {
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = string(plain)
		}
	}
	return &text
}

// onlyRandom tells whether a text became another one only where that one comes
// out otherwise each time.
func onlyRandom(before, first string, again []string) bool {
	words := tokens(first)
	made := make([]bool, len(words)+1) // by gap of the words: before each, and at the end
	random := make([]bool, len(words))
	for _, other := range again {
		for _, g := range tokenGaps(tokens(other), words) {
			for i := g.b0; i < g.b1; i++ {
				random[i] = true
			}
			made[g.b0] = true
		}
	}
	bridge(words, random)
	for _, g := range tokenGaps(tokens(before), words) {
		if g.b0 == g.b1 && !made[g.b0] && !(g.b0 < len(random) && random[g.b0]) && !(g.b0 > 0 && random[g.b0-1]) {
			return false
		}
		for i := g.b0; i < g.b1; i++ {
			if !random[i] {
				return false
			}
		}
	}
	return true
}

// shortest is how long text between two random parts has to be, in bytes, to be
// taken for text of the template: random text has signs in common by chance.
const shortest = 4

// bridge takes what is too short between two random tokens for random as well.
func bridge(words []string, random []bool) {
	last, size := -1, 0
	for i, word := range words {
		if !random[i] {
			size += len(word)
			continue
		}
		if last >= 0 && size < shortest {
			for j := last + 1; j < i; j++ {
				random[j] = true
			}
		}
		last, size = i, 0
	}
}

func tokenGaps(a, b []string) []gap {
	return gaps(len(a), len(b), func(i, j int) bool { return a[i] == b[j] })
}

// tokens cuts text into words, which may have the signs of base64 in them, and
// single other characters.
func tokens(text string) []string {
	var out []string
	start := 0
	for i, r := range text {
		if inWord(r) {
			continue
		}
		if start < i {
			out = append(out, text[start:i])
		}
		start = i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size := utf8.DecodeRuneInString(text[i:])
			start = i + size
		}
		out = append(out, text[i:start])
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '+' || r == '/' || r == '_' || r == '-'
}
