package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/deploy"
	"deployer/internal/program"
	"deployer/internal/view/helm"
	"deployer/internal/view/inspection"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/release"
	"deployer/track"
)

// A statusQuery is the command line of status.
type statusQuery struct {
	operationFlags
	revision    int
	description bool
	resources   bool
	watch       bool
}

func statusCommand(e *env) *command {
	q := &statusQuery{}
	return &command{
		name: "status", is: reports, usage: "show the state of a release", args: "NAME", takes: "a release name",
		steps: `With --show-resources it also reads every live object of the release and shows
its state: ready, progressing, failed, or gone. With --watch it follows the
objects and their pods as upgrade does, until all are ready, one has failed, or
--timeout is over.`,
		examples: `deployer status web -n prod
deployer status web --revision 3 -o yaml
deployer status web --watch --timeout 2m
deployer status web --watch --readiness-rules rules.yaml`,
		codes: "0 done; 1 failed, or with --watch not ready",
		flags: append([]*flag{
			revisionFlag(&q.revision),
			{name: "show-desc", usage: "also show the description", is: usual | safe, value: toggle(&q.description)},
			{name: "show-resources", usage: "also show the live objects and their state", is: common | safe, value: toggle(&q.resources)},
			{name: "watch", also: "w", usage: "follow the live objects until they are ready", is: common | safe, value: toggle(&q.watch)},
			{name: "timeout", usage: "time limit for reading from the cluster; with --watch, for following", is: common | safe, value: duration(&q.settings.Timeout, readTimeout)},
			progressFlag(e, "with --watch, "),
			resultFlag(e, "with --watch, "),
			outputFlag(e),
		}, trackingFlags(&q.settings.Track)...),
		action: func(ctx context.Context, args []string) error {
			return q.run(ctx, e, args[0])
		},
	}
}

func (q *statusQuery) run(ctx context.Context, e *env, name string) error {
	readContext, done := limitReading(ctx, q.settings.Timeout)
	record, err := e.readRecord(readContext, name, q.revision)
	if err := done(err); err != nil {
		return err
	}
	d, err := e.newDeployer(q.settings)
	if err != nil {
		return err
	}
	if !q.watch {
		return q.show(ctx, e, d, record)
	}
	q.startView(ctx, e, page.Subject{Release: record.Name, Namespace: d.Namespace, Place: d.Place()}, e.format, false)
	err = d.TrackRevision(ctx, record, e.view.HandleEvent)
	err = errors.Join(err, e.view.Close(err))
	if e.format != output.FormatTable || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, q.show(ctx, e, d, record))
}

func (q *statusQuery) show(ctx context.Context, e *env, d *deploy.Deployer, record *release.Record) error {
	options := helm.StatusOptions{Format: e.format, Palette: e.outPalette(), Description: q.description || !e.call.asHelm && record.Info.Status == helmrelease.StatusFailed}
	if q.resources {
		ctx, done := limitReading(ctx, q.settings.Timeout)
		var err error
		options.Resources, err = d.LiveObjects(ctx, record)
		if err := done(err); err != nil {
			return err
		}
	}
	unready := func(l deploy.LiveObject) bool { return l.Status.State != track.Ready && l.Object != nil }
	if !q.watch && e.format == output.FormatTable && slices.ContainsFunc(options.Resources, unready) {
		e.warn(fmt.Sprintf("the pods weren't read; to see why objects aren't ready: "+program.OnCluster+" status %s -n %s --watch", record.Name, record.Namespace))
	}
	return helm.Status(e.streams.Out, record, options)
}

func explainCommand(e *env) *command {
	var settings deploy.Settings
	return &command{
		name: "explain", is: reads | beyondHelm, usage: "show who owns each field of an object, and where its value comes from", args: "NAME KIND/NAME [FIELD]", takes: "a release name and KIND/NAME",
		steps: `Also shows since when, the revision and template that set the value, and what
the next upgrade with the same chart and values would do to it.

Write the kind as for kubectl, and KIND/NAMESPACE/NAME for an object in another
namespace. FIELD is the path of a field, or of all fields below it; name the
items of a list by their keys or by their index.`,
		examples: `deployer explain web deployment/web -n prod
deployer explain web deploy/web .spec.replicas
deployer explain web Deployment/web '.spec.template.spec.containers[name=app].image'
deployer explain web configmap/conf 'metadata.labels["app.kubernetes.io/name"]' -o json`,
		codes: "0 done; 1 failed, or there is no such release, object or field",
		flags: []*flag{conflictsFlag(&settings), revertFlag(&settings), outputFlag(e)},
		action: func(ctx context.Context, args []string) error {
			d, err := e.newDeployer(settings)
			if err != nil {
				return err
			}
			field := ""
			if len(args) == 3 {
				field = args[2]
			}
			found, err := d.Explain(ctx, args[0], args[1], field)
			if err != nil {
				return err
			}
			return inspection.ShowExplanation(e.streams, found, page.Options{Format: e.format, Colour: e.colour})
		},
	}
}
