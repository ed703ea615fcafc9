package main

// pluginGroup is the title of what plugins have added to the program's help.
const pluginGroup = "Plugins"

// commands lists the program's commands in the order of its help, each with the title of its group.
func commands(e *env) []*command {
	var all []*command
	for _, group := range []struct {
		title    string
		commands []*command
	}{
		{"Change a release", []*command{
			upgradeCommand(e), installCommand(e), planCommand(e), applyCommand(e), rollbackCommand(e), uninstallCommand(e), testCommand(e), recoverCommand(e),
		}},
		{"Look at releases", []*command{
			listCommand(e), statusCommand(e), historyCommand(e), getCommand(e), explainCommand(e),
		}},
		{"Work on charts", []*command{
			templateCommand(e), lintCommand(e), showCommand(e), createCommand(e), dependencyCommand(e), packageCommand(e), verifyCommand(e),
		}},
		{"Fetch and publish charts", []*command{
			repoCommand(e), searchCommand(e), pullCommand(e), pushCommand(e), registryCommand(e),
		}},
		{"This program", []*command{
			pluginCommand(e), envCommand(e), versionCommand(e), completionCommand(e), helpCommand(e),
		}},
	} {
		for _, c := range group.commands {
			c.group = group.title
		}
		all = append(all, group.commands...)
	}
	return all
}
