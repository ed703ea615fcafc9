package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/planfile"
	"deployer/internal/program"
	"deployer/internal/view/inspection"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
	"deployer/internal/view/textfmt"
)

func planCommand(e *env) *command {
	o := &upgradeOptions{}
	var rollback, uninstall bool
	removal := &uninstallOptions{}
	ofRemoval := removal.flags("with --uninstall: ")
	detailed := &flag{name: "detailed-exitcode", usage: "exit with 2 if there are changes; --drift always does", is: common | safe, value: toggle(&o.plan.detailedExitCode)}
	o.plan.only, o.plan.file = true, &savedPlan{reuse: &o.request.Reuse}
	return &command{
		name: "plan", also: "diff drift", is: reports | beyondHelm | yields | severalForms, usage: "show what upgrade, rollback or uninstall would do, field by field", args: "NAME [CHART | REVISION]", complete: "NAME CHART",
		steps: `Does all that comes before the first change, and writes nothing to the cluster.

With --drift it says what has changed since the last deployment and who did it:
people, failed releases, other releases, controllers.`,
		examples: `deployer plan web ./chart -f values.yaml
deployer plan --rollback web 3
deployer plan --uninstall web
deployer plan web ./chart -f values.yaml --out web.plan --encrypt-to age1...
deployer drift web`,
		codes: "0 done; 1 failed; 2 there are changes (with --detailed-exitcode or --drift); 3 the API server would reject the release",
		flags: append(o.flags(e), inGroup("Plan", append(slices.Concat(o.plan.file.flags(), ofRemoval),
			&flag{name: "install", also: "i", group: "Release", usage: "also plan a release that doesn't exist yet", is: rare | safe, value: toggle(&o.install, true)},
			&flag{name: "rollback", usage: "plan a rollback to REVISION", is: common | safe, value: toggle(&rollback)},
			&flag{name: "uninstall", usage: "plan an uninstall", is: common | safe, value: toggle(&uninstall)},
			&flag{name: "drift", usage: "show how the cluster differs from the last deployment; exit with 2 if it does", is: common | safe, value: toggle(&o.plan.drift)},
			detailed,
			&flag{name: "show-unchanged", usage: "also list unchanged objects", is: rare | safe, value: toggle(&o.plan.options.ShowUnchanged)},
			&flag{name: "full", usage: "show all of a long plan, with nothing grouped or left out", is: rare | safe, value: toggle(&o.plan.options.Full)},
			&flag{name: "context", usage: "unchanged lines to show around each change in a text", is: rare | safe, value: number(&o.plan.options.Context, 3)},
		))...),
		action: func(ctx context.Context, args []string) error {
			form, takes, do := "NAME CHART", "a release name and a chart", o.upgradeAction(e)
			switch {
			case o.plan.drift && (rollback || uninstall || o.plan.file.showPath != "" || o.plan.file.path != ""):
				return usagef("--drift can't be combined with --rollback, --uninstall, --show or --out")
			case o.plan.drift:
				form, takes, do = "NAME", "a release name", o.driftAction(e, o.plan.detailedExitCode || !detailed.given)
			case o.plan.file.showPath != "":
				form, takes, do = "", "", o.plan.file.showAction(e, o.plan.options)
			case rollback && uninstall:
				return usagef("--rollback and --uninstall can't be combined")
			case uninstall:
				form, takes, do = "NAME", "a release name", func(ctx context.Context, args []string) error {
					removal.request.Description = o.request.Description
					return o.uninstall(ctx, e, args[0], removal)
				}
			case slices.ContainsFunc(ofRemoval, func(f *flag) bool { return e.call.hasFlag(f.name) }): // in the environment they are for uninstall
				return usagef("--keep-history and --cascade need --uninstall")
			case rollback:
				form, takes, do = rollbackForm, rollbackTakes, o.rollbackAction(e, &o.request.Description)
			}
			if err := e.call.checkArguments(form, takes, args); err != nil {
				return err
			}
			return do(ctx, args)
		},
	}
}

// driftAction shows how the cluster differs from what a release has deployed. Scripts see it by
// the exit code, unless --detailed-exitcode=false.
func (o *upgradeOptions) driftAction(e *env, detailedExitCode bool) action {
	return func(ctx context.Context, args []string) error {
		o.plan.options.Format, o.plan.options.Colour = e.format, e.colour
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
	}
}

