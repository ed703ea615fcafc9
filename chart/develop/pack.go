package develop

import (
	"cmp"
	"fmt"
	"os"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/provenance"

	"deployer/chart"
	"deployer/chart/internal/limits"
)

// PackageOptions say how a chart directory is packaged.
type PackageOptions struct {
	Version     string // instead of the chart's; empty leaves it
	AppVersion  string // instead of the chart's; empty leaves it
	Destination string // directory of the archive; empty means the current one
	Signer      *Signer
}

// A Signer signs archives with a key of a PGP keyring.
type Signer struct {
	Key     string // name of the key, or part of it
	Keyring string // file of secret keys; empty means GnuPG's
	// Passphrase is called when the key is encrypted.
	Passphrase func(key string) ([]byte, error)
}

// Package writes the archive of a chart directory, with a .prov file when it
// is to be signed, and returns the archive's path.
func Package(dir string, opts PackageOptions) (string, error) {
	c, err := limits.LoadDir(dir)
	if err != nil {
		return "", fmt.Errorf("loading chart %s: %w", dir, err)
	}
	c.Metadata.Version = cmp.Or(opts.Version, c.Metadata.Version)
	c.Metadata.AppVersion = cmp.Or(opts.AppVersion, c.Metadata.AppVersion)
	if _, err := semver.NewVersion(c.Metadata.Version); err != nil {
		return "", fmt.Errorf("version %q of chart %s: %w", c.Metadata.Version, c.Name(), err)
	}
	if names := chart.MissingDependencies(c); len(names) > 0 {
		return "", &chart.MissingDependenciesError{Chart: c.Name(), Path: dir, Directory: true, Names: names}
	}
	destination := opts.Destination
	if destination == "" || destination == "." {
		if destination, err = os.Getwd(); err != nil {
			return "", err
		}
	}
	path, err := chartutil.Save(c, destination)
	if err != nil {
		return "", fmt.Errorf("saving chart %s: %w", c.Name(), err)
	}
	if opts.Signer == nil {
		return path, nil
	}
	return path, opts.Signer.sign(path)
}

func (s *Signer) sign(archive string) error {
	keyring, err := chart.Keyring(s.Keyring)
	if err != nil {
		return err
	}
	signer, err := provenance.NewFromKeyring(keyring, s.Key)
	if err != nil {
		return fmt.Errorf("reading key %q from %s: %w", s.Key, keyring, err)
	}
	if err := signer.DecryptKey(s.Passphrase); err != nil {
		return fmt.Errorf("decrypting key %q: %w", s.Key, err)
	}
	signature, err := signer.ClearSign(archive)
	if err != nil {
		return fmt.Errorf("signing %s: %w", archive, err)
	}
	if err := os.WriteFile(archive+".prov", []byte(signature), 0o644); err != nil {
		return fmt.Errorf("writing the signature: %w", err)
	}
	return nil
}
