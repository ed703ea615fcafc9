package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/downloader"
)

// Keyring is the file of public keys that signatures are checked against:
// path, or when that is empty GnuPG's.
func Keyring(path string) (string, error) {
	opts, err := LoadOptions{Keyring: path, Verify: true}.withDefaults()
	return opts.Keyring, err
}

// Read is Load for inspecting a chart. It also reads charts that can't be deployed: libraries
// and charts without their dependencies.
func Read(ctx context.Context, ref string, opts LoadOptions) (*Chart, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	ref = strings.TrimSpace(ref)
	_, err = os.Stat(ref)
	switch {
	case ref == "", err != nil && (filepath.IsAbs(ref) || strings.HasPrefix(ref, ".")):
		return nil, &NotFoundError{Ref: ref}
	case err != nil:
		c, err := loadRemote(ctx, ref, opts)
		if err != nil {
			return nil, err
		}
		return &Chart{Helm: c}, nil
	case opts.Verify:
		if _, err := downloader.VerifyChart(ref, opts.Keyring); err != nil {
			return nil, fmt.Errorf("verifying chart %s: %w", ref, err)
		}
	}
	c, err := readChart(ref)
	if err != nil {
		return nil, err
	}
	out := &Chart{Helm: c}
	if opts.Repo != "" {
		out.Warnings = []string{fmt.Sprintf("the chart was read from %s, which exists; repository %s was not asked", ref, opts.Repo)}
	}
	return out, nil
}

// RunInterruptible calls work, which takes no context, as Helm's libraries don't. When ctx
// ends first, it returns, and work continues until its own timeouts.
func RunInterruptible(ctx context.Context, work func() error) error {
	_, err := interruptible(ctx, func() (struct{}, error) { return struct{}{}, work() })
	return err
}
