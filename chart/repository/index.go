package repository

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/repo"
)

// IndexOptions say how an index is written.
type IndexOptions struct {
	URL   string // that the charts will be found below; empty leaves file names
	Merge string // index whose entries are kept beside those of the directory
	JSON  bool   // write index.yaml in JSON
}

// Index writes index.yaml for the chart archives in a directory. An index to
// merge that isn't there is made, empty, as Helm does.
func Index(dir string, opts IndexOptions) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("indexing %s: %w", dir, err)
	}
	index, err := repo.IndexDirectory(dir, opts.URL)
	if err != nil {
		return fmt.Errorf("indexing %s: %w", dir, err)
	}
	if opts.Merge != "" {
		other, err := opts.mergedIndex()
		if err != nil {
			return err
		}
		index.Merge(other)
	}
	index.SortEntries()
	return opts.write(index, filepath.Join(dir, "index.yaml"))
}

func (o IndexOptions) mergedIndex() (*repo.IndexFile, error) {
	if _, err := os.Stat(o.Merge); errors.Is(err, os.ErrNotExist) {
		empty := repo.NewIndexFile()
		return empty, o.write(empty, o.Merge)
	}
	other, err := repo.LoadIndexFile(o.Merge)
	if err != nil {
		return nil, fmt.Errorf("merge failed: %w", err)
	}
	return other, nil
}

func (o IndexOptions) write(index *repo.IndexFile, path string) error {
	write := index.WriteFile
	if o.JSON {
		write = index.WriteJSONFile
	}
	if err := write(path, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
