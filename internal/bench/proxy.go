package main

import (
	"context"
	"net"
	"sync"
	"time"
)

// A delayProxy passes TCP connections on to an API server that it makes look far away: all that is sent
// arrives later, in either direction, and no less of it.
type delayProxy struct {
	listener net.Listener
	to       string        // host:port
	oneWay   time.Duration // how long each direction takes
	open     sync.WaitGroup
}

// startDelayProxy listens on a port of this machine until ctx ends.
func startDelayProxy(ctx context.Context, to string, oneWay time.Duration) (*delayProxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &delayProxy{listener: listener, to: to, oneWay: oneWay}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	p.open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // ctx has ended
			}
			p.open.Go(func() { p.serve(ctx, client) })
		}
	})
	return p, nil
}

// address is where clients connect to.
func (p *delayProxy) address() string { return p.listener.Addr().String() }

// serve passes one connection on, until both sides have ended it.
func (p *delayProxy) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	// The kernel has answered the client already. What the client sends now it would send after a round trip.
	opened := time.Now().Add(2 * p.oneWay)
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.to)
	if err != nil {
		return // the client sees a closed connection
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { client.Close(); server.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { p.pass(client, server, opened) })
	both.Go(func() { p.pass(server, client, opened) })
	both.Wait()
}

// A parcel is some bytes on their way.
type parcel struct {
	data []byte
	due  time.Time
}

// pass copies what comes from one side to the other, each parcel when it is due, and its end last.
func (p *delayProxy) pass(from, to net.Conn, opened time.Time) {
	parcels := make(chan parcel, 1<<12)
	var writing sync.WaitGroup
	writing.Go(func() {
		for next := range parcels {
			time.Sleep(time.Until(next.due))
			if _, err := to.Write(next.data); err != nil {
				_ = from.Close() // so that reading ends; the rest is thrown away
			}
		}
	})
	for {
		data := make([]byte, 64<<10)
		n, err := from.Read(data)
		sent := time.Now()
		if sent.Before(opened) {
			sent = opened
		}
		parcels <- parcel{data: data[:n], due: sent.Add(p.oneWay)}
		if err != nil {
			break
		}
	}
	close(parcels)
	writing.Wait()
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}
