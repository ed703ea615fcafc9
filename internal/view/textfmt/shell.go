package textfmt

import (
	"strings"

	"deployer/internal/lazyregexp"
)

// plainWord is a word that means itself in a shell, and no option.
var plainWord = lazyregexp.New(`^[\w./:@,+=][\w./:@,+=-]*$`)

// ShellWord makes text safe to paste into a shell.
func ShellWord(s string) string {
	s = CleanLine(s)
	if plainWord().MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
