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
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
	"deployer/internal/view/textfmt"
)

// savedPlan is what plan does with files.
type savedPlan struct {
	path      string // to write; empty for none
	showPath  string // to print instead of planning; empty for none
	encryptTo []string
	reuse     *chart.ReuseMode

	recipients []age.Recipient // of encryptTo; set by check
}

func (s *savedPlan) flags() []*flag {
	const group = "Plan"
	return []*flag{
		{name: "out", group: group, usage: "also save the plan in this `FILE`, for deployer apply", is: common | safe, value: text(&s.path)},
		{name: "show", group: group, usage: "print the plan saved in this `FILE`; needs no cluster", is: usual | safe, value: text(&s.showPath)},
		{name: "encrypt-to", group: group, usage: "with --out, encrypt values and Secrets to this age or SSH public `KEY` (may be repeated)", is: usual | safe, value: verbatimList(&s.encryptTo)},
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
		if given.flag.is.has(everywhere) && !slices.Contains([]string{"namespace", "color", "debug"}, given.flag.name) ||
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
	return withArguments(0, 0, "", func(context.Context, []string) (err error) {
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
			f.Created.Format(time.RFC3339), f.Tool, f.Cluster.Server, f.Digest(), e.applyCommandLine(f, s.showPath)))
	})
}
