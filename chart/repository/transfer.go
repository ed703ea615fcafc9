package repository

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/downloader"
	"helm.sh/helm/v3/pkg/provenance"
	"helm.sh/helm/v3/pkg/pusher"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/uploader"

	"deployer/chart"
	"deployer/chart/internal/limits"
	"deployer/internal/kube"
)

// PullOptions say which chart to fetch and where to put it.
type PullOptions struct {
	chart.LoadOptions
	Provenance  bool   // also the .prov file, unchecked
	Untar       bool   // unpack it
	UntarDir    string // below Destination unless absolute; empty means there
	Destination string // directory; empty means the current one
	// Log gets the messages of the registry client; nil drops them.
	Log io.Writer
}

// Pull fetches a chart archive into a directory, or unpacks it there. With
// Verify it returns who signed it, in Helm's words.
func Pull(ctx context.Context, ref string, opts PullOptions) (string, error) {
	destination := opts.Destination
	if opts.Untar {
		temporary, err := os.MkdirTemp("", "deployer-pull-")
		if err != nil {
			return "", fmt.Errorf("creating the directory for chart %s: %w", ref, err)
		}
		defer os.RemoveAll(temporary) // leftovers in the temporary directory harm nobody
		destination = temporary
	} else if destination != "" {
		if err := os.MkdirAll(destination, 0o755); err != nil {
			return "", fmt.Errorf("creating the directory for chart %s: %w", ref, err)
		}
	}
	var saved string
	var signed *provenance.Verification
	err := kube.WaitFor(ctx, func() (err error) {
		saved, signed, err = opts.Download(ref, destination, opts.verification(), cmp.Or[io.Writer](opts.Log, io.Discard))
		return err
	})
	if err != nil {
		return "", chart.NewRemoteError(ref, opts.LoadOptions, err)
	}
	signature := ""
	if opts.Verify {
		signature = signatureText(signed)
	}
	if opts.Untar {
		return signature, unpack(ref, saved, opts)
	}
	return signature, nil
}

func (o PullOptions) verification() downloader.VerificationStrategy {
	switch {
	case o.Verify:
		return downloader.VerifyAlways
	case o.Provenance:
		return downloader.VerifyLater
	}
	return downloader.VerifyNever
}

// unpack expands an archive where Helm would, unless a chart is there already. Its directory has the name of the chart, and not of ref.
func unpack(ref, archive string, opts PullOptions) error {
	dir := opts.UntarDir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(opts.Destination, dir)
	}
	if dir == "" {
		dir = "."
	}
	name := path.Base(filepath.ToSlash(ref))
	if c, err := limits.Load(archive); err == nil { // otherwise unpacking may say what is wrong with it
		name = c.Name()
	}
	target := filepath.Join(dir, name)
	if _, err := os.Stat(target); err == nil {
		return fmt.Errorf("failed to untar: a file or directory with the name %s already exists", target)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("unpacking chart %s: %w", ref, err)
	}
	if err := chartutil.ExpandFile(dir, archive); err != nil {
		return fmt.Errorf("unpacking chart %s: %w", ref, err)
	}
	return nil
}

// PushOptions say how to reach the registry.
type PushOptions struct {
	Access   chart.Access
	Settings chart.Settings
	// Log gets the reference and the digest; nil drops them.
	Log io.Writer
}

// Push uploads a chart archive, with its .prov file if there is one, to a
// registry such as oci://registry.example.com/charts.
func Push(ctx context.Context, archive, remote string, opts PushOptions) error {
	opts.Log = cmp.Or[io.Writer](opts.Log, io.Discard)
	client, err := opts.Access.RegistryClient(opts.Settings, opts.Log, remote)
	if err != nil {
		return err
	}
	a := opts.Access
	u := uploader.ChartUploader{
		Out:     opts.Log,
		Pushers: pusher.All(opts.Settings.EnvSettings()),
		Options: []pusher.Option{
			pusher.WithTLSClientConfig(a.CertFile, a.KeyFile, a.CAFile),
			pusher.WithInsecureSkipTLSVerify(a.InsecureSkipTLS),
			pusher.WithPlainHTTP(a.PlainHTTP),
		},
	}
	if registry.IsOCI(remote) {
		u.Options = append(u.Options, pusher.WithRegistryClient(client))
	}
	err = kube.WaitFor(ctx, func() error { return u.UploadTo(archive, remote) })
	if err != nil {
		return fmt.Errorf("pushing %s to %s: %w", archive, remote, err)
	}
	return nil
}

// Login checks the credentials in access against a registry and stores them
// where helm finds them too.
func Login(ctx context.Context, host string, opts PushOptions) error {
	host = strings.TrimPrefix(host, registry.OCIScheme+"://")
	err := kube.WaitFor(ctx, func() error { return opts.Access.Login(opts.Settings, host, opts.Log) })
	if err != nil {
		return fmt.Errorf("logging in to %s: %w", host, err)
	}
	return nil
}

// Logout forgets the credentials for a registry.
func Logout(host string, opts PushOptions) error {
	client, err := chart.Access{}.RegistryClient(opts.Settings, opts.Log)
	if err != nil {
		return err
	}
	host = strings.TrimPrefix(host, registry.OCIScheme+"://")
	if err := client.Logout(host); err != nil {
		return fmt.Errorf("logging out of %s: %w", host, err)
	}
	return nil
}
