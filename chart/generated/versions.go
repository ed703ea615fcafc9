package generated

import (
	"encoding/base64"
	"reflect"
	"slices"
	"unicode/utf8"
)

// versions are the value at one place of an object: as rendered, in each of the repeated renderings, and as recorded.
type versions[T any] struct {
	rendered   T
	rerendered []T
	recorded   *T // nil when nothing is recorded
}

// isStable reports whether the value is the same in all renderings.
func (v versions[T]) isStable() bool {
	return !slices.ContainsFunc(v.rerendered, func(other T) bool { return !reflect.DeepEqual(other, v.rendered) })
}

// recordedOrZero is what is recorded; the zero value when nothing is.
func (v versions[T]) recordedOrZero() T {
	if v.recorded == nil {
		return *new(T)
	}
	return *v.recorded
}

// convert converts all versions; false if one of them can't be converted.
func convert[A, B any](v versions[A], convertOne func(A) (B, bool)) (versions[B], bool) {
	ok := true
	next := func(a A) (b B) {
		if ok {
			b, ok = convertOne(a)
		}
		return b
	}
	out := versions[B]{rendered: next(v.rendered)}
	for _, other := range v.rerendered {
		out.rerendered = append(out.rerendered, next(other))
	}
	if v.recorded != nil {
		out.recorded = new(next(*v.recorded))
	}
	return out, ok
}

// textVersions returns versions that are all text; false if one of them isn't.
func textVersions(v versions[any]) (versions[string], bool) {
	return convert(v, func(value any) (string, bool) {
		text, ok := value.(string)
		return text, ok
	})
}

// decodedVersions decodes versions in base64; false if one of the renderings isn't. isData says that they are data of a
// Secret; other text is taken for base64 only if it is long and decodes to readable text.
func decodedVersions(v versions[string], isData bool) (versions[string], bool) {
	recorded := v.recorded
	v.recorded = nil
	out, ok := convert(v, func(s string) (string, bool) {
		plain, err := base64.StdEncoding.DecodeString(s)
		return string(plain), err == nil && len(plain) > 0 && (isData || len(s) >= 16 && isReadable(plain))
	})
	if recorded != nil {
		if plain, err := base64.StdEncoding.DecodeString(*recorded); err == nil {
			out.recorded = new(string(plain))
		}
	}
	return out, ok
}

// isEncodedText reports whether a text is base64 of text.
func isEncodedText(s string) bool {
	_, ok := decodedVersions(versions[string]{rendered: s}, false)
	return ok
}

// isReadable reports whether data is text without control characters.
func isReadable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
