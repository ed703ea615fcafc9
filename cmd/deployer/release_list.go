package main

import (
	"context"
	"errors"
	"regexp"

	"github.com/urfave/cli/v2"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/view/helm"
	"deployer/internal/view/output"
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

func listCommand(e *env) *cli.Command {
	q := &listQuery{states: map[helmrelease.Status]*bool{}}
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "list the releases of all namespaces", Destination: &q.AllNamespaces},
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "list releases in every status", Destination: &q.all},
		&cli.BoolFlag{Name: "short", Aliases: []string{"q"}, Usage: "print names only", Destination: &q.options.Short},
		&cli.BoolFlag{Name: "no-headers", Usage: "don't print the header row", Destination: &q.options.NoHeaders},
		&cli.StringFlag{Name: "time-format", Usage: "Go time `LAYOUT`, such as \"2006-01-02 15:04:05Z0700\"", Destination: &q.options.TimeFormat},
		&cli.BoolFlag{Name: "date", Aliases: []string{"d"}, Usage: "sort by the time of the last deployment", Destination: &q.ByDate},
		&cli.BoolFlag{Name: "reverse", Aliases: []string{"r"}, Usage: "reverse the sort order", Destination: &q.Reverse},
		&cli.IntFlag{Name: "max", Aliases: []string{"m"}, Value: 256, Usage: "maximum number of releases to list; 0 lists all", Destination: &q.Limit},
		&cli.IntFlag{Name: "offset", Usage: "number of releases to skip", Destination: &q.Offset},
		&cli.StringFlag{Name: "filter", Aliases: []string{"f"}, Usage: "list releases whose name matches this regular `EXPRESSION`", Destination: &q.filter},
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "list releases by the labels of their records, with a `SELECTOR` as for kubectl's -l", Destination: &q.Selector},
		&cli.BoolFlag{Name: "pending", Usage: "list pending releases", Destination: &q.pending},
		outputFlag(e),
	}
	for _, s := range []helmrelease.Status{helmrelease.StatusDeployed, helmrelease.StatusFailed, helmrelease.StatusUninstalled, helmrelease.StatusUninstalling, helmrelease.StatusSuperseded} {
		on := new(bool)
		q.states[s] = on
		flags = append(flags, &cli.BoolFlag{Name: s.String(), Usage: "list " + s.String() + " releases", Destination: on})
	}
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list releases",
		Description: `Lists deployed and failed releases, unless a flag asks for another status. A
release that can't be read is listed as unreadable, and a warning says why.

Examples:
  deployer list -A
  deployer list -n prod --pending -o json`,
		Flags: flags,
		Action: actionWithFormat(e, 0, 0, "", func(ctx context.Context, _ []string, format output.Format) error {
			q.options.Format = format
			return q.run(ctx, e)
		}),
	}
}

func (q *listQuery) run(ctx context.Context, e *env) (err error) {
	if q.filter != "" {
		if q.Filter, err = regexp.Compile(q.filter); err != nil {
			return usagef("list", "--filter %q is not a regular expression: %w", q.filter, err)
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
