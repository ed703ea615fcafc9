package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"deployer/internal/deploy"
)

// testFilters are the values of --filter.
type testFilters struct{ only, except []string }

// set takes one flag: conditions separated by commas, as Helm's StringSlice.
func (f *testFilters) set(text string) error {
	conditions, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return err
	}
	for _, condition := range conditions {
		condition = strings.TrimSpace(condition)
		test, not := strings.CutPrefix(condition, "!")
		key, name, ok := strings.Cut(strings.TrimSpace(test), "=")
		if !ok || key != "name" {
			return fmt.Errorf("%q: use name=TEST or !name=TEST", condition)
		}
		if !not {
			name, not = strings.CutPrefix(name, "!")
		}
		if not {
			f.except = append(f.except, name)
		} else {
			f.only = append(f.only, name)
		}
	}
	return nil
}

func testCommand(e *env) *cli.Command {
	o := &operationFlags{}
	var filters testFilters
	var logs bool
	return &cli.Command{
		Name: "test", Usage: "run the tests of a release", ArgsUsage: "NAME",
		Description: `Runs the test hooks of the latest revision one after the other, and records how
they ended: status shows it. It creates no revision. With -o json it writes the
events of the run, one per line.

Examples:
  deployer test web -n prod
  deployer test web --filter name=web-smoke,name=web-load --logs

Exit codes: 0 passed; 1 failed; 3 rejected, nothing was run; 5 another run holds
the release; 130, 143 stopped by a signal`,
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "timeout", Usage: "time limit for each test", Value: 5 * time.Minute, Destination: &o.settings.Timeout},
			&cli.BoolFlag{Name: "logs", Usage: "at the end, print the logs of the test pods to standard output", Destination: &logs},
			&cli.GenericFlag{Name: "filter", Usage: "tests to run, `name=TEST`, or !name=TEST for all but this one (may be repeated or separated by commas)", Value: funcValue(filters.set)},
			hideNotesFlag("", &o.hideNotes),
			lockTimeoutFlag("", &o.lockTimeout),
			takeoverFlag(&o.settings, ""),
			&cli.BoolFlag{Name: "allow-stored-hooks", Usage: "also run tests that are cluster-scoped or in another namespace", Destination: &o.settings.AllowStoredHooks},
			progressFlag(e, "", ""),
			o.reports.resultFlag("", ""),
			o.reports.junitFlag(""),
			outputFlag(e),
		},
		Action: action(1, 1, "a release name", func(ctx context.Context, args []string) error {
			if logs {
				o.podLogs = []deploy.PodLog{}
			}
			request := deploy.TestRequest{Name: args[0], Only: filters.only, Except: filters.except, Logs: logs}
			return o.operate(ctx, e, request.Name, func(ctx context.Context, d *deploy.Deployer) (*deploy.Operation, error) {
				return d.Test(ctx, request)
			})
		}),
	}
}
