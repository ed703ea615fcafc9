package apply

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sharing lets objects of the same shape have one list of who manages which
// fields between them. These lists are the larger part of most objects, and the
// objects of a chart are alike: with it, a release of a thousand objects needs
// half the memory. Nobody changes managedFields in place.
type sharing struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]any
}

// of returns obj, having replaced what an earlier object had too.
func (s *sharing) of(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	list, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "managedFields")
	entries, _ := list.([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		const name = "fieldsV1"
		if entry[name] == nil {
			continue
		}
		if text, err := json.Marshal(entry[name]); err == nil {
			entry[name] = s.one(sha256.Sum256(text), entry[name])
		}
	}
	return obj
}

func (s *sharing) one(key [sha256.Size]byte, value any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.seen[key]; ok {
		return first
	}
	s.seen[key] = value
	return value
}
