package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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

func packageCommand(e *env) *command {
	o := &packageOptions{}
	return &command{
		name: "package", is: changes, usage: "package chart directories into archives", args: "CHART...", takes: "at least one argument, the path to the chart", complete: "PATH...",
		steps: `Writes NAME-VERSION.tgz for each chart, and with --sign also its signature,
NAME-VERSION.tgz.prov.`,
		examples: `deployer package ./chart --version 1.2.0 --app-version 4.5
deployer package ./chart --sign --key ci@example.com --keyring secring.gpg --passphrase-file -`,
		flags: slices.Concat([]*flag{
			{name: "version", usage: "set the `VERSION` of the chart", is: common | safe | noVariable, value: text(&o.Version)},
			{name: "app-version", usage: "set the appVersion of the chart", is: usual | safe, value: text(&o.AppVersion)},
			{name: "destination", also: "d", usage: "`DIR` to write the archive to", is: usual | safe, value: text(&o.Destination, ".")},
			{name: "dependency-update", also: "u", usage: "download the dependencies into charts/ first", is: rare | safe, value: toggle(&o.update)},
		}, inGroup("Signing", []*flag{
			{name: "sign", usage: "sign the archive with a PGP key", is: usual | safe, value: toggle(&o.sign)},
			{name: "key", usage: "`NAME` of the key", is: usual | safe, value: text(&o.signer.Key)},
			{name: "keyring", usage: "`FILE` with the secret key (default: GnuPG's keyring)", is: rare | safe, value: text(&o.signer.Keyring)},
			{name: "passphrase-file", usage: "`FILE` with the passphrase of the key, or - for standard input (default: ask)", is: usual | safe, value: text(&o.passphrase)},
		}), accessFlags(&o.fetch.Access)),
		action: func(ctx context.Context, args []string) error {
			if o.sign && o.signer.Key == "" {
				return usagef("--key is required for signing a package")
			}
			if o.sign {
				o.signer.Passphrase = e.passphrases(ctx, o.passphrase)
				o.Signer = &o.signer
			}
			if err := o.fetch.Access.Check(); err != nil {
				return err
			}
			for _, dir := range args {
				if err := o.run(ctx, e, dir); err != nil {
					return err
				}
			}
			return nil
		},
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
	o.fetch.Settings = e.files
	return chart.UpdateDependencies(ctx, dir, chart.DependencyOptions{LoadOptions: o.fetch, Log: waiting.Through(e.streams.Err)})
}

func createCommand(e *env) *command {
	var starter string
	return &command{
		name: "create", is: changes, usage: "create a new chart", args: "NAME", takes: "the name of the chart", complete: "DIR",
		steps: `Creates a directory with the files of an example chart that you can deploy as it
is. It overwrites files of the same names and keeps others.`,
		examples: `deployer create web
deployer create charts/web --starter company`,
		flags: []*flag{
			{name: "starter", also: "p", usage: "name or absolute `PATH` of the starter to copy", is: usual | safe, value: text(&starter)},
		},
		action: func(_ context.Context, args []string) error {
			if err := printTo(e.streams.Out, "Creating "+args[0]+"\n"); err != nil {
				return err
			}
			warnings, err := develop.Create(args[0], starter)
			for _, w := range warnings {
				// To standard output, as Helm does.
				if err := printTo(e.streams.Out, w+"\n"); err != nil {
					return err
				}
			}
			return err
		},
	}
}
