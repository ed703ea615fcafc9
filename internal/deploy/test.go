package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
)

// A TestRequest asks for the tests of a release: the hooks of the event "test"
// of its latest revision.
type TestRequest struct {
	Name   string
	Only   []string // names of tests; empty means all
	Except []string // names of tests that don't run
	Logs   bool     // report the logs of the tests' pods
}

// Test decides which tests of a release to run. It only reads. Carrying out the operation
// changes no object of the release and creates no revision; the outcomes are written into
// the latest record.
func (d *Deployer) Test(ctx context.Context, req TestRequest) (*Operation, error) {
	history, record, err := d.latestRecord(ctx, req.Name)
	if err != nil {
		return nil, err
	}
	if record.Info.Status == helmrelease.StatusUninstalled {
		return nil, uninstalledError(history.Namespace, req.Name, record.Version)
	}
	op := d.newOperation(Test, history)
	op.Next, op.Plan, op.showLogs = record, &apply.Plan{}, req.Logs
	all := hooksFor(helmrelease.HookTest, record.Hooks)
	op.Hooks.Before = selectTests(all, req)
	op.Warnings = append(op.Warnings, unknownTests(all, slices.Concat(req.Only, req.Except))...)
	if err := d.checkStoredHooks(ctx, op); err != nil {
		return nil, err
	}
	if err := errors.Join(d.checkRecordAccess(ctx, op), d.checkTestAccess(ctx, op, op.Hooks.Before)); err != nil {
		return nil, err
	}
	earlier := readEarlierRevisions(ctx, history)
	if earlier.err != nil {
		return nil, earlier.err
	}
	op.earlier = earlier.request.Revisions
	d.collectHidden(append(earlier.records, record), op.earlier)
	return op, nil
}

// selectTests leaves out what the request doesn't want.
// (helm.sh/helm/v3/pkg/action/release_testing.go)
func selectTests(tests []*helmrelease.Hook, req TestRequest) []*helmrelease.Hook {
	return slices.DeleteFunc(slices.Clone(tests), func(h *helmrelease.Hook) bool {
		return slices.Contains(req.Except, h.Name) || len(req.Only) > 0 && !slices.Contains(req.Only, h.Name)
	})
}

func unknownTests(tests []*helmrelease.Hook, names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.ContainsFunc(tests, func(h *helmrelease.Hook) bool { return h.Name == name }) {
			out = append(out, fmt.Sprintf("the release has no test named %q", name))
		}
	}
	return out
}
