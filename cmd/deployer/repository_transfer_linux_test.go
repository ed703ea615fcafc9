package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"deployer/internal/deployertest"
)

// half is where a slow server stops: of what is longer, it gives and takes the
// rest only when the terminal has shown how far it is.
const half = 200_000

// A slow is a server that stops at half until seen is closed.
type slow struct {
	http.Handler
	seen <-chan struct{}
}

func (s slow) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	q.Body = &slowBody{ReadCloser: q.Body, seen: s.seen}
	s.Handler.ServeHTTP(&slowAnswer{ResponseWriter: w, seen: s.seen}, q)
}

type slowBody struct {
	io.ReadCloser
	read int
	seen <-chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.read >= half {
		<-b.seen
	}
	n, err := b.ReadCloser.Read(p)
	b.read += n
	return n, err
}

type slowAnswer struct {
	http.ResponseWriter
	written int
	seen    <-chan struct{}
}

func (a *slowAnswer) Write(p []byte) (int, error) {
	n := 0
	if room := half - a.written; room >= 0 && room < len(p) {
		var err error
		if n, err = a.ResponseWriter.Write(p[:room]); err != nil {
			return n, err
		}
		if err := http.NewResponseController(a.ResponseWriter).Flush(); err != nil {
			return n, err
		}
		<-a.seen
	}
	m, err := a.ResponseWriter.Write(p[n:])
	a.written += n + m
	return n + m, err
}

// How much of a chart has been fetched or pushed is shown on a terminal, for a
// web server and for a registry that speaks HTTP, and is gone in the end.
func TestTransfersAreShown(t *testing.T) {
	t.Setenv("CI", "")
	t.Setenv("TERM", "xterm")
	for _, name := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	dir := bigChart(t)
	archive := filepath.Join(dir, "big-1.0.0.tgz")
	if code := execute(context.Background(), []string{"deployer", "package", filepath.Join(dir, "big"), "-d", dir}, nil, io.Discard, io.Discard); code != 0 {
		t.Fatalf("package: exit code %d", code)
	}
	web, hub := http.FileServer(http.Dir(dir)), registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	for _, c := range []struct {
		name   string
		server http.Handler
		args   []string // with the server's address for ADDRESS
	}{
		{"from a web server", web, []string{"pull", "http://ADDRESS/big-1.0.0.tgz", "-d", t.TempDir()}},
		{"to be rendered", web, []string{"template", "http://ADDRESS/big-1.0.0.tgz"}},
		{"to a registry", hub, []string{"push", archive, "oci://ADDRESS/charts", "--plain-http"}},
		{"from a registry", hub, []string{"pull", "oci://ADDRESS/charts/big", "--version", "1.0.0", "-d", t.TempDir()}},
	} {
		t.Run(c.name, func(t *testing.T) { testShown(t, c.server, c.args) })
	}
}

func testShown(t *testing.T, handler http.Handler, args []string) {
	seen := make(chan struct{})
	server := httptest.NewServer(slow{handler, seen})
	defer server.Close()
	see := sync.OnceFunc(func() { close(seen) })
	defer time.AfterFunc(time.Minute, see).Stop()
	screen, tty := deployertest.Terminal(t)
	text := make(chan string)
	go func() { text <- readUntil(screen, regexp.MustCompile(`0\.\d of 0\.5 MB`), see) }()
	line := []string{"deployer"}
	for _, a := range args {
		line = append(line, strings.ReplaceAll(a, "ADDRESS", server.Listener.Addr().String()))
	}
	if code := execute(context.Background(), line, nil, io.Discard, tty); code != 0 {
		t.Errorf("%s: exit code %d", strings.Join(line, " "), code)
	}
	tty.Close()
	shown := <-text
	last := strings.LastIndex(shown, " of 0.5 MB")
	if last < 0 {
		t.Fatalf("how far it is wasn't shown: %q", shown)
	}
	if !strings.Contains(shown[last:], "\x1b[2K") {
		t.Errorf("it isn't taken away in the end: %q", shown[last:])
	}
}

// readUntil reads all there is, and tells when a pattern has come.
func readUntil(from io.Reader, want *regexp.Regexp, tell func()) string {
	var all bytes.Buffer
	part := make([]byte, 4096)
	for {
		n, err := from.Read(part)
		all.Write(part[:n])
		if want.Match(all.Bytes()) {
			tell()
		}
		if err != nil { // the terminal is closed
			return all.String()
		}
	}
}

// bigChart makes a chart of half a megabyte, and returns the directory it is in.
func bigChart(t *testing.T) string {
	t.Helper()
	noise := make([]byte, 500_000)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"Chart.yaml": []byte("apiVersion: v2\nname: big\nversion: 1.0.0\n"), "noise": noise,
	} {
		path := filepath.Join(dir, "big", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
