package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"
)

// auditQuiet is how long the log has to bring nothing new from a program that has
// ended before its requests are taken to be all there.
const auditQuiet = 300 * time.Millisecond

// auditEnd is where the audit log ends now; 0 without one.
func (p *program) auditEnd() (int64, error) {
	if p.auditLog == "" {
		return 0, nil
	}
	info, err := os.Stat(p.auditLog)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// idle is less than what the log of a cluster grows by in a second while it does
// anything but keep itself alive, in bytes.
const idle = 16 << 10

// awaitIdle waits until the cluster is idle: its controllers work for many seconds
// on thousands of objects that the program before has made.
func (p *program) awaitIdle(ctx context.Context) error {
	if p.auditLog == "" {
		return nil
	}
	before, err := p.auditEnd()
	for err == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		var now int64
		now, err = p.auditEnd()
		if err == nil && now-before < idle {
			return nil
		}
		before = now
	}
	return err
}

// requestCounts are what a program has asked of the API server.
type requestCounts struct {
	requests int // -1 when not known
	writes   int // of objects; not records, locks and dry runs
}

// requestsSince counts what the program has asked since a place in the log.
func (p *program) requestsSince(ctx context.Context, from int64) (requestCounts, error) {
	if p.auditLog == "" {
		return requestCounts{requests: -1}, nil
	}
	last := requestCounts{requests: -1}
	for {
		n, err := p.count(from)
		if err != nil || n == last {
			return n, err
		}
		last = n
		select {
		case <-ctx.Done():
			return requestCounts{}, ctx.Err()
		case <-time.After(auditQuiet):
		}
	}
}

// An event is as much of a line of the log as is needed.
type event struct {
	AuditID, UserAgent, Verb, RequestURI string

	ObjectRef struct{ Resource, Name string }
}

// writes reports whether the request was to change an object of the release.
func (e event) writes() bool {
	switch {
	case e.Verb == "get" || e.Verb == "list" || e.Verb == "watch", strings.Contains(e.RequestURI, "dryRun=All"):
		return false
	case e.ObjectRef.Resource == "selfsubjectaccessreviews": // it asks about permissions and stores nothing
		return false
	}
	return e.ObjectRef.Resource != "secrets" && e.ObjectRef.Resource != "leases"
}

// count reads the log once. A watch is logged twice, and counts once.
func (p *program) count(from int64) (requestCounts, error) {
	file, err := os.Open(p.auditLog)
	if err != nil {
		return requestCounts{}, err
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return requestCounts{}, err
	}
	var out requestCounts
	seen := map[string]bool{}
	for lines := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return requestCounts{}, err
		}
		if !bytes.Contains(line, []byte(p.agent)) {
			continue
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return requestCounts{}, err
		}
		if !strings.HasPrefix(e.UserAgent, p.agent) || seen[e.AuditID] {
			continue
		}
		seen[e.AuditID] = true
		out.requests++
		if e.writes() {
			out.writes++
		}
	}
}
