package retain

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCertificatesEndInTime: a kept certificate of ninety days is renewed when it has used two thirds of its life, or would have
// ended before the next upgrade can be expected.
func TestCertificatesEndInTime(t *testing.T) {
	const day = 24 * time.Hour
	const template = secret + `{{ $ca := genCA "ca" 90 }}stringData: {crt: {{ $ca.Cert | quote }}, key: {{ $ca.Key | quote }}, p: {{ randAlphaNum 12 }}}`
	s := newStory(t)
	first := s.deploy(template, nil)
	made := s.now
	for name, c := range map[string]struct {
		age, next time.Duration
		unknown   bool // the server doesn't tell the time
		renewed   bool
	}{
		"new":                              {age: day},
		"just before two thirds":           {age: 60*day - time.Hour},
		"just after two thirds":            {age: 60*day + time.Hour, renewed: true},
		"ended":                            {age: 100 * day, renewed: true},
		"ends after the next upgrade":      {age: 30 * day, next: 59 * day},
		"ends before the next upgrade":     {age: 30 * day, next: 61 * day, renewed: true},
		"new, and upgrades are rare":       {age: day, next: 365 * day, renewed: true},
		"of a clock ahead of the server's": {age: -10 * day, next: 30 * day},
		"no time is known":                 {unknown: true, next: 365 * day},
	} {
		s.now, s.next = made.Add(c.age), c.next
		if c.unknown {
			s.now = time.Time{}
		}
		r := s.plan(template, nil)
		for _, key := range []string{"crt", "key"} {
			isKept := field(t, r.Manifest, "Secret/s", "stringData", key) == field(t, first.Manifest, "Secret/s", "stringData", key)
			if isKept == c.renewed {
				t.Errorf("%s: kept %v:\n%s", name, isKept, r.lines())
			}
		}
		if field(t, r.Manifest, "Secret/s", "stringData", "p") != field(t, first.Manifest, "Secret/s", "stringData", "p") {
			t.Errorf("%s: the password is renewed too", name)
		}
		want := "certificate of Secret/n/s expires on " + made.Add(90*day).UTC().Format(time.DateOnly) + ": renewed"
		said := slices.Contains(r.Warnings, want) && strings.Contains(r.lines(), want)
		if said != c.renewed || !c.renewed && len(r.Warnings) > 0 {
			t.Errorf("%s: warnings %q, want %q:\n%s", name, r.Warnings, want, r.lines())
		}
	}
}
