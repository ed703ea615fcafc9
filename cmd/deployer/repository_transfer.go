package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"deployer/chart/repository"
	"deployer/internal/view/output"
)

func pullCommand(e *env) *cli.Command {
	var o repository.PullOptions
	return &cli.Command{
		Name: "pull", Aliases: []string{"fetch"}, Usage: "download charts", ArgsUsage: "CHART...",
		Description: `CHART is a URL, REPO/NAME or oci://REGISTRY/NAME.

Examples:
  deployer pull podinfo/podinfo --version ^6 --untar
  deployer pull oci://registry.example.com/charts/web --version 1.2.0 -d ./archives`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "destination", Aliases: []string{"d"}, Value: ".", Usage: "`DIR` to download to", Destination: &o.Destination},
			&cli.BoolFlag{Name: "untar", Usage: "unpack the archive", Destination: &o.Untar},
			&cli.StringFlag{Name: "untardir", Value: ".", Usage: "`DIR` to unpack into, below --destination", Destination: &o.UntarDir},
			&cli.BoolFlag{Name: "prov", Usage: "also download the .prov file, without verifying it", Destination: &o.Provenance},
		}, locateFlags(&o.LoadOptions)...),
		Action: action(1, -1, "a chart", func(ctx context.Context, refs []string) error {
			o.Settings = e.helmFiles()
			for _, ref := range refs {
				waiting := e.showTransfer("fetching", ref)
				o.Log = waiting.Through(e.streams.Err)
				signature, err := repository.Pull(ctx, ref, o)
				waiting.Stop()
				if err != nil {
					return err
				}
				if signature == "" {
					continue
				}
				if err := printTo(e.streams.Out, signature); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func pushCommand(e *env) *cli.Command {
	var o repository.PushOptions
	return &cli.Command{
		Name: "push", Usage: "upload a chart archive to a registry", ArgsUsage: "ARCHIVE REMOTE",
		Description: `If there is a .prov file beside the archive, it is uploaded too.

Examples:
  deployer push web-1.2.0.tgz oci://registry.example.com/charts`,
		Flags: accessFlags(&o.Access),
		Action: action(2, 2, "a chart archive and a registry", func(ctx context.Context, args []string) error {
			waiting := e.showTransfer("pushing", args[0])
			defer waiting.Stop()
			o.Settings, o.Log = e.helmFiles(), waiting.Through(e.streams.Err)
			return repository.Push(ctx, args[0], args[1], o)
		}),
	}
}

// showTransfer shows on a terminal that something is downloaded or uploaded, until
// it is stopped. Passwords in URLs are not shown.
func (e *env) showTransfer(verb, ref string) *output.Spinner {
	e.transferred.Reset()
	return output.StartSpinner(e.streams, output.WithoutPasswords(verb+" "+ref), e.transferred.Bytes)
}
