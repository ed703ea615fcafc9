// Package program has the hints that errors give, and knows how they name the program, which runs
// under two names.
package program

import "strings"

// Name stands in hints, and in other texts with a command line to type, for the
// name that the program was called by. The letters around it are from Unicode's
// private use area: nothing else that is shown has this text in it, so that names
// and words of others are never taken for it.
const Name = "\uf6d0deployer\uf6d1"

// InsertName puts the name that the program was called by into a text.
func InsertName(text, name string) string { return strings.ReplaceAll(text, Name, name) }

// WithHint adds to an error the next step for the user, which is shown below it: its method Hint
// returns it. err must not be nil.
func WithHint(err error, hint string) error { return &hintedError{err, hint} }

type hintedError struct {
	error
	hint string
}

func (h *hintedError) Hint() string  { return h.hint }
func (h *hintedError) Unwrap() error { return h.error }
