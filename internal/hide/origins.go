package hide

import (
	"maps"
	"slices"
)

// NewTextsWithOrigins returns texts that can tell which of them stand in others.
func NewTextsWithOrigins() *Texts {
	t := &Texts{}
	t.parts.origin = map[*part]string{}
	return t
}

// OriginsIn returns which of the texts stand in others, in any spelling, sorted. What is hidden
// only as a whole value, and what is no text, isn't among them. t is of NewTextsWithOrigins.
func (t *Texts) OriginsIn(texts ...string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.parts.origin) == 0 {
		return nil // most templates read nothing, and joining the lines of a large manifest takes its time
	}
	found := map[string]bool{}
	for _, text := range texts {
		t.parts.findWrapped(text, t.isName, func(p *part) {
			if origin := t.parts.origin[p]; origin != "" {
				found[origin] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// AddText adds a text that is confidential wherever it stands.
func (t *Texts) AddText(text string) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.add(text, unknown)
	}
}
