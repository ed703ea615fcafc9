package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deployer/internal/deploy"
)

func recoverCommand(e *env) *command {
	var settings deploy.Settings
	var lockTimeout time.Duration
	return &command{
		name: "recover", is: changes | beyondHelm, usage: "record as failed what a killed run left pending", args: "NAME", takes: "a release name",
		steps: `Records as failed every revision that a killed run left pending, and says who
ran it and how far it got. You rarely need it: upgrade, rollback and uninstall
do the same first. With --takeover-pending it also records revisions that
another tool left pending, whatever their age.`,
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
