package decide

import "testing"

// TestStayAhead: what is ahead of the revision that is rolled back to, and does no harm.
func TestStayAhead(t *testing.T) {
	claim := func(size string) string {
		return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {resources: {requests: {storage: " + size + "}}}}"
	}
	for name, c := range map[string]struct{ live, desired, why string }{
		"grown":             {claim("2Gi"), claim("1Gi"), "a claim can't shrink: it keeps its 2Gi"},
		"written as number": {claim("2Gi"), claim("1073741824"), "a claim can't shrink: it keeps its 2Gi"},
		"equal":             {claim("1Gi"), claim("1024Mi"), ""},
		"smaller":           {claim("1Gi"), claim("2Gi"), ""},
		"another kind":      {"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", ""},
	} {
		stay, instead := StayAhead(parsed(t, c.live), parsed(t, c.desired))
		switch {
		case stay == nil && c.why == "":
		case stay == nil || stay.Why != c.why || !stay.Harmless || instead == nil:
			t.Errorf("%s: %+v", name, stay)
		}
	}
}
