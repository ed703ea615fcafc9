package main

import (
	"io"
	"os"
	"time"
)

// lastWords is how long the end of the program waits for what others write to standard
// error: a process that a credential plugin has left running may hold it open.
const lastWords = 100 * time.Millisecond

// filterStderr sends what libraries and the credential plugins of client-go write to
// standard error through the filter that all of our own text goes through. The function
// it returns ends that. Where standard error isn't the program's, it does nothing.
// (k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go)
func filterStderr(errOut io.Writer, filtered io.Writer) func() {
	own := os.Stderr
	if errOut != own {
		return func() {}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return func() {} // without files to open nothing will come of the run either
	}
	os.Stderr = write
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(filtered, read) // who can't read it misses nothing that counts
		_, _ = io.Copy(io.Discard, read)
	}()
	return func() {
		os.Stderr = own
		write.Close()
		_ = read.SetReadDeadline(time.Now().Add(lastWords))
		<-done
		read.Close()
	}
}
