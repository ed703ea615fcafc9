package run

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"deployer/internal/view/output"
)

// TestReportsReplaceNoDevice: a report for /dev/stdout or a pipe is written into it. Replaced by a
// file, a device would be gone for everybody.
func TestReportsReplaceNoDevice(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		data, err := os.ReadFile(pipe)
		if err != nil {
			t.Error(err)
		}
		got <- string(data)
	}()
	if err := errors.Join(CheckWritable(pipe), writeOutcomeFile(pipe, []byte("told"))); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "told" {
		t.Errorf("the reader got %q", text)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is now %v, %v", info, err)
	}
	link := filepath.Join(t.TempDir(), "full") // not /dev/full itself: a failure would replace it
	if err := os.Symlink("/dev/full", link); err != nil {
		t.Fatal(err)
	}
	if err := writeOutcomeFile(link, []byte("told")); !errors.As(err, new(*output.WriteError)) {
		t.Errorf("a full device: %v", err)
	}
}

// TestReportsReplaceLinks: the file that a link leads to stays as it is. In a directory that others may write, they could have
// a report written over any file of the user.
func TestReportsReplaceLinks(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("old"), 0o644), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	if err := writeOutcomeFile(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "old" {
		t.Errorf("the file has %q, %v", data, err)
	}
	if data, err := os.ReadFile(link); err != nil || string(data) != "new" {
		t.Errorf("the report has %q, %v", data, err)
	}
}
