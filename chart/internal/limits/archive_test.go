package limits

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
)

// TestArchivesWithTooManyFiles: millions of empty files take gigabytes, and no limit of Helm counts them.
func TestArchivesWithTooManyFiles(t *testing.T) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	files := tar.NewWriter(zipped)
	for i := range maxFiles + 1 {
		if err := files.WriteHeader(&tar.Header{Name: fmt.Sprintf("c/files/%d", i), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadArchive(out.Bytes()); err == nil || !strings.Contains(err.Error(), "more than 50000 files") {
		t.Errorf("LoadArchive = %v", err)
	}
}
