package limits

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// LoadDir is Helm's loader.LoadDir for a directory that may have broken symbolic links which its .helmignore names.
func LoadDir(dir string) (*helmchart.Chart, error) {
	usable, cleanup, err := WithoutBrokenLinks(dir)
	defer cleanup()
	if err != nil {
		return nil, err
	}
	return loader.LoadDir(usable)
}

// inPlaceOfLink is a file in the directory that is put in the place of a broken link.
const inPlaceOfLink = "broken-link"

// WithoutBrokenLinks returns a chart directory that Helm can load: the given one, or if that has broken symbolic links, all of
// which .helmignore names, a copy without them. Helm follows links before it looks whether they are ignored.
func WithoutBrokenLinks(dir string) (usable string, cleanup func(), err error) {
	cleanup = func() {}
	broken := brokenLinks(dir)
	if len(broken) == 0 {
		return dir, cleanup, nil
	}
	temporary, err := os.MkdirTemp("", "deployer-chart-")
	if err != nil {
		return "", cleanup, err
	}
	cleanup = func() { os.RemoveAll(temporary) } // leftovers in the temporary directory harm nobody
	usable = filepath.Join(temporary, filepath.Base(dir))
	if err := linkTree(dir, usable); err != nil {
		return "", cleanup, err
	}
	// Helm's rules tell which of them are ignored: what stands in their place isn't loaded then.
	loaded, err := loader.LoadDir(usable)
	if err != nil {
		return "", cleanup, err
	}
	for _, link := range broken {
		name := path.Join(filepath.ToSlash(link), inPlaceOfLink)
		if slices.ContainsFunc(loaded.Raw, func(f *helmchart.File) bool { return f.Name == name }) {
			return dir, cleanup, nil // and Helm's error
		}
		if err := os.RemoveAll(filepath.Join(usable, link)); err != nil {
			return "", cleanup, err
		}
	}
	return usable, cleanup, nil
}

// brokenLinks lists the symbolic links below a directory that lead nowhere.
func brokenLinks(dir string) []string {
	var out []string
	// What can't be read is reported by whoever loads the chart.
	_ = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSymlink != 0 {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				out = append(out, name)
			}
		}
		return nil
	})
	return out
}

// linkTree makes a directory with the files of another one, and with directories in the place of broken links.
func linkTree(from, to string) error {
	return fs.WalkDir(os.DirFS(from), ".", func(name string, entry fs.DirEntry, err error) error {
		source, target := filepath.Join(from, name), filepath.Join(to, name)
		if err != nil || entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		resolved, err := filepath.EvalSymlinks(source)
		if err != nil {
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(target, inPlaceOfLink), nil, 0o644)
		}
		if resolved, err = filepath.Abs(resolved); err != nil {
			return err
		}
		if info, err := os.Stat(resolved); err == nil && info.Mode().IsRegular() && os.Link(resolved, target) == nil {
			return nil
		}
		return os.Symlink(resolved, target)
	})
}
