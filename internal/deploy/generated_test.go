package deploy

import (
	"testing"
	"time"

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
	o.Next.Version = 7
	o.recordGenerated()
	if got := generatedAt(o.Next)["/Secret/n/db"]; got["data.password"] != 3 || got["data.url"] != 7 {
		t.Errorf("what a rollback to it records: %v", got)
	}
}

// TestTheNextUpgradeIsExpected as the history shows, by the server's clock.
func TestTheNextUpgradeIsExpected(t *testing.T) {
	const day = 24 * time.Hour
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		days []int // of the revisions
		now  int
		want time.Duration
	}{
		"as long as since the last one":         {days: []int{0}, now: 40, want: 40 * day},
		"as on average":                         {days: []int{0, 30, 60}, now: 61, want: 61 * day / 3},
		"as since the last one, which was long": {days: []int{0, 1, 2}, now: 92, want: 90 * day},
		"just deployed":                         {days: []int{0, 0}, now: 0, want: 0},
	} {
		h := &release.History{}
		for _, d := range c.days {
			// The clock of the client that deployed it was wrong.
			h.Revisions = append(h.Revisions, release.Summary{Created: start.Add(time.Duration(d) * day), Updated: time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)})
		}
		if got := pace(h, start.Add(time.Duration(c.now)*day)); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if got := pace(&release.History{Revisions: make([]release.Summary, 2)}, start); got != 0 {
		t.Errorf("unknown times: %v", got)
	}
}
