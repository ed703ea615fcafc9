package textfmt

import (
	"strings"

	"deployer/internal/lazyregexp"
)

// plainWord is a word that means itself in a shell.
var plainWord = lazyregexp.New(`^[\w./:@,+=%-]+$`)

// ShellWord makes text safe to paste into a shell.
func ShellWord(s string) string { return ShellQuoted(CleanLine(s)) }

// ShellQuoted is a word as it is written for a shell, which is to take it as it is.
func ShellQuoted(word string) string {
	if plainWord().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
