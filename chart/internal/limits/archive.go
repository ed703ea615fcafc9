package limits

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// maxFiles is how many files an archive of a chart may have. Helm limits only their sizes, and each takes memory.
const maxFiles = 50_000

// Load is Helm's loader.Load for an archive or a directory. An archive with more files than any chart has is an error.
func Load(path string) (*helmchart.Chart, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return LoadDir(path)
	}
	if err != nil || !info.Mode().IsRegular() {
		return loader.Load(path) // and its error
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := checkFiles(archive); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return loader.Load(path)
}

// LoadArchive is Load for the content of an archive.
func LoadArchive(archive []byte) (*helmchart.Chart, error) {
	if err := checkFiles(archive); err != nil {
		return nil, err
	}
	return loader.LoadArchive(bytes.NewReader(archive))
}

// checkFiles counts the files of an archive. What else is wrong with it the loader says.
func checkFiles(archive []byte) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil
	}
	files := tar.NewReader(unzipped)
	for n := 1; ; n++ {
		header, err := files.Next()
		switch {
		case err != nil:
			return nil
		case n > maxFiles:
			return fmt.Errorf("the archive has more than %d files", maxFiles)
		case header.Size > maxFileSize:
			return nil // which the loader refuses
		}
	}
}

// maxFileSize is more than Helm's limit for one file, so that a file that unpacks to more isn't unpacked to count the others.
const maxFileSize = 64 << 20
