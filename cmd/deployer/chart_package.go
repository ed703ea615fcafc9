package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/chart/develop"
	"deployer/internal/program"
)

// A packageOptions is the command line of package.
type packageOptions struct {
	develop.PackageOptions
	sign, update bool
	signer       develop.Signer
	passphrase   string
	fetch        chart.LoadOptions
}

func packageCommand(e *env) *cli.Command {
	o := &packageOptions{}
	return &cli.Command{
		Name: "package", Usage: "package chart directories into archives", ArgsUsage: "CHART...",
		Description: `Writes NAME-VERSION.tgz for each chart, and with --sign also its signature,
NAME-VERSION.tgz.prov.

Examples:
  deployer package ./chart --version 1.2.0 --app-version 4.5
  deployer package ./chart --sign --key ci@example.com --keyring secring.gpg --passphrase-file -`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "version", Usage: "set the `VERSION` of the chart", Destination: &o.Version},
			&cli.StringFlag{Name: "app-version", Usage: "set the appVersion of the chart, `VERSION`", Destination: &o.AppVersion},
			&cli.StringFlag{Name: "destination", Aliases: []string{"d"}, Value: ".", Usage: "`DIR` to write the archive to", Destination: &o.Destination},
			&cli.BoolFlag{Name: "dependency-update", Aliases: []string{"u"}, Usage: "download the dependencies into charts/ first", Destination: &o.update},
			&cli.BoolFlag{Name: "sign", Category: "Signing", Usage: "sign the archive with a PGP key", Destination: &o.sign},
			&cli.StringFlag{Name: "key", Category: "Signing", Usage: "`NAME` of the key", Destination: &o.signer.Key},
			&cli.StringFlag{Name: "keyring", Category: "Signing", Usage: "`FILE` with the secret key (default: GnuPG's keyring)", Destination: &o.signer.Keyring},
			&cli.StringFlag{Name: "passphrase-file", Category: "Signing", Usage: "`FILE` with the passphrase of the key, or - for standard input (default: ask)", Destination: &o.passphrase},
		}, accessFlags(&o.fetch.Access)...),
		Action: action(0, -1, "", func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return usagef("package", "need at least one argument, the path to the chart")
			}
			if o.sign && o.signer.Key == "" {
				return usagef("package", "--key is required for signing a package")
			}
			if o.sign {
				o.signer.Passphrase = e.passphrases(ctx, o.passphrase)
				o.Signer = &o.signer
			}
			for _, dir := range args {
				if err := o.run(ctx, e, dir); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func (o *packageOptions) run(ctx context.Context, e *env, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return program.WithHint(fmt.Errorf("path %q not found", dir), "package takes directories; to make one: "+program.Name+" create NAME")
	}
	if o.update {
		if err := o.updateDependencies(ctx, e, dir); err != nil {
			return err
		}
	}
	path, err := develop.Package(dir, o.PackageOptions)
	if err != nil {
		return err
	}
	return printTo(e.streams.Out, fmt.Sprintf("Successfully packaged chart and saved it to: %s\n", path))
}

// updateDependencies fetches the dependencies and, as Helm does here, says
// nothing about it.
func (o *packageOptions) updateDependencies(ctx context.Context, e *env, dir string) error {
	waiting := e.showTransfer("fetching the dependencies of", dir)
	defer waiting.Stop()
	o.fetch.Settings = e.helmFiles()
	return chart.UpdateDependencies(ctx, dir, chart.DependencyOptions{LoadOptions: o.fetch, Log: waiting.Through(e.streams.Err)})
}
