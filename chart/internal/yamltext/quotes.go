package yamltext

import (
	"strings"

	"deployer/internal/lazyregexp"
)

// quoted matches what errors of YAML quote.
// (go.yaml.in/yaml/v2/decode.go and resolve.go)
var quoted = lazyregexp.New("(?s)(anchor )'.*'|(cannot decode \\S+ )`.*`|(invalid map key: ).*")

// HideQuotes removes from the text of an error what YAML quotes there: it may be a part of a password that
// isn't in quotes.
func HideQuotes(text string) string {
	text = quoted().ReplaceAllString(text, "${1}${2}${3}(hidden)")
	return strings.Replace(text, "unknown anchor (hidden) referenced", "unknown anchor (hidden) referenced: put text that begins with * in quotes", 1)
}

// ClosingQuote is the place of the quote that ends the scalar that begins at from. An escape is two characters long.
func ClosingQuote(text string, from int, quote, escape string) int {
	to := from + 1
	for to < len(text) {
		switch rest := text[to:]; {
		case strings.HasPrefix(rest, escape):
			to += 2
		case strings.HasPrefix(rest, quote):
			return to
		default:
			to++
		}
	}
	return to
}
