package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"deployer/internal/deploy"
	"deployer/internal/view/inspection"
	"deployer/internal/view/page"
)

func planCommand(e *env) *cli.Command {
	o := &upgradeOptions{}
	var rollback, uninstall, drift bool
	removal := &uninstallOptions{}
	o.plan.only, o.plan.file = true, &savedPlan{reuse: &o.request.Reuse}
	return &cli.Command{
		Name: "plan", Usage: "show what upgrade, rollback or uninstall would do, field by field", ArgsUsage: "NAME [CHART | REVISION]",
		Description: `Does everything that upgrade does before its first change, and shows the
changes that would follow. It writes nothing to the cluster.

With --drift it compares the live objects with the last deployment instead, and
says who changed what: people, failed releases, other releases, controllers.

Examples:
  deployer plan web ./chart -f values.yaml
  deployer plan --rollback web 3
  deployer plan --uninstall web
  deployer plan web ./chart -f values.yaml --out web.plan --encrypt-to age1...
  deployer plan web --drift

Exit codes: 0 done; 1 failed; 2 there are changes (with --detailed-exitcode or
--drift); 3 the API server would reject the release`,
		Flags: append(slices.Concat(o.flags(e), o.plan.file.flags(), removal.flags("Plan", "with --uninstall: ")),
			&cli.BoolFlag{Name: "install", Aliases: []string{"i"}, Category: "Release", Value: true, Usage: "also plan a release that doesn't exist yet", Destination: &o.install},
			&cli.BoolFlag{Name: "rollback", Category: "Plan", Usage: "plan a rollback to REVISION", Destination: &rollback},
			&cli.BoolFlag{Name: "uninstall", Category: "Plan", Usage: "plan an uninstall", Destination: &uninstall},
			&cli.BoolFlag{Name: "drift", Category: "Plan", Usage: "show how the cluster differs from the last deployment; exit with 2 if it does", Destination: &drift},
			&cli.BoolFlag{Name: "detailed-exitcode", Category: "Plan", Usage: "exit with 2 if there are changes; --drift always does", Destination: &o.plan.detailedExitCode},
			&cli.BoolFlag{Name: "show-unchanged", Category: "Plan", Usage: "also list unchanged objects", Destination: &o.plan.options.ShowUnchanged},
			&cli.BoolFlag{Name: "full", Category: "Plan", Usage: "show all of a long plan, with nothing grouped or left out", Destination: &o.plan.options.Full},
			&cli.IntFlag{Name: "context", Category: "Plan", Value: 3, Usage: "unchanged lines to show around each change in a text", Destination: &o.plan.options.Context},
		),
		Action: func(c *cli.Context) error {
			if err := o.plan.file.check(); err != nil {
				return err
			}
			switch {
			case drift && (rollback || uninstall || o.plan.file.showPath != "" || o.plan.file.path != ""):
				return usagef("plan", "--drift can't be combined with --rollback, --uninstall, --show or --out")
			case drift:
				return o.driftAction(e, o.plan.detailedExitCode || !c.IsSet("detailed-exitcode"))(c)
			case o.plan.file.showPath != "":
				return o.plan.file.showAction(e, o.plan.options)(c)
			case rollback && uninstall:
				return usagef("plan", "--rollback and --uninstall can't be combined")
			case uninstall:
				return o.uninstallAction(e, removal)(c)
			case e.call.hasFlag("keep-history") || e.call.hasFlag("cascade"): // in the environment they are for uninstall
				return usagef("plan", "--keep-history and --cascade need --uninstall")
			case rollback:
				return o.rollbackAction(e, "plan", &o.request.Description)(c)
			}
			return o.upgradeAction(e)(c)
		},
	}
}

// uninstallAction shows how a release would be uninstalled.
func (o *upgradeOptions) uninstallAction(e *env, r *uninstallOptions) cli.ActionFunc {
	return action(1, 1, "a release name", func(ctx context.Context, args []string) error {
		o.settings.Propagation = propagationPolicies[r.cascade]
		return o.uninstall(ctx, e, deploy.UninstallRequest{Name: args[0], KeepHistory: r.keep, Description: o.request.Description})
	})
}

// driftAction shows how the cluster differs from what a release has deployed. Scripts see it by
// the exit code, unless --detailed-exitcode=false.
func (o *upgradeOptions) driftAction(e *env, detailedExitCode bool) cli.ActionFunc {
	return action(1, 1, "a release name", func(ctx context.Context, args []string) (err error) {
		if o.plan.options.Format, err = e.outputFormat(page.ParseDriftFormat); err != nil {
			return err
		}
		o.plan.options.Colour = e.colour
		d, err := e.newDeployer(o.settings)
		if err != nil {
			return err
		}
		drift, err := d.Drift(ctx, args[0])
		if err != nil {
			return err
		}
		if err := inspection.ShowDrift(e.streams, drift, o.plan.options); err != nil {
			return err
		}
		if drift.HasDrift() && detailedExitCode {
			return errChanges
		}
		return drift.Unverified()
	})
}
