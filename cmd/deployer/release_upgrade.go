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
	operationFlags
	chartRequest
	request        deploy.UpgradeRequest
	install        bool
	resetValues    bool
	reuseValues    bool
	resetThenReuse bool
	skipCRDs       bool
	generateName   bool
	nameTemplate   string
}

func (o *upgradeOptions) flags(e *env) []cli.Flag {
	const group = "Release"
	r := &o.request
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "create-namespace", Category: group, Usage: "create the namespace of the release if it doesn't exist", Destination: &r.CreateNamespace},
		descriptionFlag(group, &r.Description),
		&cli.GenericFlag{Name: "labels", Aliases: []string{"l"}, Category: group, Usage: "labels for the release record, `NAME=VALUE`,...", Value: pairs(&r.Labels)},
		o.undo.atomicFlag(),
		o.undo.onInterruptFlag(),
		&cli.BoolFlag{Name: "take-ownership", Category: group, Usage: "adopt existing objects that belong to no release", Destination: &o.settings.TakeOwnership},
		&cli.GenericFlag{Name: "take-ownership-from", Category: group, Usage: "also take over objects of this release, `NAMESPACE/NAME` (may be repeated)", Value: slashedNames(&o.settings.TakeOwnershipFrom, "namespace/name or *", 1, 2)},
		&cli.GenericFlag{Name: "adopt", Category: group, Usage: "adopt this existing object, `KIND/NAME` (may be repeated)", Value: slashedNames(&o.settings.Adopt, "kind/name or kind/namespace/name", 2, 3)},
		&cli.GenericFlag{Name: "crds", Category: group, Usage: "what to do with CustomResourceDefinitions in crds/: add (create, or update where nothing is lost), create, upgrade or skip", Value: newChoice((*string)(&o.settings.CRDs), "add", "create", "upgrade", "skip")},
		&cli.BoolFlag{Name: "allow-partial-discovery", Category: group, Usage: "prune even if an API group doesn't answer and the chart may have rendered too little", Destination: &o.settings.PartialDiscovery},
		&cli.BoolFlag{Name: "skip-crds", Category: group, Usage: "same as --crds skip", Destination: &o.skipCRDs},
		&cli.BoolFlag{Name: "reset-values", Category: "Values", Usage: "use the chart's values and those given here only", Destination: &o.resetValues},
		&cli.BoolFlag{Name: "reuse-values", Category: "Values", Usage: "merge the values given here into those of the last revision and its chart", Destination: &o.reuseValues},
		&cli.BoolFlag{Name: "reset-then-reuse-values", Category: "Values", Usage: "merge the values given here into those of the last revision, and both into the new chart's", Destination: &o.resetThenReuse},
		hideNotesFlag(group, &o.hideNotes),
		&cli.BoolFlag{Name: "hide-secret", Category: group, Usage: "with --dry-run, leave out Secrets (a plan never shows their values)", Destination: &o.dryRun.hideSecrets},
	}
	return slices.Concat(flags, o.operationFlags.flags(e), revisionFlags(&o.settings), []cli.Flag{generatedFlag(e, &o.settings)},
		o.valueFlags(), o.chartFlags(), o.renderFlags(),
		noOpFlags(e, "recreate-pods", "cleanup-on-fail", "disable-openapi-validation", "server-side", "force-conflicts"))
}

func upgradeCommand(e *env) *cli.Command {
	o := &upgradeOptions{operationFlags: operationFlags{failurePrefix: upgradeFailed}}
	return &cli.Command{
		Name: "upgrade", Usage: "deploy a chart as the next revision of a release", ArgsUsage: "NAME CHART",
		Description: upgradeHelp,
		Flags: append(o.flags(e),
			&cli.BoolFlag{Name: "install", Aliases: []string{"i"}, Category: "Release", Usage: "install the release if it doesn't exist", Destination: &o.install}),
		Action: o.upgradeAction(e),
	}
}

const upgradeHelp = `1. Renders the chart with the values.
2. Asks the API server whether it accepts every object (dry run). If it rejects
   any, the run ends before it changes anything.
3. Records the revision as pending.
4. Runs the pre-upgrade hooks, applies all objects, waits until they are ready,
   deletes objects that the chart dropped, and runs the post-upgrade hooks.
5. Records the revision as deployed or failed.

Examples:
  deployer upgrade --install web ./chart -n prod -f values.yaml --set image.tag=1.9
  deployer upgrade web oci://registry.example.com/charts/web --version ^2 --atomic

Exit codes: 0 done; 1 failed; 3 rejected, nothing changed; 5 another run holds
the release; 6 failed and rolled back; 7 the rollback failed too; 130, 143 stopped by a signal`

// upgradeAction is the action of upgrade, and of plan for one.
func (o *upgradeOptions) upgradeAction(e *env) cli.ActionFunc {
	return action(2, 2, "a release name and a chart", func(ctx context.Context, args []string) error {
		if o.install {
			o.request.Install = deploy.InstallIfMissing
		}
		return o.run(ctx, e, args[0], args[1])
	})
}

// run deploys the chart, or shows how it would.
func (o *upgradeOptions) run(ctx context.Context, e *env, name, ref string) error {
	format, err := o.checkFlags(e)
	if err != nil {
		return err
	}
	o.completeRequest(name)
	loaded, values, err := o.readInTime(ctx, e, ref, o.settings.Timeout)
	switch {
	case err != nil && o.failurePrefix == installFailed:
		return withPrefix(installFailed, err)
	case err != nil:
		return err // without "UPGRADE FAILED", as Helm
	}
	o.request.Chart, o.request.Values, o.request.Render = loaded, values, o.render
	return o.operateChecked(ctx, e, name, format, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
		return d.Upgrade(ctx, o.request)
	})
}

// completeRequest turns flags that depend on each other into the request.
func (o *upgradeOptions) completeRequest(name string) {
	o.request.Name = name
	if o.skipCRDs {
		o.settings.CRDs = "skip"
	}
	switch { // the first counts, as in Helm: pkg/action/upgrade.go, reuseValues
	case o.resetValues:
		o.request.Reuse = chart.ResetValues
	case o.reuseValues:
		o.request.Reuse = chart.ReuseValues
	case o.resetThenReuse:
		o.request.Reuse = chart.ResetThenReuseValues
	}
}
