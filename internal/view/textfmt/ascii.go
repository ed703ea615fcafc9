package textfmt

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ASCII replaces non-ASCII characters by escapes.
func ASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
