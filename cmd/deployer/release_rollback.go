package main

import (
	"context"
	"strconv"

	"github.com/urfave/cli/v2"

	"deployer/internal/deploy"
	"deployer/internal/program"
)

func rollbackCommand(e *env) *cli.Command {
	o := &operation{}
	var description string
	flags := append(o.flags(e), &cli.StringFlag{Name: "description", Usage: "`TEXT` to record in the release history", Destination: &description})
	flags = append(flags, revisionFlags(&o.settings)...)
	flags = append(flags, noOpFlags(e, "recreate-pods", "cleanup-on-fail", "server-side", "force-conflicts")...)
	return &cli.Command{
		Name: "rollback", Usage: "roll back a release to an earlier revision", ArgsUsage: "NAME [REVISION]",
		Description: `Deploys the recorded manifest of an earlier revision as a new revision, with
the same steps as upgrade: dry run, record, hooks, apply, wait, prune. Without
REVISION, it goes back to the last successful revision before the current one.

Examples:
  deployer rollback web
  deployer rollback web 3 --dry-run

Exit codes: the same as upgrade's`,
		Flags: flags,
		Action: action(func(ctx context.Context, c *cli.Context) error {
			return o.rollback(ctx, e, c, description)
		}),
	}
}

// rollback rolls back the release that a command line names, or shows how it would.
func (o *operation) rollback(ctx context.Context, e *env, c *cli.Context, description string) error {
	request, err := rollbackRequest(c)
	if err != nil {
		return err
	}
	request.Description = description
	return o.operate(ctx, e, request.Name, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
		return d.Rollback(ctx, request)
	})
}

func rollbackRequest(c *cli.Context) (deploy.RollbackRequest, error) {
	args, err := arguments(c, 1, 2, "a release name and a revision")
	if err != nil {
		return deploy.RollbackRequest{}, err
	}
	request := deploy.RollbackRequest{Name: args[0]}
	if len(args) == 2 {
		if request.Revision, err = strconv.Atoi(args[1]); err != nil || request.Revision < 0 {
			return request, usagef(commandPath(c), "%q is not a revision: give its number, as "+program.Name+" history %s lists it", args[1], args[0])
		}
	}
	return request, nil
}
