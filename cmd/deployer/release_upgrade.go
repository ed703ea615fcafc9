package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/internal/deploy"
)

// An upgradeOptions is the command line of upgrade, install and plan.
type upgradeOptions struct {
	operation
	chartRequest
	request   deploy.UpgradeRequest
	install   bool
	reset     bool
	reuse     bool
	resetThen bool
	labels    pairs
	skipCRDs  bool
	generate  bool
	nameFrom  string
}

func (o *upgradeOptions) flags(e *env) []cli.Flag {
	const group = "Release"
	r := &o.request
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "create-namespace", Category: group, Usage: "create the release's namespace if it isn't there", Destination: &r.CreateNamespace},
		&cli.StringFlag{Name: "description", Category: group, Usage: "description recorded in the release history", Destination: &r.Description},
		&cli.GenericFlag{Name: "labels", Aliases: []string{"l"}, Category: group, Usage: "labels of the release record: name=value,…", Value: &o.labels},
		&cli.BoolFlag{Name: "atomic", Aliases: []string{"rollback-on-failure"}, Category: group, Usage: "when it fails, go back to the last successful revision", Destination: &o.atomic},
		&cli.BoolFlag{Name: "rollback-on-interrupt", Category: group, Value: true, Usage: "with --atomic, also go back when a signal ends the run", Destination: &o.rollbackOnInterrupt},
		&cli.BoolFlag{Name: "take-ownership", Category: group, Usage: "adopt existing objects that no release owns", Destination: &o.settings.TakeOwnership},
		&cli.GenericFlag{Name: "take-ownership-from", Category: group, Usage: "release whose objects may be taken: namespace/name (may be repeated)", Value: (*list)(&o.settings.TakeOwnershipFrom)},
		&cli.GenericFlag{Name: "adopt", Category: group, Usage: "existing object that may be adopted: kind/name (may be repeated)", Value: (*list)(&o.settings.Adopt)},
		&cli.GenericFlag{Name: "crds", Category: group, Usage: "the chart's crds/ directory: add (the default; takes away nothing that others have brought), create, upgrade or skip", Value: newChoice((*string)(&o.settings.CRDs), "add", "create", "upgrade", "skip")},
		&cli.BoolFlag{Name: "allow-partial-discovery", Category: group, Usage: "delete dropped objects although an API group doesn't answer and the chart may have rendered too little", Destination: &o.settings.PartialDiscovery},
		&cli.BoolFlag{Name: "skip-crds", Category: group, Usage: "same as --crds skip", Destination: &o.skipCRDs},
		&cli.BoolFlag{Name: "reset-values", Category: "Values", Usage: "use only the values given now", Destination: &o.reset},
		&cli.BoolFlag{Name: "reuse-values", Category: "Values", Usage: "lay the values given now over those of the last release and its chart", Destination: &o.reuse},
		&cli.BoolFlag{Name: "reset-then-reuse-values", Category: "Values", Usage: "lay the values given now over those of the last release, and both over the new chart's", Destination: &o.resetThen},
		&cli.BoolFlag{Name: "hide-notes", Category: group, Usage: "don't show the chart's notes", Destination: &o.hideNotes},
		&cli.BoolFlag{Name: "hide-secret", Category: group, Usage: "with --dry-run: show no Secrets; a plan never has their values", Destination: &o.hideSecrets},
	}
	flags = slices.Concat(flags, o.operation.flags(e), revisionFlags(&o.settings), generatedFlag(e, &o.settings))
	flags = append(flags, o.valueFlags()...)
	flags = append(flags, o.chartFlags()...)
	flags = append(flags, o.renderFlags()...)
	return append(flags, noOpFlags(e, "recreate-pods", "cleanup-on-fail", "disable-openapi-validation", "server-side", "force-conflicts")...)
}

func upgradeCommand(e *env) *cli.Command {
	o := &upgradeOptions{operation: operation{failurePrefix: upgradeFailed}}
	return &cli.Command{
		Name: "upgrade", Usage: "deploy a chart as the next revision of a release", ArgsUsage: "NAME CHART",
		Description: upgradeHelp,
		Flags: append(o.flags(e),
			&cli.BoolFlag{Name: "install", Aliases: []string{"i"}, Category: "Release", Usage: "install it if it was never deployed", Destination: &o.install}),
		Action: action(func(ctx context.Context, c *cli.Context) error { return o.upgrade(ctx, e, c) }),
	}
}

const upgradeHelp = `1. renders the chart with the values
2. asks the API server whether it would accept every object; any rejection
   ends the run before anything has changed
3. records the revision as pending
4. runs pre-upgrade hooks, applies all objects, waits until they are ready,
   deletes what the chart dropped, runs post-upgrade hooks
5. records the revision as deployed, or failed

Examples:
  deployer upgrade --install web ./chart -n prod -f values.yaml --set image.tag=1.9
  deployer upgrade web oci://registry.example.com/charts/web --version ^2 --atomic

Exit codes: 0 done; 1 failed; 3 rejected, nothing was changed; 5 another run
holds the release; 6 failed and rolled back; 7 the rollback failed too;
130, 143 stopped by a signal`

// upgrade is the action of upgrade, and of plan for one.
func (o *upgradeOptions) upgrade(ctx context.Context, e *env, c *cli.Context) error {
	args, err := arguments(c, 2, 2, "a release name and a chart")
	if err != nil {
		return err
	}
	if o.install {
		o.request.Install = deploy.InstallIfMissing
	}
	return o.run(ctx, e, args[0], args[1])
}

// run deploys the chart, or shows how it would.
func (o *upgradeOptions) run(ctx context.Context, e *env, name, ref string) error {
	o.completeRequest(name)
	reading, over := deploy.LimitStep(ctx, deploy.StepReadChart, o.settings.Timeout)
	loaded, values, err := o.read(reading, e, ref)
	err = over(err)
	switch {
	case err != nil && o.failurePrefix == installFailed:
		return withPrefix(installFailed, err)
	case err != nil:
		return err // without "UPGRADE FAILED", as Helm
	}
	o.request.Chart, o.request.Values, o.request.Render = loaded, values, o.render
	return o.operate(ctx, e, name, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
		return d.Upgrade(ctx, o.request)
	})
}

// completeRequest turns flags that depend on each other into the request.
func (o *upgradeOptions) completeRequest(name string) {
	o.request.Name, o.request.Labels = name, o.labels
	if o.skipCRDs {
		o.settings.CRDs = "skip"
	}
	switch { // the first counts, as in Helm: pkg/action/upgrade.go, reuseValues
	case o.reset:
		o.request.Reuse = chart.ResetValues
	case o.reuse:
		o.request.Reuse = chart.ReuseValues
	case o.resetThen:
		o.request.Reuse = chart.ResetThenReuseValues
	}
}
