package main

import (
	"context"

	"deployer/chart/repository"
	"deployer/internal/view/output"
)

func pullCommand(e *env) *command {
	var o repository.PullOptions
	return &command{
		name: "pull", is: changes, also: "fetch", usage: "download charts", args: "CHART...", complete: "REFERENCE",
		steps: `CHART is a URL, REPO/NAME or oci://REGISTRY/NAME.`,
		examples: `deployer pull podinfo/podinfo --version ^6 --untar
deployer pull oci://registry.example.com/charts/web --version 1.2.0 -d ./archives`,
		flags: append([]*flag{
			{name: "destination", also: "d", usage: "`DIR` to download to", is: usual | safe, value: text(&o.Destination, ".")},
			{name: "untar", usage: "unpack the archive", is: usual | safe, value: toggle(&o.Untar)},
			{name: "untardir", usage: "`DIR` to unpack into, below --destination", is: usual | safe, value: text(&o.UntarDir, ".")},
			{name: "prov", usage: "also download the .prov file, without verifying it", is: usual | safe, value: toggle(&o.Provenance)},
		}, locateFlags(&o.LoadOptions)...),
		action: withArguments(1, -1, "a chart", func(ctx context.Context, refs []string) error {
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

func pushCommand(e *env) *command {
	var o repository.PushOptions
	return &command{
		name: "push", is: changes, usage: "upload a chart archive to a registry", args: "ARCHIVE REMOTE",
		steps:    `If there is a .prov file beside the archive, it is uploaded too.`,
		examples: "deployer push web-1.2.0.tgz oci://registry.example.com/charts",
		flags:    accessFlags(&o.Access),
		action: withArguments(2, 2, "a chart archive and a registry", func(ctx context.Context, args []string) error {
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
