package main

import (
	"context"
	"net"
	"sync"
	"time"
)

// startDelayProxy listens on a port of this machine until ctx ends, and passes TCP connections on to an API server that it
// makes look far away: all that is sent arrives later, in either direction, and no less of it.
func startDelayProxy(ctx context.Context, to string, oneWay time.Duration) (address string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // ctx has ended
			}
			// The kernel has answered the client already. What the client sends now it would send after a round trip.
			opened := time.Now().Add(2 * oneWay)
			server, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			go func() {
				defer client.Close()
				defer server.Close()
				var both sync.WaitGroup
				both.Go(func() { pass(client, server, opened, oneWay) })
				both.Go(func() { pass(server, client, opened, oneWay) })
				both.Wait()
			}()
		}
	}()
	return listener.Addr().String(), nil
}

// A parcel is some bytes on their way.
type parcel struct {
	data []byte
	due  time.Time
}

// pass copies what comes from one side to the other, each parcel when it is due, and its end last.
func pass(from, to net.Conn, opened time.Time, oneWay time.Duration) {
	parcels := make(chan parcel, 1<<12)
	go func() {
		defer close(parcels)
		for {
			data := make([]byte, 64<<10)
			n, err := from.Read(data)
			sent := time.Now()
			if sent.Before(opened) {
				sent = opened
			}
			parcels <- parcel{data[:n], sent.Add(oneWay)}
			if err != nil {
				return
			}
		}
	}()
	for next := range parcels {
		time.Sleep(time.Until(next.due))
		if _, err := to.Write(next.data); err != nil {
			_ = from.Close() // so that reading ends; the rest is thrown away
		}
	}
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}
