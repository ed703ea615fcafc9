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

// requestsSince counts what the program has asked since a place in the log.
func (p *program) requestsSince(ctx context.Context, from int64) (int, error) {
	if p.auditLog == "" {
		return -1, nil
	}
	last := -1
	for {
		n, err := p.count(from)
		if err != nil || n == last {
			return n, err
		}
		last = n
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(auditQuiet):
		}
	}
}

// count reads the log once. A watch is logged twice, and counts once.
func (p *program) count(from int64) (int, error) {
	file, err := os.Open(p.auditLog)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	seen := map[string]bool{}
	for lines := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return len(seen), nil
		}
		if err != nil {
			return 0, err
		}
		if !bytes.Contains(line, []byte(p.agent)) {
			continue
		}
		var event struct{ AuditID, UserAgent string }
		if err := json.Unmarshal(line, &event); err != nil {
			return 0, err
		}
		if strings.HasPrefix(event.UserAgent, p.agent) {
			seen[event.AuditID] = true
		}
	}
}
