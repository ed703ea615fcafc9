package main

import (
	"context"
	"fmt"
	"io"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/internal/view/helm"
	"deployer/internal/view/output"
	"deployer/release"
)

func getCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "get", Usage: "show the recorded values, manifest, hooks and notes of a release",
		Subcommands: []*cli.Command{
			getAll(e),
			getPart(e, "manifest", "the manifest of a revision, without hooks", e.streams.Data(), func(r *release.Record) string { return r.Manifest + "\n" }),
			getPart(e, "hooks", "the hooks of a revision", e.streams.Data(), func(r *release.Record) string { return helm.HookManifests(r.Hooks) }),
			getPart(e, "notes", "the notes of a revision", e.streams.Out, notesText),
			getValues(e),
			getMetadata(e),
		},
	}
}

func notesText(r *release.Record) string {
	if r.Info.Notes == "" {
		return ""
	}
	return fmt.Sprintf("NOTES:\n%s\n", r.Info.Notes)
}

func revisionFlag(revision *int) cli.Flag {
	return &cli.IntFlag{Name: "revision", Usage: "`REVISION` to show; 0 is the latest", Destination: revision}
}

// revisionCommand is a command that shows something of one revision. example is what follows its name.
func revisionCommand(e *env, name, usage, example string, flags []cli.Flag, show func(*release.Record, output.Format) error) *cli.Command {
	var revision int
	return &cli.Command{
		Name: name, Usage: "show " + usage, ArgsUsage: "NAME",
		Description: "Shows what was recorded when the revision was deployed, not the live objects.\n\n" +
			"Examples:\n  deployer get " + name + " " + example + "\n\nExit codes: 0 done; 1 failed, or there is no such release or revision",
		Flags: append([]cli.Flag{revisionFlag(&revision)}, flags...),
		Action: actionWithFormat(e, 1, 1, "a release name", func(ctx context.Context, args []string, format output.Format) error {
			record, err := e.readRecord(ctx, args[0], revision)
			if err != nil {
				return err
			}
			return show(record, format)
		}),
	}
}

func getPart(e *env, name, usage string, out io.Writer, part func(*release.Record) string) *cli.Command {
	return revisionCommand(e, name, usage, "web --revision 3", nil, func(r *release.Record, _ output.Format) error { return printTo(out, part(r)) })
}

func getAll(e *env) *cli.Command {
	var text string
	flags := []cli.Flag{&cli.StringFlag{Name: "template", Usage: "Go `TEMPLATE`, such as {{.Release.Name}}", Destination: &text}}
	return revisionCommand(e, "all", "all of a revision: values, hooks, manifest and notes", "web --template '{{.Release.Info.Status}}'", flags, func(r *release.Record, _ output.Format) error {
		if text != "" {
			return writeByTemplate(e, text, r)
		}
		computed, err := chart.AllValues(r.Chart, r.Config)
		if err != nil {
			return err
		}
		return helm.Status(e.streams.Out, r, helm.StatusOptions{Metadata: true, Everything: true, Computed: computed})
	})
}

func writeByTemplate(e *env, text string, r *release.Record) error {
	t, err := template.New("--template").Funcs(sprig.TxtFuncMap()).Parse(text)
	if err != nil {
		return usagef("get all", "--template: %w", err)
	}
	if err := t.Execute(e.streams.Data(), map[string]any{"Release": r}); err != nil {
		return fmt.Errorf("--template: %w", err)
	}
	return nil
}

func getValues(e *env) *cli.Command {
	var all bool
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "include the chart's default values", Destination: &all},
		outputFlag(e),
	}
	return revisionCommand(e, "values", "the values of a revision", "web --all -o json", flags, func(r *release.Record, format output.Format) error {
		values := r.Config
		if all {
			var err error
			if values, err = chart.AllValues(r.Chart, r.Config); err != nil {
				return err
			}
		}
		return helm.Values(e.streams.Data(), values, all, format)
	})
}

func getMetadata(e *env) *cli.Command {
	return revisionCommand(e, "metadata", "the chart, versions, status and labels of a revision", "web -o yaml", []cli.Flag{outputFlag(e)}, func(r *release.Record, format output.Format) error {
		return helm.Metadata(e.streams.Out, r, format)
	})
}
