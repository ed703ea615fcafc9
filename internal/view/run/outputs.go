package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"deployer/internal/view/output"
)

// outputs are standard output and standard error of a view. They keep the first
// error of a write.
type outputs struct {
	data, messages io.Writer
	async          []*output.AsyncWriter // in front of data and messages; nil in tests
	firstError     error
}

// asyncOutputs write in goroutines of their own.
func asyncOutputs(s output.Streams) *outputs {
	data, messages := output.NewAsyncWriter(s.Data(), output.EventLimit, true), output.NewAsyncWriter(s.Err, output.MessageLimit, false)
	return &outputs{data: data, messages: messages, async: []*output.AsyncWriter{data, messages}}
}

// write writes text to standard error.
func (o *outputs) write(text string) {
	if text == "" {
		return
	}
	_, err := o.messages.Write([]byte(text))
	o.check(err)
}

// writeJSON writes one line of JSON to standard output.
func (o *outputs) writeJSON(event any) { o.check(output.Encode(o.data, output.FormatJSON, event)) }

func (o *outputs) check(err error) {
	if o.firstError == nil {
		o.firstError = err
	}
}

// isHeld reports whether writes to standard error are pending because its reader is slow.
func (o *outputs) isHeld() bool { return len(o.async) > 0 && !o.async[1].IsIdle() }

// waitForRoom leaves nothing out from now on, however long writing takes.
func (o *outputs) waitForRoom() {
	for _, w := range o.async {
		w.WaitForRoom()
	}
}

func (o *outputs) flush() {
	for _, w := range o.async {
		w.Flush()
	}
}

// close waits until all has been written, and gives the first error.
func (o *outputs) close() error {
	for _, w := range o.async {
		o.check(w.Close())
	}
	return o.firstError
}

// CheckWritable reports whether an outcome can be written to path, before there is one.
// The path is empty when none is to be written.
func CheckWritable(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("writing %s: it is a directory", path)
	}
	if isStream(path) {
		return nil // opening a pipe waits for its reader
	}
	f, err := createBeside(path)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// isStream reports whether a path is written as a stream: a pipe, a device or an open file such as /dev/stdout can't be
// replaced. A symbolic link to any other file is replaced, and the file stays as it is: another user may have made the link.
func isStream(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	full, err := filepath.Abs(path)
	return !info.Mode().IsRegular() || err == nil && (strings.HasPrefix(full, "/dev/") || strings.HasPrefix(full, "/proc/"))
}

// createBeside makes a file of mode 0600 next to path.
func createBeside(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, output.SystemError(err) // without the name that was made up
	}
	return f, nil
}

// writeOutcomeFile writes a file. A regular file is replaced in one step, so that a reader never finds
// half of it, and only its owner may read it. Its errors are *WriteErrors.
func writeOutcomeFile(path string, data []byte) error {
	write := replaceFile
	if isStream(path) {
		write = appendTo
	}
	if err := write(path, data); err != nil {
		return &output.WriteError{What: path, Err: output.SystemError(err)}
	}
	return nil
}

func appendTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return cmp.Or(err, f.Close())
}

func replaceFile(path string, data []byte) error {
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what is left of it is of no use; the first error counts
	}
	return err
}
