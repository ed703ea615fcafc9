package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"deployer/internal/deploy"
	"deployer/internal/deployertest"
	"deployer/internal/view/output"
	"deployer/internal/view/viewtest"
	"deployer/track"
)

// TestTerminalThatIsHeld stops reading, as Ctrl-S does: the run goes on, and
// its report is there when the terminal is read again.
func TestTerminalThatIsHeld(t *testing.T) {
	for _, progress := range []string{"auto", "plain"} {
		t.Run(progress, func(t *testing.T) {
			reader, tty := deployertest.Terminal(t)
			streams := output.NewStreams(nil, io.Discard, tty, "deployer")
			if !streams.ErrTTY {
				t.Fatal("a pseudo terminal isn't taken for a terminal")
			}
			e := New(streams, Options{Progress: progress, Getenv: viewtest.NoEnv, ExitCode: exitCode})
			op := viewtest.Upgrade(t)
			ran := make(chan struct{})
			go func() {
				defer close(ran)
				e.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
				for i := range 20_000 {
					e.HandleEvent(deploy.Event{Event: track.Event{Kind: track.LogWritten, Status: track.Status{ID: viewtest.WebID()}, Log: &track.LogLine{
						Pod: "web-6d8f-k2x9n", Container: "app", Text: fmt.Sprintf("line %d %s", i, strings.Repeat("x", 80)),
					}}})
				}
				e.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Err: errors.New("the end of it")}))
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
			if err := e.end(); err != nil {
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
