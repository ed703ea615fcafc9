package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"filippo.io/age"

	"deployer/chart"
	"deployer/internal/agekey"
	"deployer/internal/deploy"
	"deployer/internal/planfile"
	"deployer/internal/program"
)

// An applyOptions is the command line of apply.
type applyOptions struct {
	operationFlags
	chartRequest
	digest     string
	identities []string
}

func (o *applyOptions) flags(e *env) []*flag {
	flags := inGroup("Plan", []*flag{
		{name: "digest", usage: "refuse the file unless it has this `DIGEST`, which plan --out printed", is: common | safe, value: text(&o.digest)},
		{name: "identity", usage: "`FILE` with age or SSH private keys for an encrypted plan (repeatable)", env: "DEPLOYER_AGE_IDENTITY SOPS_AGE_KEY_FILE", is: common | safe, value: verbatimList(&o.identities)},
	})
	ofRelease := inGroup("Release", append(o.undoFlags(), hideNotesFlag(&o.hideNotes)))
	deploying := slices.DeleteFunc(o.operationFlags.flags(e), func(f *flag) bool { return f.is.has(fixed) })
	return slices.Concat(flags, ofRelease, deploying, o.valueFlags(), o.chartFlags(), o.renderFlags())
}

func applyCommand(e *env) *command {
	o := &applyOptions{operationFlags: operationFlags{confirm: confirmation{byDefault: true}}}
	return &command{
		name: "apply", is: changes | reports | beyondHelm, usage: "apply a saved plan exactly as it was shown, or not at all", args: "FILE [CHART]", takes: "the file of a plan, and maybe a chart", complete: "FILE",
		steps: `1. Checks that nobody changed the file, which plan --out has written, and that
   it is for this cluster.
2. Locks the release and plans again.
3. Refuses to continue if something that the plan changes is different now: the
   release, an object, a field, or the owner of a field.
4. Does what upgrade, rollback or uninstall does.

Other fields, status, and replicas that an autoscaler owns can be different.

A plan with Secrets or values that might be confidential doesn't hold them,
unless it was saved with --encrypt-to. To apply it, give the same CHART, values
and rendering flags again: plan has printed the command.`,
		examples: `deployer apply web.plan --identity key.txt
deployer apply web.plan ./chart -f values.yaml
deployer apply web.plan --dry-run`,
		codes: "the same as upgrade's, and 4 if the plan no longer fits the cluster",
		flags: o.flags(e),
		action: func(ctx context.Context, args []string) error {
			return o.run(ctx, e, args)
		},
	}
}

func (o *applyOptions) run(ctx context.Context, e *env, args []string) error {
	f, err := planfile.Read(args[0])
	if err != nil {
		return err
	}
	if e.kube.Context.Namespace != "" && e.kube.Context.Namespace != f.Namespace {
		return usagef("the plan is for namespace %s, not %s", f.Namespace, e.kube.Context.Namespace)
	}
	e.kube.Context.Namespace = f.Namespace
	rerender, err := o.rerenderFunc(ctx, e, f, args)
	if err != nil {
		return err
	}
	identities, err := o.readIdentities(f)
	if err != nil {
		return err
	}
	o.settings.Policies = f.Policies
	return o.operate(ctx, e, f.Release, f.DecideFunc(o.digest, identities, rerender))
}

// rerenderFunc returns what decides from chart and values, for plans that
// don't have them; nil for others.
func (o *applyOptions) rerenderFunc(ctx context.Context, e *env, f *planfile.File, args []string) (deploy.DecideFunc, error) {
	given := len(args) > 1 || len(o.sources) > 0
	switch mode := f.Content.Mode; {
	case !given && mode != planfile.ContentRerendered:
		return nil, nil
	case mode == planfile.ContentStored, mode == planfile.ContentEncrypted, mode == planfile.ContentPlain && len(args) < 2:
		return nil, usagef("%s needs no chart and no values: it holds what it applies, or takes it from the release", args[0])
	case len(args) < 2:
		return nil, program.WithHint(fmt.Errorf("%s doesn't hold its confidential values and Secrets: the chart must be rendered again", args[0]),
			fmt.Sprintf("give the chart and values that it was made with:  "+program.Name+" apply %s CHART -f VALUES\nor plan with --encrypt-to, which saves everything in the file", args[0]))
	}
	loaded, values, err := o.readInTime(ctx, e, args[1], o.settings.Timeout)
	if err != nil {
		return nil, err
	}
	request := deploy.UpgradeRequest{
		Name: f.Release, Chart: loaded, Values: values, Reuse: chart.ReuseMode(f.Reuse), Install: deploy.InstallIfMissing,
		CreateNamespace: f.CreateNamespace, Description: f.Description, Render: o.render,
	}
	return func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
		return d.Upgrade(ctx, request)
	}, nil
}

// readIdentities reads the identities for an encrypted plan.
func (o *applyOptions) readIdentities(f *planfile.File) ([]age.Identity, error) {
	if f.Content.Mode != planfile.ContentEncrypted {
		return nil, nil
	}
	if text := os.Getenv("SOPS_AGE_KEY"); len(o.identities) == 0 && text != "" {
		return agekey.Parse([]byte(text))
	}
	return planfile.Identities(o.identities)
}
