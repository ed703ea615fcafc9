package main

import (
	"fmt"
	"strings"
)

// suggest adds the nearest of the candidates to an error about a word that
// nobody knows. Words that are nothing alike are not suggested.
func suggest(err error, word string, candidates []string) error {
	best, distance := "", (len(strings.TrimLeft(word, "-"))+2)/3+1
	for _, c := range candidates {
		d := editDistance(word, c)
		if d < distance || d == distance && c < best {
			best, distance = c, d
		}
	}
	if best == "" {
		return err
	}
	return hinted{error: err, hint: fmt.Sprintf("did you mean %s?", best)}
}

// editDistance counts the letters to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, cost)
		}
	}
	return row[len(b)]
}
