package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"deployer/internal/deploy"
	"deployer/internal/view/document"
	"deployer/internal/view/inspection"
)

func explainCommand(e *env) *cli.Command {
	var settings deploy.Settings
	return &cli.Command{
		Name: "explain", Usage: "show who has made an object of a release what it is, field by field", ArgsUsage: "NAME KIND/NAME [FIELD]",
		Description: `Shows the live fields of an object: who owns each and since when, since which
revision the release states its value and in which template, and what an
upgrade with the same chart and values would make of it. It writes nothing.

The kind may be written as kubectl takes it, and KIND/NAMESPACE/NAME names an
object of another namespace. FIELD is a path; it may end above the fields, and
name items of lists by their keys or their places.

Examples:
  deployer explain web deployment/web -n prod
  deployer explain web deploy/web .spec.replicas
  deployer explain web Deployment/web '.spec.template.spec.containers[name=app].image'
  deployer explain web configmap/conf 'metadata.labels["app.kubernetes.io/name"]' -o json

Exit codes: 0 done; 1 failed, among it no such release, object or field`,
		Flags: []cli.Flag{conflictsFlag(&settings, ""), revertFlag(&settings, ""), outputFlag(e)},
		Action: action(func(ctx context.Context, c *cli.Context) error {
			args, err := arguments(c, 2, 3, "a release name and KIND/NAME")
			if err != nil {
				return err
			}
			format, err := e.outputFormat()
			if err != nil {
				return err
			}
			cluster, err := e.connect()
			if err != nil {
				return err
			}
			field := ""
			if len(args) == 3 {
				field = args[2]
			}
			found, err := e.deployer(cluster, settings).Explain(ctx, args[0], args[1], field)
			if err != nil {
				return err
			}
			return inspection.ShowExplanation(e.streams, found, document.Options{Format: format, Colour: e.global.colour})
		}),
	}
}
