package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// readSecret asks for a password on the terminal, without showing it.
func (e *env) readSecret(prompt string) (string, error) {
	in, ok := e.streams.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return "", hinted{error: errors.New("a password is needed, and there is no terminal to ask on"), hint: "pipe it in with --password-stdin"}
	}
	fmt.Fprint(e.streams.Err, prompt)
	secret, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(e.streams.Err)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return string(secret), nil
}

// readLine asks for a line on the terminal.
func (e *env) readLine(prompt string) (string, error) {
	fmt.Fprint(e.streams.Err, prompt)
	line, err := bufio.NewReader(e.streams.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// pipedSecret is --password-stdin: all of standard input but its last line end.
func (e *env) pipedSecret() (string, error) {
	data, err := io.ReadAll(e.streams.In)
	if err != nil {
		return "", fmt.Errorf("reading the password from standard input: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

// passphrases gives the passphrase of a signing key: the first line of a file
// or of standard input (-), or when path is empty what the user types.
func (e *env) passphrases(path string) func(key string) ([]byte, error) {
	return func(key string) ([]byte, error) {
		if path == "" {
			secret, err := e.readSecret(fmt.Sprintf("Password for key %q >  ", key))
			return []byte(secret), err
		}
		in := e.streams.In
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
