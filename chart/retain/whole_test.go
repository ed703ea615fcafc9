package retain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
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

// TestTheOrderOfALongTextIsFoundInTime fails if the work grows with the square of the number of lines: that takes minutes.
func TestTheOrderOfALongTextIsFoundInTime(t *testing.T) {
	const lines = 20_000
	var list []*node
	for i := range lines {
		list = append(list, &node{text: fmt.Sprintf("setting_%d = value", i)})
	}
	other := slices.Clone(list)
	slices.Reverse(other)
	began := time.Now()
	reversed := &node{kind: items, children: other}
	reversed.nameItems()
	order := orderOf(list, reversed)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("%d lines took %s", lines, took)
	}
	if order[0] != lines-1 || order[lines-1] != 0 {
		t.Errorf("the first line is at %d, and the last one at %d", order[0], order[lines-1])
	}
}
