package retain

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
	for range 4_000 {
		text, rerendered, recorded := ascii(), []string{ascii(), ascii()}, ascii()
		l := segmentsOf(append([]string{text}, rerendered...))
		kept := ""
		found := l.match(recorded)
		if found == nil {
			continue
		}
		for _, s := range l {
			if s.isGenerated {
				kept, found = kept+found[0], found[1:]
			} else {
				kept += s.node.text
			}
		}
		if kept != recorded {
			t.Fatalf("%q was recorded and %q is kept, for %q and %q", recorded, kept, text, rerendered)
		}
	}
}
