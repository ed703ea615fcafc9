package output

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

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

// A WriteError says that output couldn't be written. It says nothing about whether the
// command succeeded.
type WriteError struct {
	What string // "standard output", "standard error" or the path of a file
	Err  error
}

func (e *WriteError) Error() string { return fmt.Sprintf("writing %s: %s", e.What, e.Err) }
func (e *WriteError) Unwrap() error { return e.Err }

// OnlyWriteErrors reports whether only output failed: err isn't nil and every error in it is a
// *WriteError.
func OnlyWriteErrors(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case *WriteError:
		return true
	case interface{ Unwrap() []error }:
		inner := e.Unwrap()
		return len(inner) > 0 && !slices.ContainsFunc(inner, func(err error) bool { return !OnlyWriteErrors(err) })
	}
	return OnlyWriteErrors(errors.Unwrap(err))
}

// A stream is standard output or standard error. It remembers the first failure.
type stream struct {
	to   io.Writer
	name string

	mu           sync.Mutex
	firstError   error
	hasWritten   bool
	ignoreErrors bool // failures are remembered, but not returned by Write
}

func (s *stream) Write(data []byte) (int, error) {
	n, err := s.to.Write(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.hasWritten = s.hasWritten || n > 0
		return n, nil
	}
	err = &WriteError{What: s.name, Err: SystemError(err)}
	if s.firstError == nil {
		s.firstError = err
	}
	if s.ignoreErrors {
		return len(data), nil
	}
	return n, err
}

// SystemError is the innermost error, that of the system, without "write /dev/stdout" before it.
func SystemError(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// Unfiltered are standard output and standard error as other programs inherit them:
// a terminal stays one for them.
func (s Streams) Unfiltered() (out, errOut io.Writer) {
	if len(s.sinks) == 0 {
		return s.Out, s.Err
	}
	return s.sinks[0].to, s.sinks[1].to
}

// IgnoreWriteErrors sets whether failed writes are hidden from their callers. WriteErrors
// returns them in both cases.
func (s Streams) IgnoreWriteErrors(on bool) {
	for _, sink := range s.sinks {
		sink.mu.Lock()
		sink.ignoreErrors = on
		sink.mu.Unlock()
	}
}

// WriteErrors joins the first failures of standard output and standard error, as
// *WriteErrors. It is nil when all could be written, and when standard output, which was written to, has the result: what is
// told on standard error beside it may be missing.
func (s Streams) WriteErrors() error {
	var all []error
	for i, sink := range s.sinks {
		sink.mu.Lock()
		err, hasWritten := sink.firstError, sink.hasWritten
		sink.mu.Unlock()
		if isOut := i == 0; isOut && err == nil && hasWritten {
			return nil
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}
