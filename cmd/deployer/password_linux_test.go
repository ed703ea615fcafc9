package main

import (
	"context"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"

	"golang.org/x/term"

	"deployer/internal/deployertest"
	"deployer/internal/view/output"
)

// Ctrl-C at a password prompt ends it, and the terminal shows again what is typed.
func TestPasswordPromptEndsWithItsContext(t *testing.T) {
	_, tty := deployertest.Terminal(t)
	state := func() *term.State {
		s, err := term.GetState(int(tty.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	shows := state()
	e := &env{console: console{streams: output.NewStreams(tty, io.Discard, io.Discard, "deployer")}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := e.readSecret(ctx, "Password: ")
		ended <- err
	}()
	for began := time.Now(); reflect.DeepEqual(state(), shows); {
		if time.Since(began) > time.Minute {
			t.Fatal("the password would be shown")
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if !reflect.DeepEqual(state(), shows) {
		t.Error("the terminal doesn't show what is typed")
	}
}
