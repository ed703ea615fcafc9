package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/chart/generated"
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
		&cli.StringFlag{Name: "description", Category: group, Usage: "words for the history", Destination: &r.Description},
		&cli.GenericFlag{Name: "labels", Aliases: []string{"l"}, Category: group, Usage: "labels of the release record: name=value,…", Value: &o.labels},
		&cli.BoolFlag{Name: "atomic", Aliases: []string{"rollback-on-failure"}, Category: group, Usage: "when it fails, go back to the last successful revision", Destination: &o.atomic},
		&cli.BoolFlag{Name: "rollback-on-interrupt", Category: group, Value: true, Usage: "with --atomic, also go back when a signal ends the run", Destination: &o.undoStopped},
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
	flags = slices.Concat(flags, o.operation.flags(e), pastFlags(&o.settings), generatedFlag(e, &o.settings))
	flags = append(flags, o.valueFlags()...)
	flags = append(flags, o.chartFlags()...)
	flags = append(flags, o.renderFlags()...)
	return append(flags, idleFlags(e, "recreate-pods", "cleanup-on-fail", "disable-openapi-validation", "server-side", "force-conflicts")...)
}

// generatedFlag is that of commands that render a chart for a release.
func generatedFlag(e *env, s *deploy.Settings) []cli.Flag {
	s.Generated = generated.Keep
	if e.dropIn {
		s.Generated = generated.Renew // as Helm
	}
	return []cli.Flag{&cli.GenericFlag{
		Name: "generated", Category: "Deploying", Usage: "passwords, certificates and what else templates generate: keep what was deployed, or renew it",
		Value: newChoice((*string)(&s.Generated), string(generated.Keep), string(generated.Renew)),
	}}
}

func upgradeCommand(e *env) *cli.Command {
	o := &upgradeOptions{operation: operation{failure: upgradeFailed}}
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
	o.complete(name)
	reading, over := deploy.LimitStep(ctx, deploy.StepReadChart, o.settings.Timeout)
	loaded, values, err := o.read(reading, e, ref)
	err = over(err)
	switch {
	case err != nil && o.failure == installFailed:
		return prefixed(installFailed, err)
	case err != nil:
		return err // without "UPGRADE FAILED", as Helm
	}
	o.request.Chart, o.request.Values, o.request.Render = loaded, values, o.render
	return o.operate(ctx, e, name, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
		return d.Upgrade(ctx, o.request)
	})
}

