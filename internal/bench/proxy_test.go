package main

import (
	"io"
	"net"
	"testing"
	"time"
)

// A proxy that loses, reorders or holds back bytes would measure something else than distance.
func TestDelayProxyPassesAllBytesLate(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() { // echoes until the client has said all
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}()
	const oneWay = 30 * time.Millisecond
	address, err := startDelayProxy(t.Context(), server.Addr().String(), oneWay)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent := make([]byte, 3<<20)
	for i := range sent {
		sent[i] = byte(i * 7919 >> 3)
	}
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		t.Fatal(err)
	}
	// Connecting is a round trip, and so is the answer. A slow machine takes longer.
	if took := time.Since(began); took < 4*oneWay {
		t.Errorf("the first byte came back after %s, want %s at least", took, 4*oneWay)
	}
	rest, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	got := append(first, rest...)
	if len(got) != len(sent) {
		t.Fatalf("%d bytes came back, want %d", len(got), len(sent))
	}
	for i := range got {
		if got[i] != sent[i] {
			t.Fatalf("byte %d is %d, want %d", i, got[i], sent[i])
		}
	}
}
