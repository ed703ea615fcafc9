package deploy

import (
	"testing"

	"deployer/release"
)

// TestGeneratedFieldsAreNoted: the generated fields that are written into a record can be read from it.
func TestGeneratedFieldsAreNoted(t *testing.T) {
	o := &Operation{Namespace: "n", Next: &release.Record{Journal: &release.Journal{
		Generated: map[string]map[string]int{"/Secret/n/db": {"data.password": 3, "data.url": 0}, "nonsense": {"x": 1}},
	}}}
	o.Rendered.Generated = recordedGenerated(o.Next)
	if len(o.Rendered.Generated) != 2 || o.Rendered.Generated[0].Path != "data.password" || o.Rendered.Generated[0].Revision != 3 || o.Rendered.Generated[1].Kept() {
		t.Fatalf("generatedOf: %v", o.Rendered.Generated)
	}
	o.Next.Journal.Generated = nil
	o.recordGenerated()
	if got := o.Next.Journal.Generated["/Secret/n/db"]["data.password"]; got != 3 {
		t.Errorf("noteGenerated: %v", o.Next.Journal.Generated)
	}
}
