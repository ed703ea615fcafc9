package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"deployer/internal/deploy"
	"deployer/internal/program"
	"deployer/internal/view/helm"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
	"deployer/internal/view/run"
)

// operationFlags are what the commands share that change a release, or show how
// they would.
type operationFlags struct {
	settings      deploy.Settings
	options       deploy.DoOptions
	wait          string
	dryRun        string // "", "none", "client" or "server": then the command shows and does nothing
	hideSecrets   bool   // from what Helm shows with --dry-run
	confirm       confirmation
	plan          planFlags
	hideNotes     bool
	failurePrefix string          // words before the error, as Helm has them
	podLogs       []deploy.PodLog // test: what its pods have written
}

// planFlags are those of plan, and of plan uninstall and plan rollback.
type planFlags struct {
	only             bool // the command is plan: show, don't do
	drift            bool // show how the cluster differs from the last deployment
	options          page.Options
	detailedExitCode bool       // 2 when there are changes
	file             *savedPlan // where the plan is saved; nil for other commands
}

// parseFormat reads -o.
func (o *operationFlags) parseFormat(e *env, text string) (output.Format, error) {
	switch {
	case o.plan.drift:
		return page.ParseDriftFormat(text)
	case o.isPlanning() && !o.writesAsHelm(e):
		return page.ParsePlanFormat(text)
	}
	return output.ParseFormat(text)
}

func (o *operationFlags) isPlanning() bool {
	return o.plan.only || o.dryRun == "client" || o.dryRun == "server"
}

// operate runs a command that changes a release: it plans and shows the plan, or carries it
// out.
func (o *operationFlags) operate(ctx context.Context, e *env, name string, decide deploy.DecideFunc) error {
	o.settings.Wait = o.wait == "true" || o.options.Atomic
	d, err := e.newDeployer(o.settings)
	if err != nil {
		return withPrefix(o.failurePrefix, err)
	}
	if o.isPlanning() {
		e.failOnBrokenPipes()
		d.ForShow = true
		op, err := d.Decide(ctx, decide)
		if err != nil {
			return withPrefix(o.failurePrefix, err)
		}
		if o.writesAsHelm(e) {
			return errors.Join(o.announceInstall(e, op), o.showAsHelm(e, op))
		}
		return o.showPlan(ctx, e, d, op)
	}
	shown := e.format // of events; Helm writes only the result in a format
	if o.writesAsHelm(e) {
		shown = output.FormatTable
	}
	o.startView(ctx, e, page.Subject{Release: name, Namespace: d.Namespace, Place: d.Place()}, shown, e.isQuiet())
	var done deploy.Outcome
	write := func(err error) error {
		if done.Operation == nil || err != nil && (done.Operation.Verb != deploy.Test || done.Record == nil) {
			return nil // nothing was done, or the report says why
		}
		return o.writeResult(e, done.Operation, done.Record, helm.StatusOptions{Everything: e.files.Debug && o.writesAsHelm(e)})
	}
	if shown == output.FormatTable && !e.call.asHelm {
		e.view.BeforeReport(write)
	}
	defer context.AfterFunc(ctx, func() {
		if signal := signalOf(ctx); signal != nil {
			e.view.Stopping(signal.name(), o.options.Atomic && o.options.RollbackOnInterrupt)
		}
	})()
	done = d.Do(ctx, name, decide, o.doOptions(ctx, e, d))
	err = withPrefix(o.failurePrefix, nameSignal(ctx, done.Err))
	err = errors.Join(err, e.view.Close(err))
	if shown != output.FormatTable || !e.call.asHelm {
		return err
	}
	return errors.Join(err, write(err)) // Helm's order
}

// startView begins to show the run that follows.
func (o *operationFlags) startView(ctx context.Context, e *env, of page.Subject, format output.Format, quiet bool) {
	e.view = run.New(e.streams, run.Options{
		Subject: of, Format: format, Progress: e.progress, Quiet: quiet, Colour: e.colour, Timeout: o.settings.Timeout,
		ResultFile: e.resultFile, JUnitFile: e.junitFile, Hidden: e.hidden,
		ExitCode:     func(err error) int { return e.exitCode(ctx, err) },
		ErrorFollows: func(err error) bool { return e.errorLine(err) != "" },
	})
	if !e.call.asHelm {
		e.releaseWarnings(e.view.Warn)
	}
}

