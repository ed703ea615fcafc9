package main

import (
	"context"
	"fmt"
	"io"

	"deployer/chart"
	"deployer/internal/view/helm"
	"deployer/release"
)

func getCommand(e *env) *command {
	return &command{
		name: "get", is: reads, usage: "show the recorded values, manifest, hooks and notes of a release",
		commands: []*command{
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

func revisionFlag(revision *int) *flag {
	return &flag{name: "revision", usage: "`REVISION` to show; 0 is the latest", is: common | safe, value: number(revision)}
}

// revisionCommand is a command that shows something of one revision. example is what follows its name.
func revisionCommand(e *env, name, usage, example string, flags []*flag, show func(*release.Record) error) *command {
	var revision int
	return &command{
		name: name, usage: "show " + usage, args: "NAME", takes: "a release name",
		steps:    "Shows what was recorded when the revision was deployed, not the live objects.",
		examples: "deployer get " + name + " " + example,
		codes:    "0 done; 1 failed, or there is no such release or revision",
		flags:    append([]*flag{revisionFlag(&revision)}, flags...),
		action: func(ctx context.Context, args []string) error {
			record, err := e.readRecord(ctx, args[0], revision)
			if err != nil {
				return err
			}
			return show(record)
		},
	}
}

func getPart(e *env, name, usage string, out io.Writer, part func(*release.Record) string) *command {
	return revisionCommand(e, name, usage, "web --revision 3", nil, func(r *release.Record) error { return printTo(out, part(r)) })
}

func getAll(e *env) *command {
	var asked string
	flags := []*flag{{name: "template", usage: "Go `TEMPLATE`, such as {{.Release.Name}}", is: usual | safe, value: text(&asked)}}
	return revisionCommand(e, "all", "all of a revision: values, hooks, manifest and notes", "web --template '{{.Release.Info.Status}}'", flags, func(r *release.Record) error {
		if asked != "" {
			return e.printTemplate(e.streams.Data(), asked, map[string]any{"Release": r})
		}
		computed, err := chart.AllValues(r.Chart, r.Config)
		if err != nil {
			return err
		}
		return helm.Status(e.streams.Out, r, helm.StatusOptions{Metadata: true, Everything: true, Computed: computed})
	})
}

func getValues(e *env) *command {
	var all bool
	flags := []*flag{
		{name: "all", also: "a", usage: "include the chart's default values", is: usual | safe, value: toggle(&all)},
		outputFlag(e),
	}
	return revisionCommand(e, "values", "the values of a revision", "web --all -o json", flags, func(r *release.Record) error {
		values := r.Config
		if all {
			var err error
			if values, err = chart.AllValues(r.Chart, r.Config); err != nil {
				return err
			}
		}
		return helm.Values(e.streams.Data(), values, all, e.format)
	})
}

func getMetadata(e *env) *command {
	return revisionCommand(e, "metadata", "the chart, versions, status and labels of a revision", "web -o yaml", []*flag{outputFlag(e)}, func(r *release.Record) error {
		return helm.Metadata(e.streams.Out, r, e.format)
	})
}
