package output

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// TestEventsAreComplete: what programs read is never left out.
func TestEventsAreComplete(t *testing.T) {
	reader, writer := io.Pipe()
	o := NewAsyncWriter(writer, 1000, true)
	lines := make(chan int)
	go func() {
		var all bytes.Buffer
		_, _ = io.Copy(&all, reader) // ends when the writer is closed
		lines <- bytes.Count(all.Bytes(), []byte("\n"))
	}()
	for i := range 1000 {
		if _, err := fmt.Fprintf(o, `{"n":%d}`+"\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	if got := <-lines; got != 1000 {
		t.Errorf("%d of 1000 lines arrived", got)
	}
}
