//go:build unix

package kubetest

import (
	"os"
	"syscall"
)

// held keeps the lock's file open, and with it the lock, until the process ends.
var held *os.File

// holdShared tells the supervisor of a cluster that this process uses it. While
// the supervisor is busy stopping the cluster, it waits.
func holdShared(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH)
		if err != syscall.EINTR { //nolint:errorlint // a system call returns it bare
			break
		}
	}
	if err != nil {
		f.Close()
		return err
	}
	if held != nil {
		held.Close()
	}
	held = f
	return nil
}
