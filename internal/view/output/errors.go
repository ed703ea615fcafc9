package output

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"deployer/internal/hide"
	"deployer/internal/lazyregexp"
	"deployer/internal/view/textfmt"
)

// PrintError writes an error, and below it the hints of its Hint methods, without confidential
// texts.
func PrintError(w io.Writer, p Palette, err error, hidden *hide.Texts) {
	text, hints := ErrorLines(err, hidden)
	fmt.Fprintf(w, "%s %s\n", p.Bad.Sprint("Error:"), strings.Join(text, "\n"))
	for _, line := range hints {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// ErrorLines are the lines of an error and those of its hints, as PrintError writes them.
func ErrorLines(err error, hidden *hide.Texts) (text, advice []string) {
	for _, hint := range hints(err) {
		advice = append(advice, cleanLines(hidden.Hide(hint))...)
	}
	return cleanLines(hidden.Hide(err.Error())), advice
}

// cleanLines returns the lines of a text without passwords and control characters.
func cleanLines(text string) []string {
	return strings.Split(WithoutPasswords(strings.TrimRight(textfmt.CleanText(text), "\n")), "\n")
}

// WarningLine is a warning as it is written, without passwords.
func WarningLine(p Palette, text string) string {
	return p.Warn.Sprint("Warning:") + " " + WithoutPasswords(textfmt.CleanLine(text)) + "\n"
}

// password is that of a URL with one: scheme://user:password@host.
// The password may have an @ too, written as it is.
var password = lazyregexp.New(`(://[^\s/"'@:]*:)[^\s/"']+@`)

// queryCredential is a parameter of a URL that lets its owner in, such as the signature of a URL that is valid for some minutes.
var queryCredential = lazyregexp.New(`(?i)([?&][\w.-]*(?:token|signature|credential|password|secret|api[_-]?key|\bsig)=)[^&\s"'#]+`)

// WithoutPasswords takes the passwords, tokens and signatures out of the URLs in a text. Libraries
// quote the URLs of repositories in their errors.
func WithoutPasswords(text string) string {
	return queryCredential().ReplaceAllString(password().ReplaceAllString(text, "${1}xxxxx@"), "${1}xxxxx")
}

// Hint is the first hint of err or an error inside it; empty when there is none.
func Hint(err error) string {
	if all := hints(err); len(all) > 0 {
		return all[0]
	}
	return ""
}

// hints collects the hints of a tree of errors, each once, outermost first.
func hints(err error) []string {
	if err == nil {
		return nil
	}
	if h, ok := err.(interface{ Hint() string }); ok && h.Hint() != "" {
		return []string{h.Hint()}
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return hints(errors.Unwrap(err))
	}
	var out []string
	for _, e := range many.Unwrap() {
		for _, hint := range hints(e) {
			if !slices.Contains(out, hint) {
				out = append(out, hint)
			}
		}
	}
	return out
}
