package program

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xrash/smetrics"
)

// Suggest adds the candidate that a mistyped word most likely means to an error about the word.
func Suggest(err error, word string, candidates []string, rare ...string) error {
	if similar := Similar(word, candidates, rare...); similar != "" {
		return WithHint(err, fmt.Sprintf("did you mean %s?", similar))
	}
	return err
}

// Similar is the candidate that a mistyped word most likely means; empty if the word is nothing like any of them. Of the
// rare candidates, it is only one that differs by a single letter.
func Similar(word string, candidates []string, rare ...string) string {
	best, least, distance := "", len(likenesses), 0
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
	return best
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
