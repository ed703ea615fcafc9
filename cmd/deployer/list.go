package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/urfave/cli/v2"
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
	show    helm.ListOptions
}

func listCommand(e *env) *cli.Command {
	q := &listQuery{states: map[helmrelease.Status]*bool{}}
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "in all namespaces", Destination: &q.AllNamespaces},
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "in every status", Destination: &q.all},
		&cli.BoolFlag{Name: "short", Aliases: []string{"q"}, Usage: "names alone", Destination: &q.show.Short},
		&cli.BoolFlag{Name: "no-headers", Usage: "no heading line", Destination: &q.show.NoHeaders},
		&cli.StringFlag{Name: "time-format", Usage: "Go time layout, such as \"2006-01-02 15:04:05Z0700\"", Destination: &q.show.TimeFormat},
		&cli.BoolFlag{Name: "date", Aliases: []string{"d"}, Usage: "sort by the time of the last release", Destination: &q.ByDate},
		&cli.BoolFlag{Name: "reverse", Aliases: []string{"r"}, Usage: "reverse the order", Destination: &q.Reverse},
		&cli.IntFlag{Name: "max", Aliases: []string{"m"}, Value: 256, Usage: "how many to show; 0 shows all", Destination: &q.Limit},
		&cli.IntFlag{Name: "offset", Usage: "how many to leave out first", Destination: &q.Offset},
		&cli.StringFlag{Name: "filter", Aliases: []string{"f"}, Usage: "regular expression that names match", Destination: &q.filter},
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "labels of the release record, as kubectl's -l", Destination: &q.Selector},
		&cli.BoolFlag{Name: "pending", Usage: "pending ones", Destination: &q.pending},
		outputFlag(e),
	}
	for _, s := range []helmrelease.Status{helmrelease.StatusDeployed, helmrelease.StatusFailed, helmrelease.StatusUninstalled, helmrelease.StatusUninstalling, helmrelease.StatusSuperseded} {
		on := new(bool)
		q.states[s] = on
		flags = append(flags, &cli.BoolFlag{Name: s.String(), Usage: s.String() + " ones", Destination: on})
	}
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list releases",
		Description: `Without a status flag it lists what is deployed or failed. What can't be read
is listed as unreadable, and a warning says why.

Examples:
  deployer list -A
  deployer list -n prod --pending -o json

Exit codes: 0 done; 1 failed`,
		Flags: flags,
		Action: action(func(ctx context.Context, c *cli.Context) error {
			if _, err := arguments(c, 0, 0, ""); err != nil {
				return err
			}
			return q.run(ctx, e)
		}),
	}
}

func (q *listQuery) run(ctx context.Context, e *env) error {
	format, err := e.outputFormat()
	if err != nil {
		return err
	}
	q.show.Format = format
	if q.filter != "" {
		if q.Filter, err = regexp.Compile(q.filter); err != nil {
			return usagef("list", "--filter %q is no regular expression: %w", q.filter, err)
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
	return errors.Join(helm.Releases(e.streams.Out, releases, q.show), err)
}

// warnUnreadable says why some revisions can't be read. That is no failure of what
// shows them: all that can be known of them is shown.
func (e *env) warnUnreadable(revisions []release.Summary) {
	for _, r := range revisions {
		if r.Unreadable != nil {
			e.warn(fmt.Sprintf("%s (%s)", r.Unreadable, r.Unreadable.Hint()))
		}
	}
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

func historyCommand(e *env) *cli.Command {
	var limit int
	return &cli.Command{
		Name: "history", Aliases: []string{"hist"}, Usage: "list the revisions of a release", ArgsUsage: "NAME",
		Description: `A revision that can't be read is listed as unreadable, and a warning says why.

Examples:
  deployer history web -o json

Exit codes: 0 done; 1 failed`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "max", Value: 256, Usage: "how many to show, newest first to stay", Destination: &limit},
			outputFlag(e),
		},
		Action: action(func(ctx context.Context, c *cli.Context) error {
			args, err := arguments(c, 1, 1, "a release name")
			if err != nil {
				return err
			}
			format, err := e.outputFormat()
			if err != nil {
				return err
			}
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
			revisions := history.Revisions
			if len(revisions) == 0 {
				return &release.NotFoundError{Namespace: store.Namespace(), Name: args[0]}
			}
			derr := history.Describe(ctx, limit)
			if limit > 0 && len(revisions) > limit {
				revisions = revisions[len(revisions)-limit:]
			}
			e.warnUnreadable(revisions)
			return errors.Join(helm.History(e.streams.Out, revisions, format), derr)
		}),
	}
}

// record reads one revision of a release; 0 is the latest.
func (e *env) record(ctx context.Context, name string, revision int) (*release.Record, error) {
	store, err := e.store()
	if err != nil {
		return nil, err
	}
	record, err := store.Get(ctx, name, revision)
	var missing *release.NotFoundError
	if err == nil || errors.As(err, &missing) { // which names the release itself
		return record, err
	}
	return nil, fmt.Errorf("reading release %s: %w", name, err)
}
