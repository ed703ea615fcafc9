package run

import (
	"io"

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
