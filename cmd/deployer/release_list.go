package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/view/helm"
	"deployer/release"
)

// A listQuery is the command line of list.
type listQuery struct {
	release.ListOptions
	filter  string
	all     bool
	states  map[helmrelease.Status]*bool
	pending bool
	options helm.ListOptions
}

func listCommand(e *env) *command {
	q := &listQuery{states: map[helmrelease.Status]*bool{}}
	flags := []*flag{
		{name: "all-namespaces", also: "A", usage: "list the releases of all namespaces", is: usual | safe, value: toggle(&q.AllNamespaces)},
		{name: "all", also: "a", usage: "list releases in every status", is: usual | safe, value: toggle(&q.all)},
		{name: "short", also: "q", usage: "print names only", is: usual | safe, value: toggle(&q.options.Short)},
		{name: "no-headers", usage: "don't print the header row", is: usual | safe, value: toggle(&q.options.NoHeaders)},
		{name: "time-format", usage: "Go time `LAYOUT`, such as \"2006-01-02 15:04:05Z0700\"", is: usual | safe, value: text(&q.options.TimeFormat)},
		{name: "date", also: "d", usage: "sort by the time of the last deployment", is: usual | safe, value: toggle(&q.ByDate)},
		{name: "reverse", also: "r", usage: "reverse the sort order", is: usual | safe, value: toggle(&q.Reverse)},
		{name: "max", also: "m", usage: "maximum number of releases to list; 0 lists all", is: usual | safe, value: number(&q.Limit, 256)},
		{name: "offset", usage: "number of releases to skip", is: usual | safe, value: number(&q.Offset)},
		{name: "filter", also: "f", usage: "list releases whose name matches this regular `EXPRESSION`", is: usual | safe, value: text(&q.filter)},
		{name: "selector", also: "l", usage: "list releases by the labels of their records, with a `SELECTOR` as for kubectl's -l", is: usual | safe, value: text(&q.Selector)},
		{name: "pending", usage: "list pending releases", is: usual | safe, value: toggle(&q.pending)},
		outputFlag(e),
	}
	for _, s := range []helmrelease.Status{helmrelease.StatusDeployed, helmrelease.StatusFailed, helmrelease.StatusUninstalled, helmrelease.StatusUninstalling, helmrelease.StatusSuperseded} {
		on := new(bool)
		q.states[s] = on
		flags = append(flags, &flag{name: s.String(), usage: "list " + s.String() + " releases", is: usual | safe, value: toggle(on)})
	}
	return &command{
		name: "list", is: reads, also: "ls", usage: "list releases",
		steps: `Lists deployed and failed releases, unless a flag asks for another status. A
release that can't be read is listed as unreadable, and a warning says why.`,
		examples: `deployer list -A
deployer list -n prod --pending -o json`,
		flags: flags,
		action: func(ctx context.Context, _ []string) error {
			q.options.Format, q.options.Palette = e.format, e.outPalette()
			return q.run(ctx, e)
		},
	}
}

func (q *listQuery) run(ctx context.Context, e *env) (err error) {
	if q.filter != "" {
		if q.Filter, err = regexp.Compile(q.filter); err != nil {
			return usagef("--filter %q is not a regular expression: %w", q.filter, err)
		}
	}
	q.Statuses = q.wanted()
	store, err := e.store()
	if err != nil {
		return err
	}
	releases, err := store.List(ctx, q.ListOptions)
	if err != nil && len(releases) == 0 {
		return err
	}
	e.warnUnreadable(releases)
	return errors.Join(helm.Releases(e.streams.Out, releases, q.options), err)
}

// wanted lists the statuses to show; nil means all.
func (q *listQuery) wanted() []helmrelease.Status {
	if q.all {
		return nil
	}
	var out []helmrelease.Status
	for s, on := range q.states {
		if *on {
			out = append(out, s)
		}
	}
	if q.pending {
		out = append(out, helmrelease.StatusPendingInstall, helmrelease.StatusPendingUpgrade, helmrelease.StatusPendingRollback)
	}
	if len(out) == 0 {
		out = []helmrelease.Status{helmrelease.StatusDeployed, helmrelease.StatusFailed}
	}
	return out
}

func historyCommand(e *env) *command {
	var limit int
	return &command{
		name: "history", is: reads, also: "hist", usage: "list the revisions of a release", args: "NAME", takes: "a release name",
		steps:    `A revision that can't be read is listed as unreadable, and a warning says why.`,
		examples: "deployer history web -o json",
		flags: []*flag{
			{name: "max", usage: "maximum number of revisions to list, the newest ones", is: usual | safe, value: number(&limit, 256)},
			outputFlag(e),
		},
		action: func(ctx context.Context, args []string) error {
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
			return errors.Join(helm.History(e.streams.Out, revisions, e.format, e.outPalette()), derr)
		},
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
