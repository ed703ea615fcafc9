package lcs

import (
	"slices"
	"testing"
)

func TestPairs(t *testing.T) {
	for _, test := range []struct {
		a, b  string
		limit int
		want  []int
	}{
		{"", "abc", 100, []int{}},
		{"abc", "", 100, []int{-1, -1, -1}},
		{"abc", "abc", 0, []int{0, 1, 2}},
		{"axbyc", "abc", 100, []int{0, -1, 1, -1, 2}},
		{"abcd", "xbyd", 100, []int{-1, 1, -1, 3}},
		{"aa", "aaa", 100, []int{0, 1}},
		{"abcdz", "axcyz", 3, []int{0, -1, -1, -1, 4}}, // too long to compare what is in between
	} {
		got := Pairs(len(test.a), len(test.b), test.limit, func(i, j int) bool { return test.a[i] == test.b[j] })
		if !slices.Equal(got, test.want) {
			t.Errorf("Pairs(%q, %q, limit %d) = %v, want %v", test.a, test.b, test.limit, got, test.want)
		}
	}
}
