package main

import (
	"context"
	"errors"
	"time"

	"deployer/internal/deploy"
	"deployer/internal/view/document"
	"deployer/internal/view/helm"
	"deployer/internal/view/output"
	"deployer/internal/view/plan"
	"deployer/internal/view/run"
)

// An operation is what the commands share that change a release, or show how
// they would.
type operation struct {
	settings            deploy.Settings
	lockTimeout         time.Duration
	atomic              bool
	rollbackOnInterrupt bool   // with atomic: also when a signal has ended the run
	dryRun              string // "", "client", "server": show, don't do
	planOnly            bool
	resultFile          string
	junitFile           string
	wait                string
	hideNotes           bool
	hideSecrets         bool   // with dryRun: from what Helm shows
	failurePrefix       string // words before the error, as Helm has them
	plan                document.Options
	detailed            bool            // plan: exit with 2 when there are changes
	planFile            *savedPlan      // plan: into a file; nil for other commands
	podLogs             []deploy.PodLog // test: what its pods have written
}

// operate is every command that changes a cluster: decide and show, or do.
func (o *operation) operate(ctx context.Context, e *env, name string, decide deploy.DecideFunc) error {
	planning := o.planOnly || o.dryRun == "client" || o.dryRun == "server"
	format, err := e.outputFormat()
	if planning && !o.writesAsHelm(e) {
		format, err = document.ParsePlanFormat(e.global.format)
	}
	if err != nil {
		return &usageError{err: err, command: e.call.command}
	}
	if o.hideSecrets && !planning {
		//lint:ignore ST1005 Helm's words
		return withPrefix(o.failurePrefix, errors.New("Hiding Kubernetes secrets requires a dry-run mode"))
	}
	if err := errors.Join(run.CheckWritable(o.resultFile), run.CheckWritable(o.junitFile)); err != nil {
		return err
	}
	cluster, err := e.connect()
	if err != nil {
		return withPrefix(o.failurePrefix, err)
	}
	o.settings.Wait = o.wait == "true" || o.atomic
	d := e.deployer(cluster, o.settings)
	if planning {
		e.failOnBrokenPipes()
		op, err := d.Decide(ctx, decide)
		if err != nil {
			return withPrefix(o.failurePrefix, err)
		}
		if o.writesAsHelm(e) {
			return errors.Join(o.announceInstall(e, op, format), o.showAsHelm(e, op, format))
		}
		return o.showPlan(ctx, e, d, op, format)
	}
	shown := format // what happens; with Helm the result is all there is
	if o.writesAsHelm(e) {
		shown = output.FormatTable
	}
	e.view = run.New(e.streams, run.Options{
		Format: shown, Progress: e.global.progress, Quiet: e.isQuiet(), Colour: e.global.colour, Timeout: o.settings.Timeout,
		ResultFile: o.resultFile, JUnitFile: o.junitFile, Hidden: e.hidden,
		ExitCode: func(err error) int { return e.exitCode(ctx, err) },
	})
	done := d.Do(ctx, name, decide, o.doOptions(e, format))
	err = withPrefix(o.failurePrefix, nameSignal(ctx, done.Err))
	e.view.Finish(err)
	err = errors.Join(err, e.view.Close())
	if done.Operation == nil || shown != output.FormatTable || err != nil && (done.Operation.Verb != deploy.Test || done.Record == nil) {
		return err
	}
	return errors.Join(err, o.writeResult(e, done.Operation, done.Record, format, helm.StatusOptions{Everything: e.global.debug && o.writesAsHelm(e)}))
}

func (o *operation) showPlan(ctx context.Context, e *env, d *deploy.Deployer, op *deploy.Operation, format output.Format) error {
	o.plan.Format, o.plan.Colour = format, e.global.colour
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
	if err := o.planFile.save(ctx, e, d, op); err != nil {
		return err
	}
	if o.detailed && op.HasChanges() {
		return errChanges
	}
	return nil
}

// doOptions is how the operation is carried out.
func (o *operation) doOptions(e *env, format output.Format) deploy.DoOptions {
	return deploy.DoOptions{
		LockTimeout: o.lockTimeout, Atomic: o.atomic, RollbackOnInterrupt: o.rollbackOnInterrupt, OnEvent: o.observer(e),
		BeforeExecute: func(op *deploy.Operation) error { return o.announceInstall(e, op, format) },
	}
}

// observer shows what happens, and keeps what is shown at the end.
func (o *operation) observer(e *env) deploy.EventHandler {
	return func(event deploy.Event) {
		if logged, ok := event.(deploy.PodLogged); ok {
			o.podLogs = append(o.podLogs, logged.Log)
		}
		e.view.Observe(event)
	}
}