func (o *operationFlags) showPlan(ctx context.Context, e *env, d *deploy.Deployer, op *deploy.Operation) error {
	o.plan.options.Format, o.plan.options.Colour = e.format, e.colour
	if err := d.PrepareToShow(ctx, op); err != nil {
		return err
	}
	e.planShown = true
	if err := plan.Show(e.streams, op, o.plan.options); err != nil {
		return err
	}
	if err := op.Plan.CheckReadable(); err != nil {
		return err
	}
	if err := o.plan.file.save(ctx, e, d, op); err != nil {
		return err
	}
	if o.plan.detailedExitCode && op.HasChanges() {
		return errChanges
	}
	return nil
}

// doOptions is how the operation is carried out.
func (o *operationFlags) doOptions(ctx context.Context, e *env, d *deploy.Deployer) deploy.DoOptions {
	options := o.options
	options.BeforeExecute = func(op *deploy.Operation) error {
		if err := o.confirm.ask(ctx, e, d, op); err != nil {
			return err
		}
		return o.announceInstall(e, op)
	}
	options.OnEvent = func(event deploy.Event) {
		if event.Kind == deploy.PodLogged { // to be shown at the end
			o.podLogs = append(o.podLogs, event.PodLog)
		}
		e.view.HandleEvent(event)
	}
	return options
}

// A confirmation shows the plan and asks before the first change.
type confirmation struct {
	given     string // --confirm: "true", "false", or empty
	byDefault bool   // on a terminal, where a person sits
}

// confirmFlag is --confirm, which is refused before anything is read if there is nobody to ask.
func (o *operationFlags) confirmFlag(e *env) *flag {
	c, when := &o.confirm, ""
	if c.byDefault {
		when = " (default on a terminal)"
	}
	v := choice(&c.given, "false", "true").orBare("true", nil).checked(func() error {
		if c.given != "true" || o.isPlanning() || canAsk(e) {
			return nil
		}
		return program.WithHint(errors.New("--confirm asks on a terminal: standard input and standard error have to be one"),
			"without a terminal, have a saved plan approved: "+program.Name+" plan --out FILE, then "+program.Name+" apply FILE")
	})
	return &flag{name: "confirm", usage: "show the plan and ask before the first change" + when, is: common | safe, value: v}
}

// errUnconfirmed ends a run whose plan somebody has refused.
var errUnconfirmed = errors.New("not confirmed: nothing was changed")

func canAsk(e *env) bool { return output.IsTerminal(e.streams.In) && e.streams.ErrTTY }

// ask shows the plan that is about to be carried out, and returns errUnconfirmed unless the answer is yes. The lock of
// the release is held meanwhile, so that what was shown is what is done.
func (c *confirmation) ask(ctx context.Context, e *env, d *deploy.Deployer, op *deploy.Operation) error {
	if c.given != "true" && !(c.byDefault && c.given == "" && canAsk(e) && os.Getenv("CI") == "") {
		return nil
	}
	if err := d.PrepareToShow(ctx, op); err != nil {
		return err
	}
	dialogue := e.streams
	dialogue.Out, dialogue.OutTTY = dialogue.Err, dialogue.ErrTTY
	if err := plan.Show(dialogue, op, page.Options{Format: output.FormatTable, Colour: e.colour, Context: 3}); err != nil {
		return err
	}
	where := "namespace " + op.Namespace + deploy.Place{Context: op.Place.Context}.InTitle()
	answer, err := e.readLine(ctx, fmt.Sprintf("\nCarry this out for release %s (%s)? [yes/no] ", op.Release, where))
	if err != nil {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "yes" && answer != "y" {
		return errUnconfirmed
	}
	return nil
}
