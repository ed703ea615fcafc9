package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// auditQuiet is how long the audit log has to bring nothing new from a program that has ended before its
// requests are taken to be all there.
const auditQuiet = 300 * time.Millisecond

// auditEnd is where the audit log ends now; 0 without one.
func (w *world) auditEnd() (int64, error) {
	if w.auditLog == "" {
		return 0, nil
	}
	info, err := os.Stat(w.auditLog)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// requestsSince counts what a program has asked since a place in the audit log; -1 without one.
func (w *world) requestsSince(ctx context.Context, from int64, program string) (float64, error) {
	if w.auditLog == "" {
		return -1, nil
	}
	for last := -1; ; {
		n, err := countRequests(w.auditLog, from, program)
		if err != nil || n == last {
			return float64(n), err
		}
		last = n
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(auditQuiet):
		}
	}
}

// countRequests counts the lines of a program in the audit log. A watch has two lines, and counts when it ends.
func countRequests(path string, from int64, program string) (count int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	agent := []byte(`"userAgent":"` + program + "/")
	for lines := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return count, nil
		case err != nil:
			return 0, err
		case containsFold(line, agent) && bytes.Contains(line, []byte(`"stage":"ResponseComplete"`)):
			count++
		}
	}
}

// containsFold is for user agents: Helm's begins with a capital letter, the name of its binary doesn't.
func containsFold(line, agent []byte) bool {
	return bytes.Contains(bytes.ToLower(line), bytes.ToLower(agent))
}
