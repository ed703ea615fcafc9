package page

import (
	"fmt"
	"regexp"
	"testing"
)

// TestColoursOfThePage reads the two sets of colours of the page, by day and by
// night, which have to name the same.
func TestColoursOfThePage(t *testing.T) {
	sets := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllStringSubmatch(pageTemplate, -1)
	if len(sets) != 2 {
		t.Fatalf("%d sets of colours", len(sets))
	}
	names := regexp.MustCompile(`--[a-z]+:`)
	if a, b := names.FindAllString(sets[0][1], -1), names.FindAllString(sets[1][1], -1); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("by day %v, by night %v", a, b)
	}
}
