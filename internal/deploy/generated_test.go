package deploy

import (
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"

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

// TestRecordsAreReadAheadWhereAPlanWillHaveChanges: others may not need them.
func TestRecordsAreReadAheadWhereAPlanWillHaveChanges(t *testing.T) {
	record := func(version int, revisions ...int) *release.Record {
		generated := map[string]int{}
		for _, revision := range revisions {
			generated["data."+string(rune('a'+len(generated)))] = revision
		}
		return &release.Record{Release: helmrelease.Release{Version: version}, Journal: &release.Journal{Generated: map[string]map[string]int{"/Secret/n/db": generated}}}
	}
	for name, c := range map[string]struct {
		base      *release.Record
		revisions int
		run       bool
		want      bool
	}{
		"a value was renewed":        {base: record(4, 2, 0), revisions: 4, want: true},
		"all values were kept":       {base: record(4, 2, 2), revisions: 4},
		"nothing was generated":      {base: record(4), revisions: 4},
		"the first values":           {base: record(1, 0), revisions: 1},
		"an install":                 {revisions: 1},
		"another tool's record":      {base: &release.Record{Release: helmrelease.Release{Version: 4}}, revisions: 4},
		"many records":               {base: record(40, 2, 0), revisions: mostReadAhead + 1},
		"a run, which shows nothing": {base: record(4, 2, 0), revisions: 4, run: true},
	} {
		d := &Deployer{ForShow: !c.run}
		if got := d.willShowChanges(&release.History{Revisions: make([]release.Summary, c.revisions)}, c.base); got != c.want {
			t.Errorf("%s: willShowChanges = %v, want %v", name, got, c.want)
		}
	}
}
