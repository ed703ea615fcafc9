package main

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken from below the range that operating systems use for outgoing
// connections, or the port could be gone between this look and its use.
const (
	firstPort = 20000
	lastPort  = 32000
)

// freePort finds a free port on the loopback address.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		listener.Close()
		return port, nil
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 between %d and %d: %w; a firewall or sandbox may forbid listening", firstPort, lastPort, last)
}
