package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/view/helm"
	"deployer/internal/view/output"
	"deployer/release"
)

// writesAsHelm reports whether the outcome is written as Helm writes it: that of
// installs and upgrades under Helm's name. Programs and people parse it.
func (o *operationFlags) writesAsHelm(e *env) bool { return e.call.asHelm && o.failurePrefix != "" }

// showAsHelm shows what would be deployed: hooks and manifest, and with --debug
// the values. (helm.sh/helm/v3/pkg/action/install.go and upgrade.go)
func (o *operationFlags) showAsHelm(e *env, op *deploy.Operation) error {
	for _, w := range op.Warnings {
		e.warn(w)
	}
	op.MarkAsDryRun(time.Now())
	if o.hideSecrets {
		op.Next.Manifest = chart.HideSecrets(op.Next.Manifest)
	}
	return o.writeResult(e, op, op.Next, helm.StatusOptions{Manifest: true, Everything: e.files.Debug})
}

// withManifests returns a copy of a record with other manifests: of the release, and of its hooks.
func withManifests(record *release.Record, manifest string, ofHook func(*helmrelease.Hook) string) *release.Record {
	shown := *record
	shown.Manifest = manifest
	shown.Hooks = make([]*helmrelease.Hook, len(record.Hooks))
	for i, h := range record.Hooks {
		hook := *h
		hook.Manifest = ofHook(h)
		shown.Hooks[i] = &hook
	}
	return &shown
}

// hideSecretsOf returns a copy of a record that has only the source comments of its Secrets.
func hideSecretsOf(record *release.Record) *release.Record {
	return withManifests(record, chart.HideSecrets(record.Manifest), func(h *helmrelease.Hook) string {
		source := "---\n# Source: " + h.Path + "\n"
		return strings.TrimPrefix(chart.HideSecrets(source+h.Manifest), source)
	})
}

// announceInstall says that an upgrade installs a release that doesn't exist yet.
// (helm.sh/helm/v3/cmd/helm/upgrade.go)
func (o *operationFlags) announceInstall(e *env, op *deploy.Operation) error {
	isFirstInstall := op.Verb == deploy.Install && (op.Basis.Latest == nil || op.Basis.Latest.Status == helmrelease.StatusUninstalled)
	if !isFirstInstall || o.failurePrefix != upgradeFailed || e.format != output.FormatTable {
		return nil
	}
	return printTo(e.streams.Out, fmt.Sprintf("Release %q does not exist. Installing it now.\n", op.Release))
}

// writeResult writes what Helm writes to standard output after a success, and after
// tests in any case.
func (o *operationFlags) writeResult(e *env, op *deploy.Operation, record *release.Record, show helm.StatusOptions) error {
	out := e.streams.Out
	show.Format, show.HideNotes, show.Chart = e.format, o.hideNotes, true
	switch {
	case e.format != output.FormatTable: // whole, as Helm's
		return helm.Status(out, record, show)
	case !e.call.asHelm && !o.isPlanning() && op.Verb != deploy.Test: // the last line says how it ended
		if notes := strings.TrimSpace(e.hidden.Hide(record.Info.Notes)); notes != "" && !o.hideNotes && op.Verb != deploy.Rollback && op.Verb != deploy.Uninstall {
			return printTo(out, "NOTES:\n"+notes+"\n")
		}
		return nil
	case op.Verb == deploy.Rollback:
		return printTo(out, "Rollback was a success! Happy Helming!\n")
	case op.Verb == deploy.Uninstall:
		return printTo(out, fmt.Sprintf("release %q uninstalled\n", op.Release))
	case op.Verb == deploy.Upgrade:
		if err := printTo(out, fmt.Sprintf("Release %q has been upgraded. Happy Helming!\n", op.Release)); err != nil {
			return err
		}
	}
	if show.Everything {
		if !show.Manifest {
			record = hideSecretsOf(record)
		}
		var err error
		if show.Computed, err = chart.AllValues(record.Chart, record.Config); err != nil {
			return err
		}
	}
	if !show.Manifest { // which is whole, as Helm's
		record = e.withoutHidden(record)
		show.Computed, _ = e.hidden.HideValue(hide.Values(show.Computed)).(map[string]any)
	}
	logs := slices.Clone(o.podLogs)
	for i := range logs {
		logs[i].Text = e.hidden.Hide(logs[i].Text)
		if strings.TrimSpace(logs[i].Text) == "" && !e.call.asHelm {
			logs[i].Text = "(no output)\n"
		}
	}
	return errors.Join(helm.Status(out, record, show), helm.PodLogs(out, logs))
}

// withoutHidden returns a copy of a record without confidential texts in what charts and users have written.
func (c *console) withoutHidden(record *release.Record) *release.Record {
	info := *record.Info
	info.Notes, info.Description = c.hidden.Hide(info.Notes), c.hidden.Hide(info.Description)
	shown := withManifests(record, c.hidden.Hide(record.Manifest), func(h *helmrelease.Hook) string { return c.hidden.Hide(h.Manifest) })
	shown.Info = &info
	shown.Config, _ = c.hidden.HideValue(hide.Values(record.Config)).(map[string]any)
	return shown
}
