package main

import (
	"io"
	"os"
	"time"
)

// stderrGrace is how long the program waits at its end for what others still write to standard
// error. A process that a credential plugin has left running may never close it.
const stderrGrace = 100 * time.Millisecond

// filterStderr replaces os.Stderr, to which libraries and the credential plugins of client-go
// write, by a pipe to filtered, the filter of our own text. The function that it returns undoes
// that. If errOut isn't os.Stderr, as in tests, it does nothing.
// (k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go)
func filterStderr(errOut io.Writer, filtered io.Writer) func() {
	own := os.Stderr
	if errOut != own {
		return func() {}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return func() {} // too many files are open, and the command will say so
	}
	os.Stderr = write
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(filtered, read)
		_, _ = io.Copy(io.Discard, read) // so that nobody waits when filtered can't be written
	}()
	return func() {
		os.Stderr = own
		write.Close()
		_ = read.SetReadDeadline(time.Now().Add(stderrGrace))
		<-done
		read.Close()
	}
}
