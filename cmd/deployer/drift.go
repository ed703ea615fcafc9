package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"deployer/internal/view/document"
	"deployer/internal/view/inspection"
)

// planDrift shows how the cluster differs from what a release has deployed. As
// the question is asked to be answered by programs too, the exit code answers
// it unless --detailed-exitcode=false.
func (o *upgradeOptions) planDrift(ctx context.Context, e *env, c *cli.Context) error {
	args, err := arguments(c, 1, 1, "a release name")
	if err != nil {
		return err
	}
	if o.plan.Format, err = document.ParseDriftFormat(e.format); err != nil {
		return &usageError{err: err, command: "plan"}
	}
	cluster, err := e.connect()
	if err != nil {
		return err
	}
	o.plan.Colour = e.colour
	d := e.deployer(cluster, o.settings)
	drift, err := d.Drift(ctx, args[0])
	if err != nil {
		return err
	}
	if len(drift.Objects) > 0 {
		if err := d.HideStoredRevisions(ctx, args[0]); err != nil {
			return err
		}
	}
	if err := inspection.ShowDrift(e.streams, drift, o.plan); err != nil {
		return err
	}
	if drift.HasDrift() && (o.detailed || !c.IsSet("detailed-exitcode")) {
		return errChanges
	}
	return drift.Unverified()
}
