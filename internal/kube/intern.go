package kube

import (
	"hash/maphash"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An Interner makes objects share equal parts. The objects of a chart have similar labels
// and managed fields, and the server's answers about one object differ little. Interned
// objects must not be modified. It is safe for concurrent use.
type Interner struct {
	mu    sync.Mutex
	seed  maphash.Seed
	parts map[uint64]any
	texts map[string]any // names and values of fields of an object and its metadata
}

// NewInterner returns an Interner that has met no object yet.
func NewInterner() *Interner {
	return &Interner{seed: maphash.MakeSeed(), parts: map[uint64]any{}, texts: map[string]any{}}
}

// Intern returns obj with the parts replaced that equal a part of an earlier object.
// Nobody else may have a reference to obj or its parts yet.
func (s *Interner) Intern(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	obj.Object = s.internObject(obj.Object)
	return obj
}

// internObject returns an object, or its metadata, made of shared parts. These two levels are
// never shared themselves, because each object's is unique.
func (s *Interner) internObject(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for name, value := range m {
		if meta, ok := value.(map[string]any); ok && name == "metadata" {
			out["metadata"] = s.internObject(meta)
			continue
		}
		if text, ok := value.(string); ok {
			value = s.internText(text)
		} else {
			value, _ = s.internValue(value)
		}
		out[s.internText(name).(string)] = value
	}
	return out
}

// internText returns text as a value of a field, which is shared too.
func (s *Interner) internText(text string) any {
	first, ok := s.texts[text]
	if !ok {
		first = text
		s.texts[text] = first
	}
	return first
}

// internValue returns the first value that was equal to v, and the hash of both. Parts of
// v are replaced likewise.
func (s *Interner) internValue(v any) (any, uint64) {
	var sum uint64
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			part, h := s.internValue(value)
			v[key] = part
			sum += maphash.Comparable(s.seed, pair{key, h}) // in any order
		}
	case []any:
		for i, value := range v {
			part, h := s.internValue(value)
			v[i] = part
			sum = maphash.Comparable(s.seed, [2]uint64{sum, h})
		}
	default:
		return v, maphash.Comparable(s.seed, v)
	}
	first, ok := s.parts[sum]
	if !ok {
		s.parts[sum] = v
		return v, sum
	}
	if reflect.DeepEqual(first, v) { // quick: the parts are the same
		return first, sum
	}
	return v, sum
}

type pair struct {
	key  string
	hash uint64
}
