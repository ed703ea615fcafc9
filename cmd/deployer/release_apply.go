package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"filippo.io/age"
	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/planfile"
	"deployer/internal/program"
)

// An applyOptions is the command line of apply.
type applyOptions struct {
	operation
	chartRequest
	digest     string
	identities list
}

// fixedByPlan are flags of operations that a plan has in it: what is done is
// decided when it is made.
var fixedByPlan = []string{"conflicts", "allow-recreate", "revert-manual-changes", "gate", "field-validation", "no-hooks"}

func (o *applyOptions) flags(e *env) []cli.Flag {
	const group = "Plan"
	flags := []cli.Flag{
		&cli.StringFlag{Name: "digest", Category: group, Usage: "digest that plan has printed; refuse any other file", Destination: &o.digest},
		&cli.GenericFlag{Name: "identity", Category: group, Usage: "file of age or SSH private keys, for an encrypted plan (may be repeated)", Value: &verbatimList{&o.identities}, EnvVars: []string{"DEPLOYER_AGE_IDENTITY", "SOPS_AGE_KEY_FILE"}},
		&cli.BoolFlag{Name: "atomic", Aliases: []string{"rollback-on-failure"}, Category: "Release", Usage: "when it fails, go back to the last successful revision", Destination: &o.atomic},
		&cli.BoolFlag{Name: "rollback-on-interrupt", Category: "Release", Value: true, Usage: "with --atomic, also go back when a signal ends the run", Destination: &o.rollbackOnInterrupt},
		&cli.BoolFlag{Name: "hide-notes", Category: "Release", Usage: "don't show the chart's notes", Destination: &o.hideNotes},
	}
	flags = append(flags, slices.DeleteFunc(o.operation.flags(e), func(f cli.Flag) bool {
		return slices.Contains(fixedByPlan, f.Names()[0])
	})...)
	flags = append(flags, o.valueFlags()...)
	flags = append(flags, o.chartFlags()...)
	return append(flags, o.renderFlags()...)
}

func applyCommand(e *env) *cli.Command {
	o := &applyOptions{}
	return &cli.Command{
		Name: "apply", Usage: "carry out a saved plan, exactly or not at all", ArgsUsage: "FILE [CHART]",
		Description: `Carries out what deployer plan --out FILE has saved.

1. checks that the file is as it was written and for this cluster
2. takes the lock of the release and plans anew
3. refuses if anything that the plan touches has moved: the release, an object
   that was deleted or made again, a field that changes, or who owns it
4. does what upgrade, rollback or uninstall do

Status, numbers of replicas left to an autoscaler and fields the plan doesn't
touch may have changed. CHART and the flags for values and rendering are for
plans that were made without --encrypt-to and have values or Secrets: these are
not in the file, and must come out the same again.

Examples:
  deployer apply web.plan --identity key.txt
  deployer apply web.plan ./chart -f values.yaml
  deployer apply web.plan --dry-run

Exit codes: as upgrade's, and 4 when the plan no longer fits the cluster`,
		Flags: o.flags(e),
		Action: action(func(ctx context.Context, c *cli.Context) error {
			args, err := arguments(c, 1, 2, "the file of a plan, and maybe a chart")
			if err != nil {
				return err
			}
			return o.run(ctx, e, args)
		}),
	}
}

func (o *applyOptions) run(ctx context.Context, e *env, args []string) error {
	f, err := planfile.Read(args[0])
	if err != nil {
		return err
	}
	if e.global.kube.Namespace != "" && e.global.kube.Namespace != f.Namespace {
		return usagef("apply", "the plan is for namespace %s, not %s", f.Namespace, e.global.kube.Namespace)
	}
	e.global.kube.Namespace = f.Namespace
	render, err := o.renderFunc(ctx, e, f, args)
	if err != nil {
		return err
	}
	identities, err := o.readIdentities(f)
	if err != nil {
		return err
	}
	o.settings.Policies = f.Policies
	return o.operate(ctx, e, f.Release, o.decideFunc(f, identities, render))
}

// decideFunc opens the plan when it is first asked, which is before the release is
// locked, and decides by it afterwards.
func (o *applyOptions) decideFunc(f *planfile.File, identities []age.Identity, render deploy.DecideFunc) deploy.DecideFunc {
	var p *planfile.Plan
	return func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
		if p != nil {
			return p.Decide(ctx, d, render)
		}
		opened, err := f.Open(ctx, d, o.digest, identities)
		if err != nil {
			return nil, err
		}
		p = opened
		// The lock is in the namespace: none is made for a plan that is stale.
		if o.dryRun == "client" || o.dryRun == "server" || p.CreateNamespace {
			return p.Decide(ctx, d, render)
		}
		return p.OperationForLock(), nil
	}
}

// renderFunc gives what makes the operation from chart and values, for plans that
// don't have them; nil for others.
func (o *applyOptions) renderFunc(ctx context.Context, e *env, f *planfile.File, args []string) (deploy.DecideFunc, error) {
	if f.Content.Mode != planfile.ContentRerendered {
		if len(args) > 1 || len(o.sources) > 0 {
			return nil, usagef("apply", "%s has all that is to be applied in it, or takes it from the release: give no chart and no values", args[0])
		}
		return nil, nil
	}
	if len(args) < 2 {
		return nil, &planfile.InputError{
			Text: fmt.Sprintf("%s has no values and no Secrets in it: the chart has to be rendered again", args[0]),
			What: fmt.Sprintf("give what it was made with:  "+program.Name+" apply %s CHART -f VALUES\nor plan with --encrypt-to, for a file that has everything in it", args[0]),
		}
	}
	reading, over := deploy.LimitStep(ctx, deploy.StepReadChart, o.settings.Timeout)
	loaded, values, err := o.read(reading, e, args[1])
	err = over(err)
	if err != nil {
		return nil, err
	}
	request := deploy.UpgradeRequest{
		Name: f.Release, Chart: loaded, Values: values, Reuse: chart.Reuse(f.Reuse), Install: deploy.InstallIfMissing,
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
	identities, err := planfile.Identities(o.identities)
	if err != nil {
		return nil, err
	}
	if text := os.Getenv("SOPS_AGE_KEY"); len(o.identities) == 0 && text != "" {
		return chart.ParseIdentities([]byte(text))
	}
	return identities, nil
}
