package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"deployer/internal/program"
)

// commandGroups are the titles of the program's help and the commands below each.
var commandGroups = []struct {
	title    string
	commands []string
}{
	{"Change a release", []string{"upgrade", "install", "plan", "apply", "rollback", "uninstall", "test", "recover"}},
	{"Look at releases", []string{"list", "status", "history", "get", "explain"}},
	{"Work on charts", []string{"template", "lint", "show", "create", "dependency", "package", "verify"}},
	{"Fetch and publish charts", []string{"repo", "search", "pull", "push", "registry"}},
	{"This program", []string{"plugin", "env", "version", "completion", "help"}},
	{pluginGroup, nil},
}

// pluginGroup is the title of what plugins have added.
const pluginGroup = "Plugins"

func groupOf(command string) string {
	for _, g := range commandGroups {
		if slices.Contains(g.commands, command) {
			return g.title
		}
	}
	return commandGroups[len(commandGroups)-2].title
}

// commands lists the program's commands in the order of its help.
func commands(e *env) []*cli.Command {
	return []*cli.Command{
		upgradeCommand(e),
		installCommand(e),
		planCommand(e),
		applyCommand(e),
		rollbackCommand(e),
		uninstallCommand(e),
		testCommand(e),
		recoverCommand(e),
		withReadTimeout(listCommand(e)),
		statusCommand(e),
		withReadTimeout(historyCommand(e)),
		withReadTimeout(getCommand(e)),
		withReadTimeout(explainCommand(e)),
		templateCommand(e),
		lintCommand(e),
		showCommand(e),
		createCommand(e),
		dependencyCommand(e),
		packageCommand(e),
		verifyCommand(e),
		repoCommand(e),
		searchCommand(e),
		pullCommand(e),
		pushCommand(e),
		registryCommand(e),
		pluginCommand(e),
		envCommand(e),
		versionCommand(e),
		completionCommand(e),
		helpCommand(e),
		unsupportedCommand("docs", "there is no generator of manual pages", program.Name+" help COMMAND"),
	}
}

// unsupportedCommand stands for a command of Helm that deployer doesn't have; its hint names the
// alternative.
func unsupportedCommand(name, why, instead string) *cli.Command {
	return &cli.Command{
		Name: name, Hidden: true, Usage: why,
		Description: "Examples:\n  deployer help\n\nExit codes: 1 always",
		Flags:       []cli.Flag{},
		Action: func(*cli.Context) error {
			return hintedError{error: fmt.Errorf("deployer %s: %s", name, why), hint: instead}
		},
	}
}
