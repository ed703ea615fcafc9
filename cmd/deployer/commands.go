package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"deployer/internal/program"
)

// pluginGroup is the title of what plugins have added to the program's help.
const pluginGroup = "Plugins"

// commands lists the program's commands in the order of its help, each with the title of its group.
func commands(e *env) []*cli.Command {
	var all []*cli.Command
	for _, group := range []struct {
		title    string
		commands []*cli.Command
	}{
		{"Change a release", []*cli.Command{
			upgradeCommand(e), installCommand(e), planCommand(e), applyCommand(e), rollbackCommand(e), uninstallCommand(e), testCommand(e), recoverCommand(e),
		}},
		{"Look at releases", []*cli.Command{
			withReadTimeout(listCommand(e)), statusCommand(e), withReadTimeout(historyCommand(e)), withReadTimeout(getCommand(e)), withReadTimeout(explainCommand(e)),
		}},
		{"Work on charts", []*cli.Command{
			templateCommand(e), lintCommand(e), showCommand(e), createCommand(e), dependencyCommand(e), packageCommand(e), verifyCommand(e),
		}},
		{"Fetch and publish charts", []*cli.Command{
			repoCommand(e), searchCommand(e), pullCommand(e), pushCommand(e), registryCommand(e),
		}},
		{"This program", []*cli.Command{
			pluginCommand(e), envCommand(e), versionCommand(e), completionCommand(e), helpCommand(e),
			docsCommand(),
		}},
	} {
		for _, c := range group.commands {
			c.Category = group.title
		}
		all = append(all, group.commands...)
	}
	return all
}

// docsCommand stands for a command of Helm that deployer doesn't have.
func docsCommand() *cli.Command {
	const why = "there is no generator of manual pages"
	return &cli.Command{
		Name: "docs", Hidden: true, Usage: why,
		Description: "Examples:\n  deployer help\n\nExit codes: 1 always",
		Action: func(*cli.Context) error {
			return program.WithHint(errors.New("deployer docs: "+why), program.Name+" help COMMAND")
		},
	}
}
