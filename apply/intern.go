package apply

import (
	"hash/maphash"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// interner makes objects share equal parts. The objects of a chart have similar labels
// and managed fields, and the server's answers about one object differ little. Interned
// objects must not be modified.
type interner struct {
	mu    sync.Mutex
	seed  maphash.Seed
	parts map[uint64]any
	names map[string]string
}

func newInterner() *interner {
	return &interner{seed: maphash.MakeSeed(), parts: map[uint64]any{}, names: map[string]string{}}
}

// intern returns obj with the parts replaced that equal a part of an earlier object.
// Nobody else may have a reference to obj or its parts yet.
func (s *interner) intern(obj *unstructured.Unstructured) *unstructured.Unstructured {
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
func (s *interner) internObject(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for name, value := range m {
		if meta, ok := value.(map[string]any); ok && name == "metadata" {
			out["metadata"] = s.internObject(meta)
			continue
		}
		out[s.internName(name)], _ = s.internValue(value)
	}
	return out
}

func (s *interner) internName(name string) string {
	if first, ok := s.names[name]; ok {
		return first
	}
	s.names[name] = name
	return name
}

// internValue returns the first value that was equal to v, and the hash of both. Parts of
// v are replaced likewise.
func (s *interner) internValue(v any) (any, uint64) {
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
