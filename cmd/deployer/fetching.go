package main

import (
	"fmt"

	"deployer/internal/view/output"
)

// fetching shows on a terminal that something is downloaded or uploaded, until
// it is stopped. Passwords in URLs are not shown.
func (e *env) fetching(verb, ref string) *output.Spinner {
	e.transferred.Reset()
	return output.StartSpinner(e.streams, output.WithoutPasswords(verb+" "+ref), e.transferred.Bytes)
}

// progress writes the lines of a download to standard error, as Helm does.
func (e *env) progress(w *output.Spinner) func(line string) {
	out := w.Through(e.streams.Err)
	return func(line string) { fmt.Fprintln(out, line) } // who can't read it misses nothing that counts
}
