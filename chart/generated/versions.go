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

// textVersions are versions that all are text; false if one isn't.
func textVersions(v versions[any]) (versions[string], bool) {
	rendered, ok := v.rendered.(string)
	out := versions[string]{rendered: rendered}
	for _, other := range v.rerendered {
		text, isText := other.(string)
		out.rerendered, ok = append(out.rerendered, text), ok && isText
	}
	if v.recorded != nil {
		text, isText := (*v.recorded).(string)
		out.recorded, ok = &text, ok && isText
	}
	return out, ok
}

// decodedVersions reads versions that are base64; false if a rendered one isn't. Text that isn't the data of a Secret is
// taken for base64 only when it is long and what it decodes to can be read.
func decodedVersions(v versions[string], data bool) (versions[string], bool) {
	read := func(s string) (string, bool) {
		plain, err := base64.StdEncoding.DecodeString(s)
		if err != nil || len(plain) == 0 {
			return "", false
		}
		return string(plain), data || len(s) >= 16 && isReadable(plain)
	}
	rendered, ok := read(v.rendered)
	if !ok {
		return versions[string]{}, false
	}
	out := versions[string]{rendered: rendered}
	for _, s := range v.rerendered {
		other, ok := read(s)
		if !ok {
			return versions[string]{}, false
		}
		out.rerendered = append(out.rerendered, other)
	}
	if v.recorded != nil {
		if plain, err := base64.StdEncoding.DecodeString(*v.recorded); err == nil {
			out.recorded = new(string(plain))
		}
	}
	return out, true
}

// isEncodedText reports whether a text is base64 of text.
func isEncodedText(s string) bool {
	_, ok := decodedVersions(versions[string]{rendered: s}, false)
	return ok
}

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
