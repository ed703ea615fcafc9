package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/program"
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

func (o *upgradeOptions) flags(e *env) []*flag {
	r := &o.request
	ofRelease := slices.Concat([]*flag{
		{name: "create-namespace", usage: "create the namespace if it doesn't exist", is: common | safe, value: toggle(&r.CreateNamespace)},
		descriptionFlag(&r.Description),
		{name: "labels", also: "l", usage: "labels for the release record, `NAME=VALUE`,...", is: rare | safe, value: pairs(&r.Labels)},
	}, o.undoFlags(), []*flag{
		{name: "take-ownership", usage: "adopt existing objects that belong to no release", is: rare | risky, value: toggle(&o.settings.TakeOwnership)},
		{name: "take-ownership-from", usage: "also take over objects of this release, `NAMESPACE/NAME` (repeatable)", is: rare | risky, value: slashedNames(&o.settings.TakeOwnershipFrom, "namespace/name or *", 1, 2)},
		{name: "adopt", usage: "adopt this existing object, `KIND/NAME` (repeatable)", is: rare | risky, value: slashedNames(&o.settings.Adopt, "kind/name or kind/namespace/name", 2, 3)},
		{name: "crds", usage: "what to do with CustomResourceDefinitions in crds/: add (create, or update where nothing is lost), create, upgrade or skip", is: rare | safe, value: choice(&o.settings.CRDs, "add", "create", "upgrade", "skip")},
		{name: "allow-partial-discovery", usage: "prune even if an API group doesn't answer and the chart might have rendered too little", is: rare | risky, value: toggle(&o.settings.PartialDiscovery)},
		{name: "skip-crds", usage: "same as --crds skip", is: rare | safe, value: toggle(&o.skipCRDs)},
		hideNotesFlag(&o.hideNotes),
		{name: "hide-secret", usage: "with --dry-run, leave out Secrets (a plan never shows their values)", is: rare | safe, value: toggle(&o.hideSecrets).checked(o.checkHideSecrets)},
	})
	ofValues := []*flag{
		{name: "reset-values", usage: "use the chart's values and those given here only", is: usual | risky, value: toggle(&o.resetValues)},
		{name: "reuse-values", usage: "merge the values given here into those of the last revision and its chart", is: usual | safe, value: toggle(&o.reuseValues)},
		{name: "reset-then-reuse-values", usage: "merge the values given here into those of the last revision, and both into the new chart's", is: rare | safe, value: toggle(&o.resetThenReuse)},
	}
	return slices.Concat(inGroup("Release", ofRelease), inGroup("Values", ofValues), o.operationFlags.flags(e), revisionFlags(&o.settings), []*flag{generatedFlag(e, &o.settings)},
		o.valueFlags(), o.chartFlags(), o.renderFlags(), deployingFlagsOfHelm(),
		[]*flag{noEffect("disable-openapi-validation", "objects are validated by the API server; see --field-validation")})
}

// checkHideSecrets refuses --hide-secret where nothing is shown.
func (o *upgradeOptions) checkHideSecrets() error {
	if !o.hideSecrets || o.isPlanning() {
		return nil
	}
	//lint:ignore ST1005 Helm's words
	return withPrefix(o.failurePrefix, errors.New("Hiding Kubernetes secrets requires a dry-run mode"))
}

func upgradeCommand(e *env) *command {
	o := &upgradeOptions{operationFlags: operationFlags{failurePrefix: upgradeFailed}}
	return &command{
		name: "upgrade", is: changes | reports, usage: "deploy a chart as the next revision of a release", args: "NAME CHART", takes: "a release name and a chart",
		steps: `1. Renders the chart with the values.
2. Asks the API server whether it accepts every object (dry run). If it rejects
   any, the run ends before it changes anything.
3. Records the revision as pending.
4. Runs the pre-upgrade hooks, applies all objects, waits until they are ready,
   deletes objects that the chart dropped, and runs the post-upgrade hooks.
5. Records the revision as deployed or failed.`,
		examples: `deployer upgrade --install web ./chart -n prod -f values.yaml --set image.tag=1.9
deployer upgrade web oci://registry.example.com/charts/web --version ^2 --atomic`,
		codes: "0 done; 1 failed; 3 rejected, nothing changed; 5 another run holds the release; 6 failed and rolled back; 7 the rollback failed too; 130, 143 stopped by a signal",
		flags: append(o.flags(e),
			&flag{name: "install", also: "i", group: "Release", usage: "install the release if it doesn't exist", is: common | safe, value: toggle(&o.install)}),
		action: o.upgradeAction(e),
	}
}

// upgradeAction is the action of upgrade, and of plan for one.
func (o *upgradeOptions) upgradeAction(e *env) action {
	return func(ctx context.Context, args []string) error {
		if o.install {
			o.request.Install = deploy.InstallIfMissing
		}
		return o.run(ctx, e, args[0], args[1])
	}
}

// run deploys the chart, or shows how it would.
func (o *upgradeOptions) run(ctx context.Context, e *env, name, ref string) error {
	o.completeRequest(name)
	loaded, values, err := o.readInTime(ctx, e, ref, o.settings.Timeout)
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

func installCommand(e *env) *command {
	o := &upgradeOptions{operationFlags: operationFlags{failurePrefix: installFailed}}
	return &command{
		name: "install", is: changes | reports, usage: "deploy a chart as a new release", args: "[NAME] CHART", takes: "a release name and a chart", complete: "NEW CHART",
		steps: `Does the same as upgrade --install, but fails if the name is in use.`,
		examples: `deployer install web ./chart -n prod --create-namespace
deployer install ./chart --generate-name`,
		codes: "the same as upgrade's",
		flags: append(o.flags(e),
			&flag{name: "replace", group: "Release", usage: "reuse the name of an uninstalled release whose history was kept", is: rare | risky, value: toggle(&o.request.Replace)},
			&flag{name: "generate-name", also: "g", group: "Release", usage: "generate the release name from the chart's name and the time", is: usual | safe, value: toggle(&o.generateName)},
			&flag{name: "name-template", group: "Release", usage: "Go `TEMPLATE` for the release name", is: rare | safe, value: text(&o.nameTemplate)},
		),
		action: func(ctx context.Context, args []string) error {
			name, ref, err := nameAndChart(args, o.generateName, o.nameTemplate)
			if err != nil {
				return withPrefix(installFailed, &usageError{err})
			}
			o.request.Install = deploy.InstallOnly
			return o.run(ctx, e, name, ref)
		},
	}
}

// nameAndChart reads "[NAME] CHART" with the flags that make names, by Helm's
// rules. (helm.sh/helm/v3/pkg/action/install.go, NameAndChart)
func nameAndChart(args []string, generate bool, nameTemplate string) (name, ref string, err error) {
	ref = args[len(args)-1]
	switch named := len(args) == 2; {
	case named && generate:
		return "", "", errors.New("cannot set --generate-name and also specify a name")
	case named && nameTemplate != "":
		return "", "", errors.New("cannot set --name-template and also specify a name")
	case named:
		return args[0], ref, nil
	case nameTemplate != "":
		name, err = chart.ReleaseNameFromTemplate(nameTemplate)
		return name, ref, err
	case generate:
		return chart.GenerateReleaseName(ref, time.Now()), ref, nil
	}
	return "", "", program.WithHint(errors.New("must either provide a name or specify --generate-name"), "give the name of the release before the chart: NAME "+ref)
}
