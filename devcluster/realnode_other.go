//go:build !linux

package main

import (
	"errors"
	"net"
)

// errNoRealNode is returned for --real-node where there can't be one.
var errNoRealNode = errors.New("a real node needs Linux; leave out --real-node for simulated nodes")

// programs are programs of other projects that a real node needs.
type programs struct{ plugins, busybox string }

func nodeRoles() map[string]func(args []string) int { return nil }

func checkRealNode() error { return errNoRealNode }

func findPrograms() (programs, error) { return programs{}, errNoRealNode }

func createBridge(layout) (*net.IPNet, error) { return nil, errNoRealNode }

// sweepNode has nothing to do: nothing of a real node can be here.
func sweepNode(layout) error { return nil }
