package main

import (
	"context"
	"errors"
	"strings"

	"deployer/chart/repository"
	"deployer/internal/program"
	"deployer/internal/view/output"
)

// A searchOptions is what both searches share.
type searchOptions struct {
	width  uint
	strict bool
}

func (o *searchOptions) flags(e *env) []*flag {
	return []*flag{
		{name: "max-col-width", usage: "maximum width of a column, in characters", is: usual | safe, value: count(&o.width, 50)},
		{name: "fail-on-no-result", usage: "fail if nothing is found", is: usual | safe, value: toggle(&o.strict)},
		outputFlag(e),
	}
}

// write shows results as a table or encodes them.
func (o *searchOptions) write(e *env, results any, rows [][]string) error {
	empty := len(rows) == 1 // the headings
	switch {
	case empty && o.strict:
		return errors.New("no results found")
	case e.format != output.FormatTable:
		return output.Encode(e.streams.Out, e.format, results)
	case empty:
		return printTo(e.streams.Out, "No results found\n")
	}
	return output.Table(e.streams.Out, nil, output.ClipCells(rows, int(o.width)))
}

func searchCommand(e *env) *command {
	return &command{
		name: "search", usage: "search for charts",
		commands: []*command{searchRepo(e), searchHub(e)},
	}
}

func searchRepo(e *env) *command {
	var o searchOptions
	var q repository.Query
	return &command{
		name: "repo", usage: "search for charts in the added repositories", args: "[WORD...]",
		steps: `Searches the cached indexes. To refresh them, run repo update.`,
		examples: `deployer search repo nginx
deployer search repo nginx --version ^1.0.0 --versions -o json`,
		codes: "0 done, even if nothing is found; 1 failed",
		flags: append([]*flag{
			{name: "regexp", also: "r", usage: "treat WORD as a regular expression", is: usual | safe, value: toggle(&q.Regexp)},
			{name: "versions", also: "l", usage: "list all versions of each chart", is: usual | safe, value: toggle(&q.Versions)},
			{name: "devel", usage: "also list development versions", is: rare | safe, value: toggle(&q.Devel)},
			{name: "version", usage: "version `CONSTRAINT`, such as ^1.0.0", is: common | safe | noVariable, value: text(&q.Version)},
		}, o.flags(e)...),
		action: func(_ context.Context, words []string) error {
			q.Text = strings.Join(words, " ")
			found, err := e.repositoryList().Search(q, e.warn)
			if errors.Is(err, repository.ErrNoRepositories) {
				return program.WithHint(err, program.Name+" repo add NAME URL")
			}
			if err != nil {
				return err
			}
			rows := [][]string{{"NAME", "CHART VERSION", "APP VERSION", "DESCRIPTION"}}
			for _, f := range found {
				rows = append(rows, []string{f.Name, f.Version, f.AppVersion, f.Description})
			}
			return o.write(e, found, rows)
		},
	}
}

func searchHub(e *env) *command {
	var o searchOptions
	var endpoint string
	var withRepo bool
	return &command{
		name: "hub", usage: "search for charts in Artifact Hub or your own hub", args: "[WORD...]",
		examples: "deployer search hub nginx --list-repo-url",
		codes:    "0 done, even if nothing is found; 1 failed",
		flags: append([]*flag{
			{name: "endpoint", usage: "`URL` of the hub", is: usual | safe, value: text(&endpoint, "https://hub.helm.sh")},
			{name: "list-repo-url", usage: "also show the URLs of the repositories", is: usual | safe, value: toggle(&withRepo)},
		}, o.flags(e)...),
		action: func(ctx context.Context, words []string) error {
			waiting := e.showTransfer("asking", endpoint)
			found, err := repository.SearchHub(ctx, endpoint, strings.Join(words, " "))
			waiting.Stop()
			if err != nil {
				return err
			}
			rows := [][]string{{"URL", "CHART VERSION", "APP VERSION", "DESCRIPTION"}}
			if withRepo {
				rows[0] = append(rows[0], "REPO URL")
			}
			for _, f := range found {
				row := []string{f.URL, f.Version, f.AppVersion, f.Description}
				if withRepo {
					row = append(row, f.Repository.URL)
				}
				rows = append(rows, row)
			}
			return o.write(e, found, rows)
		},
	}
}
