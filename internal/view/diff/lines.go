package diff

import "strings"

// A gap is a stretch in which two sequences have nothing in common:
// a[a0:a1] was replaced by b[b0:b1].
type gap struct{ a0, a1, b0, b1 int }

// maxComparisons bounds the work of comparing two sequences: the product of their lengths.
const maxComparisons = 4_000_000

// gaps finds where two sequences of n and m elements differ, by their longest
// common subsequence. Sequences too long for that are taken for different.
func gaps(n, m int, same func(i, j int) bool) []gap {
	start := 0
	for start < n && start < m && same(start, start) {
		start++
	}
	for n > start && m > start && same(n-1, m-1) {
		n, m = n-1, m-1
	}
	if start == n && start == m {
		return nil
	}
	rows, columns := n-start, m-start
	if rows*columns > maxComparisons {
		return []gap{{start, n, start, m}}
	}
	length := longest(rows, columns, func(i, j int) bool { return same(start+i, start+j) })
	var out []gap
	open := gap{a0: start, b0: start}
	i, j := 0, 0
	for i < rows && j < columns {
		switch {
		case same(start+i, start+j):
			out = appendGap(out, open, start+i, start+j)
			i, j = i+1, j+1
			open = gap{a0: start + i, b0: start + j}
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return appendGap(out, open, n, m)
}

func appendGap(out []gap, open gap, a1, b1 int) []gap {
	if open.a0 == a1 && open.b0 == b1 {
		return out
	}
	open.a1, open.b1 = a1, b1
	return append(out, open)
}

// longest computes the lengths of common subsequences of all pairs of tails.
func longest(n, m int, same func(i, j int) bool) [][]int32 {
	length := make([][]int32, n+1)
	for i := range length {
		length[i] = make([]int32, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if same(i, j) {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	return length
}

// Unified compares two texts line by line and returns what differs with
// context lines around it. Each line begins with "+", "-" or a blank; "..."
// stands for lines left out. Texts that differ in nothing give nothing.
func Unified(before, after string, context int) []string {
	a, b := split(before), split(after)
	context = max(context, 0)
	var out []string
	shown := 0 // lines of a that have been dealt with
	all := gaps(len(a), len(b), func(i, j int) bool { return a[i] == b[j] })
	for k, g := range all {
		from := max(shown, g.a0-context)
		if from > shown {
			out = append(out, "...")
		}
		out = append(out, prefixed(" ", a[from:g.a0])...)
		out = append(out, prefixed("-", a[g.a0:g.a1])...)
		out = append(out, prefixed("+", b[g.b0:g.b1])...)
		until := min(len(a), g.a1+context)
		if k+1 < len(all) {
			until = min(until, all[k+1].a0)
		}
		out = append(out, prefixed(" ", a[g.a1:until])...)
		shown = until
	}
	if len(all) > 0 && shown < len(a) {
		out = append(out, "...")
	}
	return out
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		return lines[:len(lines)-1]
	}
	lines[len(lines)-1] += " (no line end)"
	return lines
}

func prefixed(sign string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = sign + line
	}
	return out
}
