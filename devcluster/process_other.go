//go:build !linux

package main

import "syscall"

// dieWithParent can do nothing here: the closed pipe on standard input has to
// be enough, see controlplane.ExitWithSupervisor.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{}
}

// isolate can't do anything here; there are no real nodes either.
func isolate(*syscall.SysProcAttr) {}
