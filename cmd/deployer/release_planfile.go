package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/planfile"
	"deployer/internal/program"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
)

// savedPlan is what plan does with files.
type savedPlan struct {
	path      string // to write; empty for none
	showPath  string // to print instead of planning; empty for none
	encryptTo []string
	reuse     *chart.ReuseMode

	recipients []age.Recipient // of encryptTo; set by check
}

func (s *savedPlan) flags() []cli.Flag {
	const group = "Plan"
	return []cli.Flag{
		&cli.StringFlag{Name: "out", Category: group, Usage: "also save the plan in this `FILE`, for deployer apply", Destination: &s.path},
		&cli.StringFlag{Name: "show", Category: group, Usage: "print the plan saved in this `FILE`; needs no cluster", Destination: &s.showPath},
		&cli.GenericFlag{Name: "encrypt-to", Category: group, Usage: "with --out, encrypt values and Secrets to this age or SSH public `KEY` (may be repeated)", Value: verbatimList(&s.encryptTo)},
	}
}

// check looks at the flags before anything is done.
func (s *savedPlan) check() error {
	var err error
	switch s.recipients, err = planfile.Recipients(s.encryptTo); {
	case err != nil:
		return &usageError{err: err, command: "plan"}
	case len(s.recipients) > 0 && s.path == "":
		return usagef("plan", "--encrypt-to needs --out")
	case s.showPath != "" && s.path != "":
		return usagef("plan", "--show and --out can't be combined")
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
	return printTo(e.streams.Err, fmt.Sprintf("plan saved in %s, digest %s\nto apply it, run: %s\n", s.path, f.Digest(), applyCommandLine(f, s.path)))
}

func applyCommandLine(f *planfile.File, path string) string {
	command := program.Name + " apply " + path
	switch f.Content.Mode {
	case planfile.ContentRerendered:
		command += " CHART, with the values and rendering flags given now"
	case planfile.ContentEncrypted:
		command += " --identity FILE"
	}
	return command
}

// showAction prints a saved plan as it is printed when it is made. It needs no cluster and no key.
func (s *savedPlan) showAction(e *env, o page.Options) cli.ActionFunc {
	return action(0, 0, "", func(context.Context, []string) (err error) {
		if o.Format, err = e.outputFormat(page.ParsePlanFormat); err != nil {
			return err
		}
		o.Colour = e.colour
		f, err := planfile.Read(s.showPath)
		if err != nil {
			return err
		}
		if err := plan.ShowSaved(e.streams, f.Shown[string(output.FormatJSON)], o); err != nil || o.Format != output.FormatTable {
			return err
		}
		return printTo(e.streams.Out, fmt.Sprintf("\nMade %s by %s for %s.\nDigest %s\nTo apply it, run: %s\n",
			f.Created.Format(time.RFC3339), f.Tool, f.Cluster.Server, f.Digest(), applyCommandLine(f, s.showPath)))
	})
}
