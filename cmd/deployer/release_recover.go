package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"deployer/internal/deploy"
)

func recoverCommand(e *env) *cli.Command {
	var settings deploy.Settings
	var lockTimeout time.Duration
	return &cli.Command{
		Name: "recover", Usage: "record revisions that killed runs left pending as failed", ArgsUsage: "NAME",
		Description: `Records as failed every revision that a run left pending when it was killed,
and says whose run that was and how far it had come. upgrade, rollback and
uninstall do so by themselves. Run it to see what was left, or with
--takeover-pending to record as failed what another tool left pending,
whatever its age.

Examples:
  deployer recover web -n prod
  deployer recover web --takeover-pending

Exit codes: 0 done, or nothing to do; 1 failed; 5 another run holds the release`,
		Flags: []cli.Flag{
			takeoverFlag(&settings, ""),
			&cli.DurationFlag{Name: "timeout", Value: 5 * time.Minute, Usage: "how long another tool's run may take, at least an hour", Destination: &settings.Timeout},
			&cli.DurationFlag{Name: "lock-timeout", Usage: "how long to wait for another run on this release", Destination: &lockTimeout},
		},
		Action: action(func(ctx context.Context, c *cli.Context) error {
			args, err := arguments(c, 1, 1, "a release name")
			if err != nil {
				return err
			}
			cluster, err := e.connect()
			if err != nil {
				return err
			}
			recovered, err := e.deployer(cluster, settings).Recover(ctx, args[0], lockTimeout)
			if err != nil {
				return err
			}
			text := fmt.Sprintf("release %q needs no recovery\n", args[0])
			if len(recovered) > 0 {
				text = ""
				for _, r := range recovered {
					text += r.String() + "; it is recorded as failed now\n"
				}
			}
			return printTo(e.streams.Out, text)
		}),
	}
}
