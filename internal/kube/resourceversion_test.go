package kube

import "testing"

func TestOldestVersion(t *testing.T) {
	for _, test := range []struct {
		versions []string
		want     string
	}{
		{nil, ""},
		{[]string{"7"}, "7"},
		{[]string{"10", "9", "11"}, "9"},
		{[]string{"9", "10"}, "9"},
		{[]string{"9", ""}, ""},
		{[]string{"", "9"}, ""},
		{[]string{"9", "x"}, ""},
	} {
		if got := OldestVersion(test.versions); got != test.want {
			t.Errorf("of %q: %q, want %q", test.versions, got, test.want)
		}
	}
}
