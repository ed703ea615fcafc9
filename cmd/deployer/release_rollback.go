package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

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
		flags:  slices.Concat(o.flags(e), []*flag{descriptionFlag(&description)}, revisionFlags(&o.settings), deployingFlagsOfHelm()),
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

func recoverCommand(e *env) *command {
	var settings deploy.Settings
	var lockTimeout time.Duration
	return &command{
		name: "recover", is: changes | beyondHelm, usage: "record as failed what a killed run left pending", args: "NAME", takes: "a release name",
		steps: `Also says who ran it and how far it got. You rarely need it: upgrade, rollback
and uninstall do the same first. With --takeover-pending it also records
revisions that another tool left pending, whatever their age.`,
		examples: `deployer recover web -n prod
deployer recover web --takeover-pending`,
		codes: "0 done, or nothing to do; 1 failed; 5 another run holds the release",
		flags: append([]*flag{
			{name: "timeout", usage: "age at which a revision that another tool left pending is recorded as failed; at least 1h", is: common | safe, value: duration(&settings.Timeout, time.Hour)},
		}, lockFlags(&settings, &lockTimeout, usual)...), // other commands recover by the way
		action: func(ctx context.Context, args []string) error {
			d, err := e.newDeployer(settings)
			if err != nil {
				return err
			}
			recovered, err := d.Recover(ctx, args[0], lockTimeout)
			text := ""
			for _, r := range recovered {
				text += r.String() + "; it is recorded as failed now\n"
			}
			if text == "" && err == nil {
				text = fmt.Sprintf("release %q needs no recovery\n", args[0])
			}
			return errors.Join(err, printTo(e.streams.Out, text))
		},
	}
}
