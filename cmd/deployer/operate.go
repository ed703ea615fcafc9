package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/view/document"
	"deployer/internal/view/helm"
	"deployer/internal/view/output"
	"deployer/internal/view/plan"
	"deployer/internal/view/run"
	"deployer/release"
)

// An operation is what the commands share that change a release, or show how
// they would.
type operation struct {
	settings    deploy.Settings
	lockTimeout time.Duration
	atomic      bool
	undoStopped bool   // with atomic: also when a signal has ended the run
	dryRun      string // "", "client", "server": show, don't do
	planOnly    bool
	resultFile  string
	junitFile   string
	wait        string
	hideNotes   bool
	hideSecrets bool   // with dryRun: from what Helm shows
	failure     string // words before the error, as Helm has them
	plan        document.Options
	detailed    bool            // plan: exit with 2 when there are changes
	saving      *saving         // plan: into a file; nil for other commands
	podLogs     []deploy.PodLog // test: what its pods have written
}

// flags are those of every command that changes a release.
func (o *operation) flags(e *env) []cli.Flag {
	const group = "Deploying"
	s := &o.settings
	o.wait = strconv.FormatBool(e.waitsByDefault())
	flags := []cli.Flag{
		&cli.DurationFlag{Name: "timeout", Category: group, Usage: "for each wait and each hook", Value: 5 * time.Minute, Destination: &s.Timeout},
		&cli.GenericFlag{Name: "wait", Category: group, Usage: "until everything is ready; --wait=false waits for hooks only", Value: &optional{
			value: &o.wait, bare: "true", words: []string{"true", "false"}, synonyms: waitWords,
		}},
		&cli.BoolFlag{Name: "wait-for-jobs", Category: group, Usage: "among it, until Jobs are complete", Value: e.waitsByDefault(), Destination: &s.WaitJobs},
		&cli.BoolFlag{Name: "no-hooks", Category: group, Usage: "don't run hooks", Destination: &s.NoHooks},
		&cli.GenericFlag{Name: "dry-run", Category: group, Usage: "show what would be done and do nothing: client or server", Value: &optional{
			value: &o.dryRun, bare: "client", words: []string{"client", "server", "none"},
			synonyms: map[string]string{"false": "none"},
		}},
		&cli.IntFlag{Name: "history-max", Category: group, Usage: "revisions to keep; 0 keeps all", Value: 10, Destination: &s.MaxHistory, EnvVars: []string{"HELM_MAX_HISTORY"}},
		&cli.DurationFlag{Name: "lock-timeout", Category: group, Usage: "how long to wait for another run on this release", Destination: &o.lockTimeout},
		takeoverFlag(s, group),
		conflictsFlag(s, group),
		&cli.BoolFlag{Name: "allow-recreate", Aliases: []string{"force", "force-replace"}, Category: group, Usage: "delete and create again what can't be changed in place", Destination: &s.AllowRecreate},
		revertFlag(s, group),
		&cli.GenericFlag{Name: "gate", Category: group, Usage: "whole-release dry run before the first change: strict, best-effort or off", Value: newChoice((*string)(&s.Gate), "strict", "best-effort", "off")},
		&cli.GenericFlag{Name: "field-validation", Category: group, Usage: "fields the schema doesn't have: strict, warn or ignore", Value: newChoice((*string)(&s.Validation), "strict", "warn", "ignore")},
		progressFlag(e, group),
		&cli.GenericFlag{Name: "logs", Category: group, Usage: "of pods: jobs (and hooks) as they are written, failed ones at the end, all, or none", Value: &logMode{&s.Track.Logs}},
		&cli.StringFlag{Name: "result-file", Category: group, Usage: "write how it ended to this file, as JSON", Destination: &o.resultFile},
		&cli.StringFlag{Name: "report-junit", Category: group, Usage: "write a JUnit report to this file", Destination: &o.junitFile},
		outputFlag(e),
	}
	return append(flags, trackingFlags(&s.Track)...)
}

// progressFlag is that of every command that carries something out.
func progressFlag(e *env, group string) cli.Flag {
	return &cli.GenericFlag{Name: "progress", Category: group, Usage: "auto, plain or none", Value: newChoice(&e.showing, "auto", "plain", "none"), EnvVars: []string{"HELM_PROGRESS"}}
}

// takeoverFlag is the one of every command that takes the lock of a release.
func takeoverFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.BoolFlag{Name: "takeover-pending", Category: group, Usage: "go on although another tool left the release pending, however short ago", Destination: &s.TakeoverPending}
}

// pastFlags are those of every command that deploys after other revisions.
func pastFlags(s *deploy.Settings) []cli.Flag {
	const group = "Deploying"
	return []cli.Flag{
		&cli.BoolFlag{Name: "map-removed-apis", Category: group, Usage: "objects of API versions that the cluster has removed: use those that took their place unchanged", Destination: &s.MapRemovedAPIs},
		&cli.GenericFlag{Name: "prune-kind", Category: group, Usage: "delete dropped objects of this kind, too: " + strings.Join(apply.HeldKinds(), ", ") + " (may be repeated)", Value: &choices{values: &s.PruneKinds, words: apply.HeldKinds()}},
	}
}

func conflictsFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.GenericFlag{Name: "conflicts", Category: group, Usage: "fields that others have set: take, fail or yield", Value: newChoice((*string)(&s.Conflicts), "take", "fail", "yield")}
}

func revertFlag(s *deploy.Settings, group string) cli.Flag {
	return &cli.BoolFlag{Name: "revert-manual-changes", Category: group, Usage: "remove what people have added to objects by kubectl edit and the like", Destination: &s.RevertManual}
}

