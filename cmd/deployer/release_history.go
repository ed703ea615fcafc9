package main

import (
	"context"
	"errors"
	"fmt"

	"deployer/internal/view/helm"
	"deployer/internal/view/output"
	"deployer/release"
)

func historyCommand(e *env) *command {
	var limit int
	return &command{
		name: "history", is: reads, also: "hist", usage: "list the revisions of a release", args: "NAME",
		steps:    `A revision that can't be read is listed as unreadable, and a warning says why.`,
		examples: "deployer history web -o json",
		flags: []*flag{
			{name: "max", usage: "maximum number of revisions to list, the newest ones", is: usual | safe, value: number(&limit, 256)},
			outputFlag(e),
		},
		action: withFormat(e, 1, 1, "a release name", func(ctx context.Context, args []string, format output.Format) error {
			store, err := e.store()
			if err != nil {
				return err
			}
			if err := release.ValidateName(args[0]); err != nil {
				return err
			}
			history, err := store.History(ctx, args[0])
			if err != nil {
				return err
			}
			if history.Latest() == nil {
				return &release.NotFoundError{Namespace: store.Namespace(), Name: args[0]}
			}
			revisions, derr := history.Newest(ctx, limit)
			e.warnUnreadable(revisions)
			return errors.Join(helm.History(e.streams.Out, revisions, format, e.outPalette()), derr)
		}),
	}
}

// readRecord reads one revision of a release; 0 is the latest.
func (e *env) readRecord(ctx context.Context, name string, revision int) (*release.Record, error) {
	store, err := e.store()
	if err != nil {
		return nil, err
	}
	record, err := store.Get(ctx, name, revision)
	if err == nil || errors.As(err, new(*release.NotFoundError)) { // which names the release itself
		return record, err
	}
	return nil, fmt.Errorf("reading release %s: %w", name, err)
}
