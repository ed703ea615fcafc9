package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"deployer/chart/repository"
	"deployer/internal/program"
	"deployer/internal/view/output"
)

// indexTimeout is how long the download of one index may take, as in Helm.
const indexTimeout = 2 * time.Minute

func repoCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "repo", Usage: "manage chart repositories",
		Subcommands: []*cli.Command{repoAdd(e), repoList(e), repoUpdate(e), repoRemove(e), repoIndex()},
	}
}

func (e *env) repositoryList() repository.RepositoryList {
	return repository.RepositoryList{Settings: e.helmFiles()}
}

func repoAdd(e *env) *cli.Command {
	var a repository.Addition
	var stdin bool
	var timeout time.Duration
	return &cli.Command{
		Name: "add", Usage: "add a chart repository", ArgsUsage: "NAME URL",
		Description: `Downloads the index of the repository and adds it to the list that Helm also
uses. Adding the same repository again succeeds.

Examples:
  deployer repo add podinfo https://stefanprodan.github.io/podinfo
  echo $TOKEN | deployer repo add private https://charts.example.com --username ci --password-stdin`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "force-update", Usage: "replace a repository of the same name", Destination: &a.Force},
			&cli.BoolFlag{Name: "allow-deprecated-repos", Usage: "also allow repositories that are known to be shut down", Destination: &a.AllowDeprecated},
			&cli.DurationFlag{Name: "timeout", Value: indexTimeout, Usage: "time limit for the download of the index", Destination: &timeout},
			&cli.StringFlag{Name: "username", Category: "Access", Usage: "user `NAME` for the repository", Destination: &a.Access.Username},
			&cli.StringFlag{Name: "password", Category: "Access", Usage: "`PASSWORD` for the repository", Destination: &a.Access.Password},
			&cli.BoolFlag{Name: "password-stdin", Category: "Access", Usage: "read the password from standard input", Destination: &stdin},
			passCredentialsFlag("Access", &a.Access),
		}, append(tlsFlags(&a.Access), noOpFlags(e, "no-update")...)...),
		Action: action(2, 2, "a name and a URL", func(ctx context.Context, args []string) (err error) {
			a.Name, a.URL = args[0], args[1]
			if a.Access.Username != "" && a.Access.Password == "" {
				if a.Access.Password, err = e.readPassword(ctx, stdin); err != nil {
					return err
				}
			}
			list := e.repositoryList()
			list.Timeout = timeout
			waiting := e.showTransfer("fetching the index of", a.URL)
			added, err := list.Add(ctx, a)
			waiting.Stop()
			switch {
			case err != nil:
				return err
			case added:
				return printTo(e.streams.Out, fmt.Sprintf("%q has been added to your repositories\n", a.Name))
			}
			return printTo(e.streams.Out, fmt.Sprintf("%q already exists with the same configuration, skipping\n", a.Name))
		}),
	}
}

func repoList(e *env) *cli.Command {
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list chart repositories",
		Description: `Examples:
  deployer repo list -o json

Exit codes: 0 done; 1 failed, or there are no repositories`,
		Flags: []cli.Flag{outputFlag(e)},
		Action: actionWithFormat(e, 0, 0, "", func(_ context.Context, _ []string, format output.Format) error {
			entries, err := e.repositoryList().List()
			if err != nil {
				return err
			}
			if format != output.FormatTable {
				return output.Encode(e.streams.Out, format, entries)
			}
			if len(entries) == 0 {
				return program.WithHint(errors.New("no repositories to show"), program.Name+" repo add NAME URL")
			}
			rows := [][]string{}
			for _, r := range entries {
				rows = append(rows, []string{r.Name, r.URL})
			}
			return output.Table(e.streams.Out, []string{"NAME", "URL"}, rows)
		}),
	}
}

func repoUpdate(e *env) *cli.Command {
	var strict bool
	var timeout time.Duration
	return &cli.Command{
		Name: "update", Aliases: []string{"up"}, Usage: "refresh the cached indexes of chart repositories", ArgsUsage: "[NAME...]",
		Description: `Examples:
  deployer repo update
  deployer repo update podinfo --fail-on-repo-update-fail

Exit codes: 0 done, even if some can't be reached; 1 failed`,
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "timeout", Value: indexTimeout, Usage: "time limit for the download of each index", Destination: &timeout},
			&cli.BoolFlag{Name: "fail-on-repo-update-fail", Usage: "fail if any index can't be refreshed", Destination: &strict},
		},
		Action: action(0, -1, "", func(ctx context.Context, names []string) error {
			list := e.repositoryList()
			list.Timeout = timeout
			var failed []string
			// What can't be written here fails when the last line is written.
			waiting := e.showTransfer("fetching", "indexes")
			defer waiting.Stop()
			out := waiting.Through(e.streams.Out)
			say := func(format string, args ...any) {
				fmt.Fprintln(out, output.WithoutPasswords(fmt.Sprintf(format, args...)))
			}
			err := list.Update(ctx, names,
				func() { say("Hang tight while we grab the latest from your chart repositories...") },
				func(u repository.Update) {
					if u.Err == nil {
						say("...Successfully got an update from the %q chart repository", u.Name)
						return
					}
					say("...Unable to get an update from the %q chart repository (%s):\n\t%s", u.Name, u.URL, u.Err)
					failed = append(failed, u.URL)
				})
			if err != nil {
				return err
			}
			if strict && len(failed) > 0 {
				//lint:ignore ST1005 Helm's words
				return fmt.Errorf("Failed to update the following repositories: %s", failed)
			}
			waiting.Stop()
			return printTo(e.streams.Out, "Update Complete. ⎈Happy Helming!⎈\n")
		}),
	}
}

func repoRemove(e *env) *cli.Command {
	return &cli.Command{
		Name: "remove", Aliases: []string{"rm"}, Usage: "remove chart repositories", ArgsUsage: "NAME...",
		Description: `Examples:
  deployer repo remove podinfo

Exit codes: 0 done; 1 there is no such repository`,
		Action: action(1, -1, "the name of a repository", func(ctx context.Context, names []string) error {
			var written error
			err := e.repositoryList().Remove(ctx, names, func(name string) {
				written = errors.Join(written, printTo(e.streams.Out, fmt.Sprintf("%q has been removed from your repositories\n", name)))
			})
			return errors.Join(err, written)
		}),
	}
}

func repoIndex() *cli.Command {
	var o repository.IndexOptions
	return &cli.Command{
		Name: "index", Usage: "write the index file of a directory of chart archives", ArgsUsage: "DIR",
		Description: `Writes DIR/index.yaml, so that any web server can serve DIR as a repository.

Examples:
  deployer repo index ./public --url https://charts.example.com --merge old-index.yaml`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "url", Usage: "base `URL` of the archives", Destination: &o.URL},
			&cli.StringFlag{Name: "merge", Usage: "index `FILE` to merge in", Destination: &o.Merge},
			&cli.BoolFlag{Name: "json", Usage: "write the index as JSON", Destination: &o.JSON},
		},
		Action: action(1, 1, "a directory", func(_ context.Context, args []string) error {
			return repository.Index(args[0], o)
		}),
	}
}
