package view

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"deployer/internal/deploy"
	"deployer/track"
)

// openTerminal makes a pseudo terminal: what is written to tty can be read from
// reader.
func openTerminal(t *testing.T) (reader, tty *os.File) {
	t.Helper()
	reader, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { reader.Close() })
	var unlocked, number int32
	control(t, reader, syscall.TIOCSPTLCK, &unlocked)
	control(t, reader, syscall.TIOCGPTN, &number)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { tty.Close() })
	return reader, tty
}

func control(t *testing.T, f *os.File, request uintptr, value *int32) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
		t.Fatalf("ioctl %x: %v", request, errno)
	}
}

// TestTerminalThatIsHeld stops reading, as Ctrl-S does: the run goes on, and
// its report is there when the terminal is read again.
func TestTerminalThatIsHeld(t *testing.T) {
	for _, progress := range []string{"auto", "plain"} {
		t.Run(progress, func(t *testing.T) {
			reader, tty := openTerminal(t)
			streams := NewStreams(nil, io.Discard, tty)
			if !streams.ErrTTY {
				t.Fatal("a pseudo terminal isn't taken for a terminal")
			}
			e := NewEvents(streams, EventOptions{Progress: progress, Env: noEnv})
			op := upgrade(t)
			ran := make(chan struct{})
			go func() {
				defer close(ran)
				e.Observe(deploy.Began{Operation: op})
				for i := range 20_000 {
					e.Observe(deploy.Saw{Report: track.Report{Kind: track.LogWritten, Log: &track.LogLine{
						Object: webID(), Pod: "web-6d8f-k2x9n", Container: "app", Text: fmt.Sprintf("line %d %s", i, strings.Repeat("x", 80)),
					}}})
				}
				e.Observe(deploy.Ended{Operation: op, Err: errors.New("the end of it")})
			}()
			select {
			case <-ran:
			case <-time.After(time.Minute):
				t.Fatal("the run waits for the terminal")
			}
			read := make(chan []byte)
			go func() {
				var all bytes.Buffer
				_, _ = io.Copy(&all, reader) // ends with an error when the terminal is closed
				read <- all.Bytes()
			}()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			tty.Close()
			all := string(<-read)
			if !strings.Contains(all, "the end of it") {
				t.Errorf("the end isn't told: %q", all[max(0, len(all)-500):])
			}
			if n := strings.Count(all, "| line "); n < 20_000 && !strings.Contains(all, "left out") {
				t.Errorf("%d of 20000 lines are shown, and nothing tells so", n)
			}
		})
	}
}

// TestEventsAreComplete: what programs read is never left out.
func TestEventsAreComplete(t *testing.T) {
	reader, writer := io.Pipe()
	o := newOutlet(writer, 1000, true)
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
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	if got := <-lines; got != 1000 {
		t.Errorf("%d of 1000 lines arrived", got)
	}
}
