package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/downloader"

	"deployer/chart/internal/limits"
	"deployer/chart/internal/yamltext"
)

// LoadOptions say where and how to find a chart. The zero value takes Helm's
// own configuration files, caches and environment.
type LoadOptions struct {
	Version            string // a SemVer constraint; empty means the newest release
	Devel              bool   // also pre-releases; Version ">0.0.0-0"
	Repo               string // URL of a chart repository to look the name up in
	Access             Access
	ForInspection      bool   // also charts that can't be deployed: libraries, and charts without their dependencies
	Verify             bool   // check the archive's signature
	AllowMismatch      bool   // only warn when an archive isn't what its index, or the reference, says
	Keyring            string // public keys for Verify; empty means ~/.gnupg/pubring.gpg
	UpdateDependencies bool   // fetch missing dependencies into charts/ first
	Settings           Settings
	Progress           func(line string) // called for each line about what is downloaded; may be nil
}

// Load reads a chart from a directory, an archive, a URL, repo/name or oci://. A local path
// that exists has precedence, as in Helm. Apart from temporary files it writes to disk only
// with UpdateDependencies.
//
// Errors for callers: *NotFoundError, *RemoteError, *TypeError,
// *MissingDependenciesError.
func Load(ctx context.Context, ref string, opts LoadOptions) (*Chart, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	ref = strings.TrimSpace(ref)
	if ref == "" {
		return nil, &NotFoundError{Ref: ref}
	}
	if _, err := os.Stat(ref); err == nil {
		return loadLocal(ctx, ref, opts)
	}
	if filepath.IsAbs(ref) || strings.HasPrefix(ref, ".") {
		return nil, &NotFoundError{Ref: ref}
	}
	c, err := loadRemote(ctx, ref, opts)
	if err != nil {
		return nil, err
	}
	return checkLoaded(c, MissingDependenciesError{Path: ref}, opts)
}

func (o LoadOptions) withDefaults() (LoadOptions, error) {
	o.Version = strings.TrimSpace(o.Version)
	if o.Version == "" && o.Devel {
		o.Version = ">0.0.0-0"
	}
	var err error
	if o.Keyring, err = Keyring(o.Keyring); err != nil && o.Verify {
		return o, err
	}
	return o, o.Access.Check()
}

// Keyring is the file of public keys that signatures are checked against:
// path, or when that is empty GnuPG's.
func Keyring(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	if home, ok := os.LookupEnv("GNUPGHOME"); ok {
		return filepath.Join(home, "pubring.gpg"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the keyring: %w", err)
	}
	return filepath.Join(home, ".gnupg", "pubring.gpg"), nil
}

func loadLocal(ctx context.Context, given string, opts LoadOptions) (*Chart, error) {
	path, err := filepath.Abs(given)
	if err != nil {
		return nil, fmt.Errorf("loading chart %s: %w", given, err)
	}
	if opts.Verify {
		if _, err := downloader.VerifyChart(path, opts.Keyring); err != nil {
			return nil, fmt.Errorf("verifying chart %s: %w", path, err)
		}
	}
	c, err := readChart(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("loading chart %s: %w", path, err)
	}
	if opts.UpdateDependencies && info.IsDir() && len(MissingDependencies(c)) > 0 {
		progress := lineWriter(opts.Progress)
		if err := UpdateDependencies(ctx, path, DependencyOptions{LoadOptions: opts, Out: progress, Log: progress}); err != nil {
			return nil, err
		}
		if c, err = readChart(path); err != nil {
			return nil, err
		}
	}
	loaded, err := checkLoaded(c, MissingDependenciesError{Path: path, Directory: info.IsDir()}, opts)
	if err == nil && opts.Repo != "" {
		loaded.Warnings = append(loaded.Warnings,
			fmt.Sprintf("the chart was read from %s, which exists; repository %s was not asked", given, opts.Repo))
	}
	return loaded, err
}

// readChart runs Helm's own loader.
func readChart(path string) (*helmchart.Chart, error) {
	c, err := limits.Load(path)
	if err == nil {
		return c, nil
	}
	if info, serr := os.Stat(path); serr == nil && info.IsDir() {
		if _, serr := os.Stat(filepath.Join(path, "Chart.yaml")); errors.Is(serr, os.ErrNotExist) {
			return nil, &NotFoundError{Ref: path, Directory: true}
		}
	}
	if text := yamltext.HideQuotes(err.Error()); text != err.Error() {
		err = errors.New(text)
	}
	return nil, fmt.Errorf("loading chart %s: %w", path, err)
}

// checkLoaded makes the checks that Helm makes before it deploys a chart. A chart that is only
// inspected needs none.
func checkLoaded(c *helmchart.Chart, lack MissingDependenciesError, opts LoadOptions) (*Chart, error) {
	if opts.ForInspection {
		return &Chart{Helm: c}, nil
	}
	if kind := c.Metadata.Type; kind != "" && kind != "application" {
		return nil, &TypeError{Chart: c.Name(), Type: kind}
	}
	if lack.Names = MissingDependencies(c); len(lack.Names) > 0 {
		lack.Chart = c.Name()
		return nil, &lack
	}
	loaded := &Chart{Helm: c}
	if c.Metadata.Deprecated {
		loaded.Warnings = append(loaded.Warnings, fmt.Sprintf("chart %s is deprecated", c.Name()))
	}
	loaded.Warnings = append(loaded.Warnings, mismatchedDependencies(c)...)
	for _, part := range allCharts(c) {
		for _, f := range part.Raw {
			if f.Name != chartutil.ValuesfileName {
				continue
			}
			if text := ignoredDocumentsWarning(path.Join(part.ChartFullPath(), f.Name), f.Data); text != "" {
				loaded.Warnings = append(loaded.Warnings, text)
			}
		}
	}
	return loaded, nil
}