// waitWords are Helm 4's values of --wait, and what they mean.
var waitWords = map[string]string{"watcher": "true", "legacy": "true", "hookOnly": "false"}

// operate is every command that changes a cluster: decide and show, or do.
func (o *operation) operate(ctx context.Context, e *env, name string, decide deploy.DecideFunc) error {
	planning := o.planOnly || o.dryRun == "client" || o.dryRun == "server"
	format, err := e.outputFormat()
	if planning && !o.asHelm(e) {
		format, err = document.ParsePlanFormat(e.format)
	}
	if err != nil {
		return &usageError{err: err, command: e.command}
	}
	if o.hideSecrets && !planning {
		//lint:ignore ST1005 Helm's words
		return prefixed(o.failure, errors.New("Hiding Kubernetes secrets requires a dry-run mode"))
	}
	if err := errors.Join(run.CheckWritable(o.resultFile), run.CheckWritable(o.junitFile)); err != nil {
		return err
	}
	cluster, err := e.connect()
	if err != nil {
		return prefixed(o.failure, err)
	}
	o.settings.Wait = o.wait == "true" || o.atomic
	d := e.deployer(cluster, o.settings)
	if planning {
		e.showOnly()
		op, err := d.Decide(ctx, decide)
		if err != nil {
			return prefixed(o.failure, err)
		}
		if o.asHelm(e) {
			return errors.Join(o.announce(e, op, format), o.showAsHelm(e, op, format))
		}
		return o.show(ctx, e, d, op, format)
	}
	told := format // what happens; with Helm the result is all there is
	if o.asHelm(e) {
		told = output.FormatTable
	}
	e.observed = run.New(e.streams, run.Options{
		Format: told, Progress: e.showing, Quiet: e.isQuiet(), Colour: e.colour, Timeout: o.settings.Timeout,
		ResultFile: o.resultFile, JUnitFile: o.junitFile, Hidden: e.hidden,
		ExitCode: func(err error) int { return e.code(ctx, err) },
	})
	done := d.Do(ctx, name, decide, o.life(e, format))
	err = prefixed(o.failure, blamed(ctx, done.Err))
	e.observed.Finish(err)
	err = errors.Join(err, e.observed.Close())
	if done.Operation == nil || told != output.FormatTable || err != nil && (done.Operation.Verb != deploy.Test || done.Record == nil) {
		return err
	}
	return errors.Join(err, o.report(e, done.Operation, done.Record, format, helm.StatusOptions{Everything: e.debug && o.asHelm(e)}))
}

// The words that Helm puts before the failure of these commands; scripts look
// for them.
const (
	upgradeFailed = "UPGRADE FAILED"
	installFailed = "INSTALLATION FAILED"
)

func prefixed(words string, err error) error {
	if err == nil || words == "" {
		return err
	}
	return fmt.Errorf("%s: %w", words, err)
}

func (o *operation) show(ctx context.Context, e *env, d *deploy.Deployer, op *deploy.Operation, format output.Format) error {
	o.plan.Format, o.plan.Colour = format, e.colour
	if err := op.FindNondeterminism(ctx); err != nil {
		return err
	}
	if op.HasChanges() {
		if err := d.HideStoredRevisions(ctx, op.Release); err != nil {
			return err
		}
	}
	if err := plan.Show(e.streams, op, o.plan); err != nil {
		return err
	}
	if err := o.saving.save(ctx, e, d, op); err != nil {
		return err
	}
	if o.detailed && op.HasChanges() {
		return errChanges
	}
	return nil
}

// life is how the operation is carried out.
func (o *operation) life(e *env, format output.Format) deploy.DoOptions {
	return deploy.DoOptions{
		LockTimeout: o.lockTimeout, Atomic: o.atomic, UndoStopped: o.undoStopped, Observe: o.observer(e),
		BeforeExecute: func(op *deploy.Operation) error { return o.announce(e, op, format) },
	}
}

// announce tells people that an upgrade installs what isn't there.
// (helm.sh/helm/v3/cmd/helm/upgrade.go)
func (o *operation) announce(e *env, op *deploy.Operation, format output.Format) error {
	anew := op.Verb == deploy.Install && (op.Base == nil || op.Base.Status == helmrelease.StatusUninstalled)
	if !anew || o.failure != upgradeFailed || format != output.FormatTable {
		return nil
	}
	return printTo(e.streams.Out, fmt.Sprintf("Release %q does not exist. Installing it now.\n", op.Release))
}

// observer shows what happens, and keeps what is shown at the end.
func (o *operation) observer(e *env) deploy.Observer {
	return func(event deploy.Event) {
		if logged, ok := event.(deploy.PodLogged); ok {
			o.podLogs = append(o.podLogs, logged.Log)
		}
		e.observed.Observe(event)
	}
}

// report writes what Helm writes to standard output after a success, and after
// tests in any case.
func (o *operation) report(e *env, op *deploy.Operation, record *release.Record, format output.Format, show helm.StatusOptions) error {
	out := e.streams.Out
	if format == output.FormatTable && !show.Manifest {
		out = e.hidden.Writer(out) // the notes, that is; elsewhere Helm's object is what was asked for
	}
	show.Format, show.HideNotes, show.Chart = format, o.hideNotes, true
	switch {
	case format != output.FormatTable:
		return helm.Status(out, record, show)
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
			record = withoutSecrets(record)
		}
		var err error
		if show.Computed, err = chart.AllValues(record.Chart, record.Config); err != nil {
			return err
		}
	}
	return errors.Join(helm.Status(out, record, show), helm.PodLogs(out, o.podLogs))
}
