package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"deployer/internal/kube"
	"deployer/internal/program"
)

// readSecret asks for a password on the terminal, without showing it. When ctx
// ends the terminal shows again what is typed.
func (c *console) readSecret(ctx context.Context, question string) (string, error) {
	fd := -1 // asked for once: whoever is left reading below may outlive the file
	if in, ok := c.streams.In.(*os.File); ok {
		fd = int(in.Fd())
	}
	if !term.IsTerminal(fd) {
		return "", program.WithHint(errors.New("a password is needed, but standard input is not a terminal"), "pipe it in with --password-stdin")
	}
	shows, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	var secret []byte
	err = c.ask(ctx, question, func() (err error) {
		secret, err = term.ReadPassword(fd)
		return err
	})
	fmt.Fprintln(c.streams.Err)
	if err != nil && ctx.Err() != nil { // whoever reads is left to the end of the process
		return "", errors.Join(err, term.Restore(fd, shows))
	}
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return string(secret), nil
}

// readLine asks for a line on the terminal.
func (c *console) readLine(ctx context.Context, question string) (string, error) {
	var line string
	err := c.ask(ctx, question, func() (err error) {
		line, err = bufio.NewReader(c.streams.In).ReadString('\n')
		return err
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// ask waits for an answer, or until ctx ends: a read can't be told to stop.
func (c *console) ask(ctx context.Context, question string, answer func() error) error {
	fmt.Fprint(c.streams.Err, question)
	return kube.WaitFor(ctx, answer)
}

// readPipedSecret is --password-stdin: all of standard input but its last line end.
func (c *console) readPipedSecret(ctx context.Context) (string, error) {
	var data []byte
	if err := kube.WaitFor(ctx, func() (err error) {
		data, err = io.ReadAll(c.streams.In)
		return err
	}); err != nil {
		return "", fmt.Errorf("reading the password from standard input: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

func (c *console) readPassword(ctx context.Context, stdin bool) (string, error) {
	if stdin {
		return c.readPipedSecret(ctx)
	}
	return c.readSecret(ctx, "Password: ")
}

// passphrases gives the passphrase of a signing key: the first line of a file
// or of standard input (-), or when path is empty what the user types.
func (c *console) passphrases(ctx context.Context, path string) func(key string) ([]byte, error) {
	return func(key string) ([]byte, error) {
		if path == "" {
			secret, err := c.readSecret(ctx, fmt.Sprintf("Password for key %q >  ", key))
			return []byte(secret), err
		}
		in := c.streams.In
		if path != "-" {
			file, err := os.Open(path)
			if err != nil {
				return nil, fmt.Errorf("reading the passphrase: %w", err)
			}
			defer file.Close()
			in = file
		}
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && (line == "" || !errors.Is(err, io.EOF)) {
			return nil, fmt.Errorf("reading the passphrase: %w", err)
		}
		return []byte(strings.TrimRight(line, "\r\n")), nil
	}
}
