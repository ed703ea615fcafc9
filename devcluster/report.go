package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// reportFD is the file descriptor on which a supervisor tells whoever started
// it how the start goes.
const reportFD = 3

// message is one thing a supervisor has to tell; one field is set.
type message struct {
	Progress string `json:"progress,omitempty"`
	Error    string `json:"error,omitempty"`
	Ready    bool   `json:"ready,omitempty"`
}

// writeReports gives a function that sends messages. Nobody listening is no
// error: the reader leaves when the cluster is ready.
func writeReports(w io.Writer) func(message) {
	encoder := json.NewEncoder(w)
	return func(m message) { _ = encoder.Encode(m) }
}

// readReports shows progress on standard error until the cluster is ready. It
// returns the error the supervisor reports.
func readReports(r io.Reader, l layout) error {
	began := time.Now()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return fmt.Errorf("reading what the supervisor says: %w", err)
		}
		switch {
		case m.Ready:
			return nil
		case m.Error != "":
			return errors.New(m.Error)
		}
		fmt.Fprintf(os.Stderr, "devcluster: %4.1fs  %s\n", time.Since(began).Seconds(), m.Progress)
	}
	return fmt.Errorf("the supervisor ended without a word; the end of %s:\n%s", l.supervisorLog(), tail(l.supervisorLog(), 15))
}
