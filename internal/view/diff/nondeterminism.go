package diff

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/internal/hide"
)

// A Nondeterminism is how an object differs between renderings of the same templates.
type Nondeterminism struct {
	secret       bool
	first        map[string]any
	otherRenders []map[string]any
}

// NewNondeterminism compares an object with other renderings of the same templates; nil when it is rendered the same each time, as
// without it.
func NewNondeterminism(first *unstructured.Unstructured, others ...*unstructured.Unstructured) *Nondeterminism {
	if first == nil {
		return nil
	}
	n := &Nondeterminism{secret: hide.IsSecret(first)}
	n.first = encoded(first.Object, n.secret)
	for _, other := range others {
		n.otherRenders = append(n.otherRenders, encoded(other.Object, n.secret))
	}
	return n
}

// encoded puts stringData of a Secret where the server puts it: into data.
func encoded(object map[string]any, secret bool) map[string]any {
	plain, ok := object["stringData"].(map[string]any)
	if !ok || !secret {
		return object
	}
	data := map[string]any{}
	old, _ := object["data"].(map[string]any)
	maps.Copy(data, old)
	for key, v := range plain {
		if text, ok := v.(string); ok {
			v = base64.StdEncoding.EncodeToString([]byte(text))
		}
		data[key] = v
	}
	out := maps.Clone(object)
	delete(out, "stringData")
	out["data"] = data
	return out
}

// explains reports whether a field changes only because of nondeterministic templates. A text
// must change only in the parts that differ between renderings.
func (n *Nondeterminism) explains(path fieldpath.Path, f Field) bool {
	if n == nil {
		return false
	}
	first, had := fields.Value(n.first, path)
	random := false
	var otherTexts []string
	for _, other := range n.otherRenders {
		value, has := fields.Value(other, path)
		if had != has {
			return true // it isn't always there
		}
		random = random || has && !equal(first, value)
		if text, ok := n.text(path, value); ok {
			otherTexts = append(otherTexts, text)
		}
	}
	if !random || f.Type != compare.Changed {
		return false
	}
	was, ok := n.text(path, f.Before)
	is, alsoText := n.text(path, first)
	return !ok || !alsoText || onlyRandom(was, is, otherTexts) // a number or the like has no parts
}

// text is a value if it is text; of a Secret's data, decoded. Bytes that are no text stay in base64, as one word: what random
// bytes have in common they have by chance.
func (n *Nondeterminism) text(path fieldpath.Path, value any) (string, bool) {
	text, ok := value.(string)
	if ok && n.secret && fields.Names(path)[0] == "data" {
		plain, err := base64.StdEncoding.DecodeString(text)
		if err == nil && utf8.Valid(plain) {
			return string(plain), true
		}
		text = strings.TrimRight(text, "=")
	}
	return text, ok
}

// onlyRandom reports whether a text differs from first only in its random parts: in words that aren't the same in all
// renderings, or where other renderings have more words.
func onlyRandom(before, first string, others []string) bool {
	words := tokens(first)
	random := make([]bool, 2*len(words)+1) // words have odd places; the places around them are for words that first lacks
	for _, other := range others {
		for _, g := range tokenGaps(tokens(other), words) {
			mark(random[2*g.b0 : 2*g.b1+1])
		}
	}
	last := len(random)
	for i, is := range random {
		if !is {
			continue
		}
		if last < i && len(strings.Join(words[(last+1)/2:i/2], "")) < shortest {
			mark(random[last:i])
		}
		last = i
	}
	return !slices.ContainsFunc(tokenGaps(tokens(before), words), func(g gap) bool { return slices.Contains(random[2*g.b0:2*g.b1+1], false) })
}

func mark(places []bool) {
	for i := range places {
		places[i] = true
	}
}

// shortest is how long text between two random parts must be, in bytes, to count as text of
// the template: random texts have some characters in common by chance.
const shortest = 4

func tokenGaps(a, b []string) []gap {
	return gaps(len(a), len(b), func(i, j int) bool { return a[i] == b[j] })
}

// tokens cuts text into words, which may have the signs of base64 in them, and
// single other characters.
func tokens(text string) []string {
	var out []string
	for text != "" {
		n := strings.IndexFunc(text, func(r rune) bool { return !inWord(r) })
		switch n {
		case -1:
			n = len(text)
		case 0:
			_, n = utf8.DecodeRuneInString(text)
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '+' || r == '/' || r == '_' || r == '-'
}
