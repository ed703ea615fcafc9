package hide

import (
	"maps"
	"slices"
)

// NewTextsWithOrigins returns empty Texts that remember of which text each spelling is, for OriginsIn.
func NewTextsWithOrigins() *Texts {
	t := &Texts{}
	t.search.origin = map[*term]string{}
	return t
}

// OriginsIn returns the texts of t that occur in the given texts, in any spelling, sorted. Texts that
// are hidden only as a whole value, and binary data, aren't among them. t must come
// from NewTextsWithOrigins.
func (t *Texts) OriginsIn(texts ...string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.search.origin) == 0 {
		return nil // most templates read nothing, and joining the lines of a large manifest takes long
	}
	found := map[string]bool{}
	for _, text := range texts {
		t.search.findWrapped(text, t.isName, func(p *term) {
			if origin := t.search.origin[p]; origin != "" {
				found[origin] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// AddText adds a confidential text.
func (t *Texts) AddText(text string) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.add(text, unknown)
	}
}
