package generated

import (
	"math/rand/v2"
	"testing"
)

// TestValuesAreKeptWholeOrNotAtAll: characters of random text that are the same in all
// renderings by chance must not cut what was recorded.
func TestValuesAreKeptWholeOrNotAtAll(t *testing.T) {
	source := rand.New(rand.NewPCG(18, 0))
	ascii := func() string {
		b := make([]byte, 24)
		for i := range b {
			b[i] = byte('!' + source.IntN('~'-'!'+1))
		}
		return string(b)
	}
	for range 20_000 {
		text, rerendered, recorded := ascii(), []string{ascii(), ascii()}, ascii()
		l := segmentsOf(versions[string]{rendered: text, rerendered: rerendered})
		m := &matcher{units: unitsOf(text), lines: []*line{l}, old: unitsOf(recorded)}
		found, _ := m.find(0, recorded)
		kept, whole := keptText(l, found)
		if whole && kept != recorded {
			t.Fatalf("%q was recorded and %q is kept, for %q and %q", recorded, kept, text, rerendered)
		}
	}
}

// keptText is a line with what was found in its holes; whole is false where something is
// missing.
func keptText(l *line, found []*string) (text string, whole bool) {
	at := 0
	for _, s := range l.segments {
		if !s.isGenerated {
			text += s.rendered
			continue
		}
		if at >= len(found) || found[at] == nil {
			return "", false
		}
		text += *found[at]
		at++
	}
	return text, true
}
