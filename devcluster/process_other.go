//go:build !linux

package main

import "syscall"

// dieWithParent can do nothing here: the closed pipe on standard input has to
// be enough, see controlplane.ExitWithSupervisor.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// nodeRoles is empty: a kubelet needs Linux.
func nodeRoles() map[string]func(args []string) int { return nil }