// savedPlan is what plan does with files.
type savedPlan struct {
	path      string // to write; empty for none
	showPath  string // to print instead of planning; empty for none
	encryptTo []string
	reuse     *chart.ReuseMode

	recipients []age.Recipient // of encryptTo; set by check
}

func (s *savedPlan) flags() []*flag {
	return []*flag{
		{name: "out", usage: "also save the plan in this `FILE`, for deployer apply", is: common | safe, value: text(&s.path)},
		{name: "show", usage: "print the plan saved in this `FILE`; needs no cluster", is: usual | safe, value: text(&s.showPath)},
		{name: "encrypt-to", usage: "with --out, encrypt values and Secrets to this age or SSH public `KEY` (repeatable)", is: usual | safe, value: verbatimList(&s.encryptTo).checked(s.check)},
	}
}

// check looks at the flags about files before anything is done.
func (s *savedPlan) check() error {
	var err error
	switch s.recipients, err = planfile.Recipients(s.encryptTo); {
	case err != nil:
		return &usageError{err}
	case len(s.recipients) > 0 && s.path == "":
		return usagef("--encrypt-to needs --out")
	case s.showPath != "" && s.path != "":
		return usagef("--show and --out can't be combined")
	}
	return nil
}

// save writes the plan to its file, if there is to be one, and says how to
// carry it out.
func (s *savedPlan) save(ctx context.Context, e *env, d *deploy.Deployer, op *deploy.Operation) error {
	if s == nil || s.path == "" {
		return nil
	}
	var shown strings.Builder
	if err := plan.Show(output.Streams{Out: &shown}, op, page.Options{Format: output.FormatJSON}); err != nil {
		return err
	}
	f, err := planfile.Save(ctx, d, op, s.path, planfile.Options{
		Tool: "deployer " + buildVersion, Reuse: string(*s.reuse), EncryptTo: s.recipients,
		Shown: map[string]string{string(output.FormatJSON): shown.String()},
	})
	if err != nil {
		return err
	}
	return printTo(e.streams.Err, fmt.Sprintf("plan saved in %s, digest %s\nto apply it, run: %s\n", s.path, f.Digest(), e.applyCommandLine(f, s.path)))
}

// applyCommandLine is the command line that carries a plan out, to be copied. Of a plan that holds no content it has the
// chart and what says how the chart is rendered, as this command line has it; what must not be shown is hidden there.
func (e *env) applyCommandLine(f *planfile.File, path string) string {
	words := []string{program.Name, "apply", textfmt.ShellQuoted(path)}
	switch f.Content.Mode {
	case planfile.ContentRerendered:
		if len(e.call.arguments) < 2 {
			return strings.Join(append(words, "CHART, with the values and rendering flags that it was made with"), " ")
		}
		words = append(words, textfmt.ShellQuoted(e.call.arguments[1]))
	case planfile.ContentEncrypted:
		words = append(words, "--identity FILE")
	}
	for _, given := range e.call.flags {
		if given.flag.is.has(everywhere) && !given.flag.is.has(ofThisRun) ||
			f.Content.Mode == planfile.ContentRerendered && given.flag.is.has(rendering) {
			words = append(words, e.shownFlag(given))
		}
	}
	return strings.Join(words, " ")
}

// shownFlag is a flag as it is typed, without what must not be shown.
func (e *env) shownFlag(given givenFlag) string {
	text := given.value
	if kind := given.flag.kind(); kind == "PASSWORD" || kind == "TOKEN" {
		text = "(hidden)"
	}
	between := " "
	if given.flag.value.bare != "" {
		between = "="
	}
	return "--" + given.flag.name + between + textfmt.ShellQuoted(e.hidden.Hide(text))
}

// showAction prints a saved plan as it is printed when it is made. It needs no cluster and no key.
func (s *savedPlan) showAction(e *env, o page.Options) action {
	return func(context.Context, []string) error {
		o.Format, o.Colour = e.format, e.colour
		f, err := planfile.Read(s.showPath)
		if err != nil {
			return err
		}
		if err := plan.ShowSaved(e.streams, f.Shown[string(output.FormatJSON)], o); err != nil || o.Format != output.FormatTable {
			return err
		}
		return printTo(e.streams.Out, fmt.Sprintf("\nMade %s by %s for %s.\nDigest %s\nTo apply it, run: %s\n",
			f.Created.Format(time.RFC3339), f.Tool, f.Cluster.Server, f.Digest(), e.applyCommandLine(f, s.showPath)))
	}
}
