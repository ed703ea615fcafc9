package plugin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	helmplugin "helm.sh/helm/v3/pkg/plugin"
	"helm.sh/helm/v3/pkg/plugin/installer"
)

const (
	// archiveLimit keeps an archive from filling memory or disk; plugins with
	// binaries for all platforms have less.
	archiveLimit = 1 << 30
	// askTimeout is how long a server may take to answer the HEAD request.
	askTimeout = 30 * time.Second
)

// isRemoteArchive reports whether a URL is that of an archive: by its Content-Type, as in
// Helm, or by its name, for servers such as GitHub's that send a generic Content-Type.
// (helm.sh/helm/v3/pkg/plugin/installer/installer.go, isRemoteHTTPArchive)
func isRemoteArchive(ctx context.Context, from string) bool {
	u, err := url.Parse(from)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	if isArchive(u.Path) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	response, err := request(ctx, http.MethodHead, from)
	if err != nil {
		return false
	}
	response.Body.Close()
	kind, _, _ := strings.Cut(strings.ToLower(response.Header.Get("Content-Type")), ";")
	return slices.Contains([]string{"application/gzip", "application/x-gzip", "application/x-tgz", "application/x-gtar"}, kind)
}

func request(ctx context.Context, method, address string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(q)
}

func download(ctx context.Context, from string) ([]byte, error) {
	response, err := request(ctx, http.MethodGet, from)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("failed to fetch %s : %s", from, response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, archiveLimit+1))
	if err != nil {
		return nil, fmt.Errorf("failed to fetch %s : %w", from, err)
	}
	if len(data) > archiveLimit {
		return nil, fmt.Errorf("%s has more than %d MiB", from, archiveLimit>>20)
	}
	return data, nil
}

// archiveSource returns the source of a plugin in an archive. It is unpacked in the cache
// first, so that Helm never loads a partly unpacked plugin.
func archiveSource(places Places, read func() ([]byte, error)) func(Host, string) error {
	return func(h Host, dir string) error {
		data, err := read()
		if err != nil {
			return err
		}
		unpacked, err := places.temporary("archive-")
		if err != nil {
			return fmt.Errorf("creating the directory for the archive: %w", err)
		}
		defer os.RemoveAll(unpacked)
		if err := extract(data, unpacked); err != nil {
			return fmt.Errorf("extracting files from archive: %w", err)
		}
		root, err := rootOf(unpacked)
		if err != nil {
			return err
		}
		h.verbose("copying %s to %s", root, dir)
		return os.CopyFS(dir, os.DirFS(root))
	}
}

// rootOf is where in an archive plugin.yaml is: at its top or, as Helm 4 takes it
// too, in a directory there.
func rootOf(dir string) (string, error) {
	for _, pattern := range []string{"", "*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern, helmplugin.PluginFileName))
		if err != nil {
			return "", err
		}
		if len(found) == 1 {
			return filepath.Dir(found[0]), nil
		}
	}
	return "", installer.ErrMissingMetadata
}

// extract unpacks files and directories. Links and paths that lead out of the
// directory are errors.
func extract(data []byte, dir string) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // no path may leave dir
	if err != nil {
		return err
	}
	defer root.Close()
	left := int64(archiveLimit)
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if left -= header.Size; left < 0 {
			return fmt.Errorf("it has more than %d MiB", archiveLimit>>20)
		}
		if err := unpack(root, header, archive); err != nil {
			return err
		}
	}
}

func unpack(root *os.Root, header *tar.Header, content io.Reader) error {
	name := path.Clean(strings.ReplaceAll(header.Name, `\`, "/"))
	switch header.Typeflag {
	case tar.TypeXGlobalHeader, tar.TypeXHeader:
		return nil
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		file, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, os.FileMode(header.Mode)&0o777|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	}
	return fmt.Errorf("%q is neither a file nor a directory", header.Name)
}
