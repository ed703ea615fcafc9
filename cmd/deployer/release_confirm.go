package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"deployer/internal/deploy"
	"deployer/internal/program"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
)

// A confirmation shows the plan and asks before the first change.
type confirmation struct {
	given     string // --confirm: "true", "false", or empty
	byDefault bool   // on a terminal, where a person sits
}

func (c *confirmation) flag(when string) *flag {
	return &flag{name: "confirm", group: "Deploying", usage: "show the plan and ask before the first change" + when, is: common | safe, value: choice(&c.given, "false", "true").orBare("true", nil)}
}

// errUnconfirmed ends a run whose plan somebody has refused.
var errUnconfirmed = errors.New("not confirmed: nothing was changed")

func canAsk(e *env) bool { return output.IsTerminal(e.streams.In) && e.streams.ErrTTY }

// check refuses --confirm before anything is read, if there is nobody to ask.
func (c *confirmation) check(e *env) error {
	if c.given == "true" && !canAsk(e) {
		return program.WithHint(errors.New("--confirm asks on a terminal: standard input and standard error have to be one"),
			"without a terminal, have a saved plan approved: "+program.Name+" plan --out FILE, then "+program.Name+" apply FILE")
	}
	return nil
}

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
