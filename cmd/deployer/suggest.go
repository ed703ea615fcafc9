package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xrash/smetrics"

	"deployer/internal/program"
)

// suggest adds the candidate that a mistyped word most likely means to an error about the word. Words that are
// nothing alike aren't suggested. Of the rare candidates, only one is that differs by a single letter.
func suggest(err error, word string, candidates []string, rare ...string) error {
	best, least := "", len(likenesses)
	distance := 0
	consider := func(candidate string, upTo int) {
		d := smetrics.WagnerFischer(word, candidate, 1, 1, 1) // letters to insert, delete or replace
		like := slices.IndexFunc(likenesses, func(alike func(word, candidate string, distance int) bool) bool { return alike(word, candidate, d) })
		if like < 0 || d > upTo {
			return
		}
		if best == "" || like < least || like == least && (d < distance || d == distance && candidate < best) {
			best, least, distance = candidate, like, d
		}
	}
	for _, c := range candidates {
		consider(c, len(c)+len(word))
	}
	for _, c := range rare {
		consider(c, 1)
	}
	if best == "" {
		return err
	}
	return program.WithHint(err, fmt.Sprintf("did you mean %s?", best))
}

// likenesses are the ways in which a word can be like the one that is meant, the surest first.
var likenesses = []func(word, candidate string, distance int) bool{
	func(word, candidate string, distance int) bool { return distance <= 1 },
	func(word, candidate string, _ int) bool { // --set-str, --context
		letters := strings.TrimLeft(word, "-")
		return len(letters) >= 3 && (strings.HasPrefix(candidate, word) || strings.HasSuffix(candidate, "-"+letters))
	},
	func(word, candidate string, _ int) bool { return len(word) >= 3 && abbreviates(word, candidate) }, // vals
	func(word, candidate string, distance int) bool {
		return distance <= (len(strings.TrimLeft(word, "-"))+2)/3
	},
}

// abbreviates reports whether a word has letters of another in their order, from its first one on.
func abbreviates(word, of string) bool {
	if of == "" || word[0] != of[0] || strings.HasPrefix(word, "-") {
		return false
	}
	for _, letter := range []byte(word) {
		at := strings.IndexByte(of, letter)
		if at < 0 {
			return false
		}
		of = of[at+1:]
	}
	return true
}