// complete turns flags that depend on each other into the request.
func (o *upgradeOptions) complete(name string) {
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

func planCommand(e *env) *cli.Command {
	o := &upgradeOptions{}
	var rollback, uninstall, drift bool
	removal := &removal{}
	o.planOnly, o.saving = true, &saving{reuse: &o.request.Reuse}
	return &cli.Command{
		Name: "plan", Usage: "show what upgrade, rollback or uninstall would do, field by field", ArgsUsage: "NAME [CHART | REVISION]",
		Description: `Does everything upgrade does up to its first change, and shows what would
come next. It writes nothing to the cluster.

Examples:
  deployer plan web ./chart -f values.yaml
  deployer plan --rollback web 3
  deployer plan --uninstall web --keep-history
  deployer plan web ./chart -f values.yaml --out web.plan --encrypt-to age1...
  deployer plan --show web.plan
  deployer plan web --drift

--drift compares what is in the cluster with what was deployed last: manual
edits, what failed releases left, other releases, deleted objects, controllers.

Exit codes: 0 done; 1 failed; 2 with --detailed-exitcode, or --drift: there are
changes; 3 the server would reject it`,
		Flags: append(append(append(o.flags(e), o.saving.flags()...), removal.flags("Plan", "with --uninstall: ")...),
			&cli.BoolFlag{Name: "install", Aliases: []string{"i"}, Category: "Release", Value: true, Usage: "also of a release that was never deployed", Destination: &o.install},
			&cli.BoolFlag{Name: "rollback", Category: "Plan", Usage: "of a rollback to REVISION", Destination: &rollback},
			&cli.BoolFlag{Name: "uninstall", Category: "Plan", Usage: "of an uninstall", Destination: &uninstall},
			&cli.BoolFlag{Name: "drift", Category: "Plan", Usage: "how the cluster differs from what was deployed last; exits with 2 when it does", Destination: &drift},
			&cli.BoolFlag{Name: "detailed-exitcode", Category: "Plan", Usage: "exit with 2 when there are changes; --drift does without it", Destination: &o.detailed},
			&cli.BoolFlag{Name: "show-unchanged", Category: "Plan", Usage: "also list what stays as it is", Destination: &o.plan.ShowUnchanged},
			&cli.BoolFlag{Name: "full", Category: "Plan", Usage: "also what is left out of the text of a long plan", Destination: &o.plan.Full},
			&cli.IntFlag{Name: "context", Category: "Plan", Value: 3, Usage: "unchanged lines around each changed field", Destination: &o.plan.Context},
		),
		Action: action(func(ctx context.Context, c *cli.Context) error {
			if err := o.saving.check(); err != nil {
				return err
			}
			switch {
			case drift && (rollback || uninstall || o.saving.shown != "" || o.saving.path != ""):
				return usagef("plan", "--drift plans nothing: it goes with none of --rollback, --uninstall, --show and --out")
			case drift:
				return o.planDrift(ctx, e, c)
			case o.saving.shown != "":
				return o.saving.show(e, c, o.plan)
			case rollback && uninstall:
				return usagef("plan", "--rollback and --uninstall exclude each other")
			case uninstall:
				return o.planUninstall(ctx, e, c, removal)
			case removal.given(c):
				return usagef("plan", "--keep-history and --cascade are about --uninstall, which is missing")
			case rollback:
				return o.planRollback(ctx, e, c)
			}
			return o.upgrade(ctx, e, c)
		}),
	}
}

func (o *upgradeOptions) planRollback(ctx context.Context, e *env, c *cli.Context) error {
	request, err := rollbackRequest(c)
	if err != nil {
		return err
	}
	request.Description = o.request.Description
	return o.operate(ctx, e, request.Name, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
		return d.Rollback(ctx, request)
	})
}

func (o *upgradeOptions) planUninstall(ctx context.Context, e *env, c *cli.Context, r *removal) error {
	args, err := arguments(c, 1, 1, "a release name")
	if err != nil {
		return err
	}
	r.settle(&o.settings)
	request := deploy.UninstallRequest{Name: args[0], KeepHistory: r.keep, Description: o.request.Description}
	return o.operate(ctx, e, request.Name, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
		return d.Uninstall(ctx, request)
	})
}

func installCommand(e *env) *cli.Command {
	o := &upgradeOptions{operation: operation{failure: installFailed}}
	return &cli.Command{
		Name: "install", Usage: "deploy a chart as a new release", ArgsUsage: "[NAME] CHART",
		Description: `Works as upgrade --install does, but refuses a name that is in use.

Examples:
  deployer install web ./chart -n prod --create-namespace
  deployer install ./chart --generate-name

Exit codes: as upgrade's`,
		Flags: append(o.flags(e),
			&cli.BoolFlag{Name: "replace", Category: "Release", Usage: "re-use the name of an uninstalled release whose history was kept", Destination: &o.request.Replace},
			&cli.BoolFlag{Name: "generate-name", Aliases: []string{"g"}, Category: "Release", Usage: "make a name from the chart's and the time", Destination: &o.generate},
			&cli.StringFlag{Name: "name-template", Category: "Release", Usage: "Go template of the release's name", Destination: &o.nameFrom},
		),
		Action: action(func(ctx context.Context, c *cli.Context) error {
			args, err := arguments(c, 1, 2, "a release name and a chart")
			if err != nil {
				return err
			}
			name, ref, err := nameAndChart(args, o.generate, o.nameFrom)
			if err != nil {
				return prefixed(installFailed, &usageError{err: err, command: "install"})
			}
			o.request.Install = deploy.InstallOnly
			return o.run(ctx, e, name, ref)
		}),
	}
}
