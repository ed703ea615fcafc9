package main

import (
	"path/filepath"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/view/helm"
	"deployer/internal/view/output"
	"deployer/release"
)

// calledHelm tells whether the program was started under the name helm, by a
// link or a copy: then it is a drop-in.
func calledHelm(program string) bool {
	name := strings.TrimSuffix(filepath.Base(filepath.ToSlash(program)), ".exe")
	return name == "helm"
}

// calledBy is the name by which hints call the program.
func calledBy(program string) string {
	if calledHelm(program) {
		return "helm"
	}
	return "deployer"
}

// waitsByDefault is what --wait means when it isn't given. Helm's users wait
// only when they say so; deployer sees a release through.
func (e *env) waitsByDefault() bool { return !e.dropIn }

// asHelm tells whether the outcome is written as Helm writes it: that of
// installs and upgrades under Helm's name. Programs and people parse it.
func (o *operation) asHelm(e *env) bool { return e.dropIn && o.failure != "" }

// showAsHelm shows what would be deployed: hooks and manifest, and with --debug
// the values. (helm.sh/helm/v3/pkg/action/install.go and upgrade.go)
func (o *operation) showAsHelm(e *env, op *deploy.Operation, format output.Format) error {
	for _, w := range op.Warnings {
		e.warn(w)
	}
	op.MarkAsDryRun(time.Now())
	if o.hideSecrets {
		op.Next.Manifest = chart.HideSecrets(op.Next.Manifest)
	}
	return o.report(e, op, op.Next, format, helm.StatusOptions{Manifest: true, Everything: e.debug})
}

// withoutSecrets is a record to be shown: of its Secrets only where they are from.
func withoutSecrets(record *release.Record) *release.Record {
	shown := *record
	shown.Manifest = chart.HideSecrets(record.Manifest)
	shown.Hooks = make([]*helmrelease.Hook, len(record.Hooks))
	for i, h := range record.Hooks {
		hook := *h
		hook.Manifest = strings.TrimPrefix(chart.HideSecrets("---\n# Source: "+h.Path+"\n"+h.Manifest), "---\n# Source: "+h.Path+"\n")
		shown.Hooks[i] = &hook
	}
	return &shown
}

// isQuiet tells whether nothing is written to standard error unless something
// fails: under the name helm where no person reads, for tasks of CI that take any
// such output for a failure. --debug and --progress plain ask for it.
func (e *env) isQuiet() bool {
	return e.dropIn && !e.streams.ErrTTY && !e.debug && e.showing != "plain"
}

// helmFiles are Helm's own files as flags and environment have them. On a
// terminal, where fetching shows it, what is transferred is counted.
func (e *env) helmFiles() chart.Settings {
	files := e.files
	files.Debug = e.debug
	if e.streams.ErrTTY {
		files.TransferStats = &e.transferred
	}
	return files
}
