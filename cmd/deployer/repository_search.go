package main

import (
	"context"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"deployer/chart/repository"
	"deployer/internal/program"
	"deployer/internal/view/output"
)

// A searchOptions is what both searches share.
type searchOptions struct {
	width  uint
	strict bool
}

func (o *searchOptions) flags(e *env) []cli.Flag {
	return []cli.Flag{
		&cli.UintFlag{Name: "max-col-width", Value: 50, Usage: "maximum width of a column, in characters", Destination: &o.width},
		&cli.BoolFlag{Name: "fail-on-no-result", Usage: "fail if nothing is found", Destination: &o.strict},
		outputFlag(e),
	}
}

// write shows results as a table or encodes them.
func (o *searchOptions) write(e *env, format output.Format, results any, rows [][]string) error {
	empty := len(rows) == 1 // the headings
	switch {
	case empty && o.strict:
		return errors.New("no results found")
	case format != output.FormatTable:
		return output.Encode(e.streams.Out, format, results)
	case empty:
		return printTo(e.streams.Out, "No results found\n")
	}
	return output.Table(e.streams.Out, nil, output.ClipCells(rows, int(o.width)))
}

func searchCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "search", Usage: "search for charts",
		Subcommands: []*cli.Command{searchRepo(e), searchHub(e)},
	}
}

func searchRepo(e *env) *cli.Command {
	var o searchOptions
	var q repository.Query
	return &cli.Command{
		Name: "repo", Usage: "search for charts in the added repositories", ArgsUsage: "[WORD...]",
		Description: `Searches the cached indexes. To refresh them, run repo update.

Examples:
  deployer search repo nginx
  deployer search repo nginx --version ^1.0.0 --versions -o json

Exit codes: 0 done, even if nothing is found; 1 failed`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "regexp", Aliases: []string{"r"}, Usage: "treat WORD as a regular expression", Destination: &q.Regexp},
			&cli.BoolFlag{Name: "versions", Aliases: []string{"l"}, Usage: "list all versions of each chart", Destination: &q.Versions},
			&cli.BoolFlag{Name: "devel", Usage: "also list development versions", Destination: &q.Devel},
			&cli.StringFlag{Name: "version", Usage: "version `CONSTRAINT`, such as ^1.0.0", Destination: &q.Version},
		}, o.flags(e)...),
		Action: actionWithFormat(e, 0, -1, "", func(_ context.Context, words []string, format output.Format) error {
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
			return o.write(e, format, found, rows)
		}),
	}
}

func searchHub(e *env) *cli.Command {
	var o searchOptions
	var endpoint string
	var withRepo bool
	return &cli.Command{
		Name: "hub", Usage: "search for charts in Artifact Hub or your own hub", ArgsUsage: "[WORD...]",
		Description: `Examples:
  deployer search hub nginx --list-repo-url

Exit codes: 0 done, even if nothing is found; 1 failed`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "endpoint", Value: "https://hub.helm.sh", Usage: "`URL` of the hub", Destination: &endpoint},
			&cli.BoolFlag{Name: "list-repo-url", Usage: "also show the URLs of the repositories", Destination: &withRepo},
		}, o.flags(e)...),
		Action: actionWithFormat(e, 0, -1, "", func(ctx context.Context, words []string, format output.Format) error {
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
			return o.write(e, format, found, rows)
		}),
	}
}
