package output

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

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
