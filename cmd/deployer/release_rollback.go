package main

import (
	"context"
	"slices"
	"strconv"

	"deployer/internal/deploy"
	"deployer/internal/program"
)

// The arguments of rollback, and of plan for one.
const (
	rollbackForm  = "NAME [REVISION]"
	rollbackTakes = "a release name, and maybe a revision"
)

func rollbackCommand(e *env) *command {
	o := &operationFlags{}
	var description string
	return &command{
		name: "rollback", is: changes | reports, usage: "roll back a release to an earlier revision", args: rollbackForm, takes: rollbackTakes,
		steps: `Deploys the recorded manifest of an earlier revision as a new revision, with
the same steps as upgrade: dry run, record, hooks, apply, wait, prune. Without
REVISION, it goes back to the last successful revision before the current one.`,
		examples: `deployer rollback web
deployer rollback web 3 --dry-run`,
		codes:  "the same as upgrade's",
		flags:  slices.Concat(o.flags(e), []*flag{descriptionFlag(&description)}, revisionFlags(&o.settings), deployingFlagsOfHelm(e)),
		action: o.rollbackAction(e, &description),
	}
}

// rollbackAction is the action of rollback, and of plan for one.
func (o *operationFlags) rollbackAction(e *env, description *string) action {
	return func(ctx context.Context, args []string) error {
		request := deploy.RollbackRequest{Name: args[0], Description: *description}
		if len(args) == 2 {
			var err error
			if request.Revision, err = strconv.Atoi(args[1]); err != nil || request.Revision < 0 {
				return usagef("%q is not a revision: give its number, as "+program.Name+" history %s lists it", args[1], args[0])
			}
		}
		return o.operate(ctx, e, request.Name, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
			return d.Rollback(ctx, request)
		})
	}
}
