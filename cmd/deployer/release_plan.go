package main

import (
	"context"
	"slices"

	"deployer/internal/deploy"
	"deployer/internal/view/inspection"
	"deployer/internal/view/page"
)

func planCommand(e *env) *command {
	o := &upgradeOptions{}
	var rollback, uninstall, drift bool
	removal := &uninstallOptions{}
	detailed := &flag{name: "detailed-exitcode", group: "Plan", usage: "exit with 2 if there are changes; --drift always does", is: common | safe, value: toggle(&o.plan.detailedExitCode)}
	o.plan.only, o.plan.file = true, &savedPlan{reuse: &o.request.Reuse}
	return &command{
		name: "plan", also: "diff drift", is: reports | beyondHelm | yields, usage: "show what upgrade, rollback or uninstall would do, field by field", args: "NAME [CHART | REVISION]", complete: "NAME CHART",
		steps: `Does everything that upgrade does before its first change, and shows the
changes that would follow. It writes nothing to the cluster.

With --drift it compares the live objects with the last deployment instead, and
says who changed what: people, failed releases, other releases, controllers.`,
		examples: `deployer plan web ./chart -f values.yaml
deployer plan --rollback web 3
deployer plan --uninstall web
deployer plan web ./chart -f values.yaml --out web.plan --encrypt-to age1...
deployer drift web`,
		codes: "0 done; 1 failed; 2 there are changes (with --detailed-exitcode or --drift); 3 the API server would reject the release",
		flags: append(slices.Concat(o.flags(e), o.plan.file.flags(), removal.flags("Plan", "with --uninstall: ")),
			&flag{name: "install", also: "i", group: "Release", usage: "also plan a release that doesn't exist yet", is: rare | safe, value: toggle(&o.install, true)},
			&flag{name: "rollback", group: "Plan", usage: "plan a rollback to REVISION", is: common | safe, value: toggle(&rollback)},
			&flag{name: "uninstall", group: "Plan", usage: "plan an uninstall", is: common | safe, value: toggle(&uninstall)},
			&flag{name: "drift", group: "Plan", usage: "show how the cluster differs from the last deployment; exit with 2 if it does", is: common | safe, value: toggle(&drift)},
			detailed,
			&flag{name: "show-unchanged", group: "Plan", usage: "also list unchanged objects", is: rare | safe, value: toggle(&o.plan.options.ShowUnchanged)},
			&flag{name: "full", group: "Plan", usage: "show all of a long plan, with nothing grouped or left out", is: rare | safe, value: toggle(&o.plan.options.Full)},
			&flag{name: "context", group: "Plan", usage: "unchanged lines to show around each change in a text", is: rare | safe, value: number(&o.plan.options.Context, 3)},
		),
		action: func(ctx context.Context, path string, args []string) error {
			if err := o.plan.file.check(); err != nil {
				return err
			}
			switch {
			case drift && (rollback || uninstall || o.plan.file.showPath != "" || o.plan.file.path != ""):
				return usagef("plan", "--drift can't be combined with --rollback, --uninstall, --show or --out")
			case drift:
				return o.driftAction(e, o.plan.detailedExitCode || !detailed.given)(ctx, path, args)
			case o.plan.file.showPath != "":
				return o.plan.file.showAction(e, o.plan.options)(ctx, path, args)
			case rollback && uninstall:
				return usagef("plan", "--rollback and --uninstall can't be combined")
			case uninstall:
				return o.uninstallAction(e, removal)(ctx, path, args)
			case e.call.hasFlag("keep-history") || e.call.hasFlag("cascade"): // in the environment they are for uninstall
				return usagef("plan", "--keep-history and --cascade need --uninstall")
			case rollback:
				return o.rollbackAction(e, &o.request.Description)(ctx, path, args)
			}
			return o.upgradeAction(e)(ctx, path, args)
		},
	}
}

// uninstallAction shows how a release would be uninstalled.
func (o *upgradeOptions) uninstallAction(e *env, r *uninstallOptions) action {
	return withArguments(1, 1, "a release name", func(ctx context.Context, args []string) error {
		o.settings.Propagation = propagationPolicies[r.cascade]
		return o.uninstall(ctx, e, deploy.UninstallRequest{Name: args[0], KeepHistory: r.keep, Description: o.request.Description})
	})
}

// driftAction shows how the cluster differs from what a release has deployed. Scripts see it by
// the exit code, unless --detailed-exitcode=false.
func (o *upgradeOptions) driftAction(e *env, detailedExitCode bool) action {
	return withArguments(1, 1, "a release name", func(ctx context.Context, args []string) (err error) {
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
