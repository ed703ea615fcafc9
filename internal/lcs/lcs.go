// Package lcs finds a longest common subsequence of two sequences: which elements stayed,
// and in between them what was added and removed.
package lcs

import "slices"

// Pairs returns, for each of the n elements of one sequence, the index of the equal element
// that it is paired with among the m of the other; -1 for none. If n times m is more than
// limit, it pairs only what both sequences begin and end with.
func Pairs(n, m, limit int, same func(i, j int) bool) []int {
	out := slices.Repeat([]int{-1}, n)
	start := 0
	for start < n && start < m && same(start, start) {
		out[start] = start
		start++
	}
	for n > start && m > start && same(n-1, m-1) {
		n, m = n-1, m-1
		out[n] = m
	}
	rows, columns := n-start, m-start
	if rows*columns > limit {
		return out
	}
	length := lengths(rows, columns, func(i, j int) bool { return same(start+i, start+j) })
	for i, j := 0, 0; i < rows && j < columns; {
		switch {
		case same(start+i, start+j):
			out[start+i] = start + j
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return out
}

// lengths has the lengths of longest common subsequences of all pairs of tails.
func lengths(n, m int, same func(i, j int) bool) [][]int32 {
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
