package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"deployer/chart/repository"
	"deployer/internal/program"
	"deployer/internal/view/output"
)

// indexTimeout is how long the download of one index may take, as in Helm.
const indexTimeout = 2 * time.Minute

func repoCommand(e *env) *command {
	return &command{
		name: "repo", usage: "manage chart repositories",
		commands: []*command{repoAdd(e), repoList(e), repoUpdate(e), repoRemove(e), repoIndex()},
	}
}

func (e *env) repositoryList() repository.RepositoryList {
	return repository.RepositoryList{Settings: e.files}
}

func repoAdd(e *env) *command {
	var a repository.Addition
	var stdin bool
	var timeout time.Duration
	return &command{
		name: "add", is: changes, usage: "add a chart repository", args: "NAME URL", takes: "a name and a URL", complete: "NEW URL",
		steps: `Downloads the index of the repository and adds it to the list that Helm also
uses. Adding the same repository again succeeds.`,
		examples: `deployer repo add podinfo https://stefanprodan.github.io/podinfo
echo $TOKEN | deployer repo add private https://charts.example.com --username ci --password-stdin`,
		flags: slices.Concat([]*flag{
			{name: "force-update", usage: "replace a repository of the same name", is: usual | risky, value: toggle(&a.Force)},
			{name: "allow-deprecated-repos", usage: "also allow repositories that are known to be shut down", is: usual | safe, value: toggle(&a.AllowDeprecated)},
			{name: "timeout", usage: "time limit for the download of the index", is: common | safe, value: duration(&timeout, indexTimeout)},
		}, inGroup("Access", []*flag{
			{name: "username", usage: "user `NAME` for the repository", is: rare | safe, value: text(&a.Access.Username)},
			{name: "password", usage: "`PASSWORD` for the repository", is: rare | safe, value: text(&a.Access.Password)},
			{name: "password-stdin", usage: "read the password from standard input", is: usual | safe, value: toggle(&stdin)},
			passCredentialsFlag(&a.Access),
		}), tlsFlags(&a.Access), []*flag{
			noEffect("no-update", "only the index of a new or replaced repository is downloaded"),
		}),
		action: func(ctx context.Context, args []string) (err error) {
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
		},
	}
}

func repoList(e *env) *command {
	return &command{
		name: "list", also: "ls", usage: "list chart repositories",
		examples: "deployer repo list -o json",
		codes:    "0 done; 1 failed, or there are no repositories",
		flags:    []*flag{outputFlag(e)},
		action: func(_ context.Context, _ []string) error {
			entries, err := e.repositoryList().List()
			if err != nil {
				return err
			}
			if e.format != output.FormatTable {
				return output.Encode(e.streams.Out, e.format, entries)
			}
			if len(entries) == 0 {
				return program.WithHint(errors.New("no repositories to show"), program.Name+" repo add NAME URL")
			}
			rows := [][]string{}
			for _, r := range entries {
				rows = append(rows, []string{r.Name, r.URL})
			}
			return output.Table(e.streams.Out, []string{"NAME", "URL"}, rows)
		},
	}
}

func repoUpdate(e *env) *command {
	var strict bool
	var timeout time.Duration
	return &command{
		name: "update", is: changes, also: "up", usage: "refresh the cached indexes of chart repositories", args: "[NAME...]", complete: "REPOSITORY...",
		examples: `deployer repo update
deployer repo update podinfo --fail-on-repo-update-fail`,
		codes: "0 done, even if some can't be reached; 1 failed",
		flags: []*flag{
			{name: "timeout", usage: "time limit for the download of each index", is: common | safe, value: duration(&timeout, indexTimeout)},
			{name: "fail-on-repo-update-fail", usage: "fail if any index can't be refreshed", is: usual | safe, value: toggle(&strict)},
		},
		action: func(ctx context.Context, names []string) error {
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
		},
	}
}

func repoRemove(e *env) *command {
	return &command{
		name: "remove", is: changes, also: "rm", usage: "remove chart repositories", args: "NAME...", takes: "the name of a repository", complete: "REPOSITORY...",
		examples: "deployer repo remove podinfo",
		codes:    "0 done; 1 there is no such repository",
		action: func(ctx context.Context, names []string) error {
			var written error
			err := e.repositoryList().Remove(ctx, names, func(name string) {
				written = errors.Join(written, printTo(e.streams.Out, fmt.Sprintf("%q has been removed from your repositories\n", name)))
			})
			return errors.Join(err, written)
		},
	}
}

func repoIndex() *command {
	var o repository.IndexOptions
	return &command{
		name: "index", is: changes, usage: "write the index file of a directory of chart archives", args: "DIR", takes: "a directory",
		steps:    `Writes DIR/index.yaml, so that any web server can serve DIR as a repository.`,
		examples: "deployer repo index ./public --url https://charts.example.com --merge old-index.yaml",
		flags: []*flag{
			{name: "url", usage: "base `URL` of the archives", is: usual | safe, value: text(&o.URL)},
			{name: "merge", usage: "index `FILE` to merge in", is: usual | safe, value: text(&o.Merge)},
			{name: "json", usage: "write the index as JSON", is: usual | safe, value: toggle(&o.JSON)},
		},
		action: func(_ context.Context, args []string) error {
			return repository.Index(args[0], o)
		},
	}
}
