package planfile

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"deployer/internal/program"
)

// magic is the first word of every plan file.
const magic = "deployer-plan"

// maxFile limits the size of a plan file: enough for hundreds of charts.
const maxFile = 256 << 20

// A header is the first line of a file. The second is the File. Both are JSON.
type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Digest  string `json:"digest"` // of the second line
	Seal    string `json:"seal"`   // keyed digest of the same; see Open
}

// sign encodes the file, and adds the digest and the keyed digest of that.
func (f *File) sign(k key) error {
	line, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encoding the plan: %w", err)
	}
	f.line, f.digest, f.seal = line, digestOf(line), k.sign(line)
	return nil
}

func digestOf(line []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(line)) }

// write writes the plan to a file: see Save.
func (f *File) write(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	head, err := json.Marshal(header{Format: magic, Version: Version, Digest: f.digest, Seal: f.seal})
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".plan-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(tmp, "%s\n%s\n", head, f.line)
	if err == nil {
		err = tmp.Sync()
	}
	if err = cmp.Or(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // what can't be removed is not worth an error of its own
	}
	return err
}

// Read reads a plan and checks that it is complete and unchanged, as far as that is
// possible without the key. The error is a *TamperedError, that of a newer format, or that of
// reading.
func Read(path string) (*File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	if len(data) > maxFile {
		return nil, &TamperedError{Path: path, Why: "it is larger than a plan can be"}
	}
	return parse(path, data)
}

func parse(path string, data []byte) (*File, error) {
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	var h header
	if err := json.Unmarshal(first, &h); err != nil || h.Format != magic {
		return nil, &TamperedError{Path: path, Why: "it doesn't begin like a plan", Foreign: true}
	}
	if h.Version > Version || h.Version < 1 {
		return nil, program.WithHint(
			fmt.Errorf("%s has version %d of the plan format; this deployer knows versions up to %d", path, h.Version, Version),
			"use the deployer that made the plan, or a newer one")
	}
	line, tail, ended := bytes.Cut(rest, []byte("\n"))
	if !ended || len(tail) > 0 {
		return nil, &TamperedError{Path: path, Why: "it is truncated, or something was appended to it"}
	}
	if h.Digest != digestOf(line) {
		return nil, &TamperedError{Path: path, Why: "its content doesn't match its digest"}
	}
	f := &File{line: line, digest: h.Digest, seal: h.Seal}
	if err := json.Unmarshal(line, f); err != nil {
		return nil, &TamperedError{Path: path, Why: err.Error()}
	}
	if encoded, err := json.Marshal(h); err != nil || !bytes.Equal(encoded, first) {
		return nil, &TamperedError{Path: path, Why: "its first line was altered"}
	}
	return f, nil
}
