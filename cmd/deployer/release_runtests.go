package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"deployer/internal/deploy"
)

// addTestFilters adds the tests of one --filter to a request: conditions separated by commas.
func addTestFilters(to *deploy.TestRequest, text string) error {
	for _, condition := range splitList(text) {
		condition = strings.TrimSpace(condition)
		test, not := strings.CutPrefix(condition, "!")
		name, ok := strings.CutPrefix(strings.TrimSpace(test), "name=")
		if !ok {
			return fmt.Errorf("%q: use name=TEST or !name=TEST", condition)
		}
		name, differs := strings.CutPrefix(name, "!") // also name=!TEST
		if not || differs {
			to.Except = append(to.Except, name)
		} else {
			to.Only = append(to.Only, name)
		}
	}
	return nil
}

func testCommand(e *env) *command {
	o := &operationFlags{}
	var request deploy.TestRequest
	return &command{
		name: "test", is: changes | reports, usage: "run the tests of a release", args: "NAME", takes: "a release name",
		steps: `Runs the test hooks of the latest revision one after the other, and records how
they ended: status shows it. It creates no revision.`,
		examples: `deployer test web -n prod
deployer test web --filter name=web-smoke,name=web-load --logs`,
		codes: "0 passed; 1 failed; 3 rejected, nothing was run; 5 another run holds the release; 130, 143 stopped by a signal",
		flags: append([]*flag{
			{name: "timeout", usage: "time limit for each test", is: common | safe, value: duration(&o.settings.Timeout, 5*time.Minute)},
			{name: "logs", usage: "at the end, print the logs of the test pods to standard output", is: rare | safe, value: toggle(&request.Logs)},
			{name: "filter", usage: "tests to run, `name=TEST`, or !name=TEST for all but this one (repeatable, or separated by commas)", is: usual | safe, value: taken(func(text string) error { return addTestFilters(&request, text) })},
			hideNotesFlag(&o.hideNotes),
			{name: "allow-stored-hooks", usage: "also run tests that are cluster-scoped or in another namespace", is: rare | risky, value: toggle(&o.settings.AllowStoredHooks)},
			progressFlag(e, ""),
			resultFlag(e, ""),
			junitFlag(e),
			outputFlag(e),
		}, lockFlags(&o.settings, &o.options.LockTimeout, rare)...),
		action: func(ctx context.Context, args []string) error {
			if request.Logs {
				o.podLogs = []deploy.PodLog{}
			}
			request.Name = args[0]
			return o.operate(ctx, e, request.Name, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
				return d.Test(ctx, request)
			})
		},
	}
}
