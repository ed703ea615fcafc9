package main

import (
	"context"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"deployer/internal/deploy"
	"deployer/internal/program"
)

func rollbackCommand(e *env) *cli.Command {
	o := &operationFlags{}
	var description string
	return &cli.Command{
		Name: "rollback", Usage: "roll back a release to an earlier revision", ArgsUsage: "NAME [REVISION]",
		Description: `Deploys the recorded manifest of an earlier revision as a new revision, with
the same steps as upgrade: dry run, record, hooks, apply, wait, prune. Without
REVISION, it goes back to the last successful revision before the current one.

Examples:
  deployer rollback web
  deployer rollback web 3 --dry-run

Exit codes: the same as upgrade's`,
		Flags: slices.Concat(o.flags(e), []cli.Flag{descriptionFlag("", &description)}, revisionFlags(&o.settings),
			noOpFlags(e, "recreate-pods", "cleanup-on-fail", "server-side", "force-conflicts")),
		Action: o.rollbackAction(e, "rollback", &description),
	}
}

// rollbackAction is the action of rollback, and of plan for one.
func (o *operationFlags) rollbackAction(e *env, command string, description *string) cli.ActionFunc {
	return action(1, 2, "a release name, and maybe a revision", func(ctx context.Context, args []string) error {
		request := deploy.RollbackRequest{Name: args[0], Description: *description}
		if len(args) == 2 {
			var err error
			if request.Revision, err = strconv.Atoi(args[1]); err != nil || request.Revision < 0 {
				return usagef(command, "%q is not a revision: give its number, as "+program.Name+" history %s lists it", args[1], args[0])
			}
		}
		return o.operate(ctx, e, request.Name, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
			return d.Rollback(ctx, request)
		})
	})
}
