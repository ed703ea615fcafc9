package main

import (
	"context"
	"embed"
	"slices"
	"strings"

	"deployer/internal/lazyregexp"
	"deployer/internal/program"
	"deployer/internal/view/textfmt"
)

func completionCommand(e *env) *command {
	var plain bool
	return &command{
		name: "completion", usage: "print a completion script for your shell", args: "bash|zsh|fish|powershell",
		steps: `The script completes commands, flags and their values, releases, revisions,
namespaces, contexts, charts and versions. It waits two seconds at most for the
cluster.`,
		examples: `source <(deployer completion bash)
deployer completion zsh > "${fpath[1]}/_deployer"
deployer completion fish > ~/.config/fish/completions/deployer.fish
deployer completion powershell | Out-String | Invoke-Expression`,
		codes: "0 done; 1 there is no such shell",
		flags: []*flag{
			{name: "no-descriptions", usage: "leave out descriptions", is: usual | safe, value: toggle(&plain)},
		},
		action: withArguments(1, 1, "bash, zsh, fish or powershell", func(_ context.Context, args []string) error {
			if !slices.Contains(shells, args[0]) {
				return program.Suggest(usagef("completion", "no completion script for %q; there are %s", args[0], textfmt.List(shells)), args[0], shells)
			}
			script, err := completionScripts.ReadFile("completion/" + args[0])
			if err != nil {
				return err
			}
			asks := completionCommandName
			if plain {
				asks = plainCompletionCommandName
			}
			return printTo(e.streams.Data(), strings.NewReplacer("PROGRAM", e.call.completedName(), "COMPLETE", asks).Replace(string(script)))
		}),
	}
}

// completedName is the file name that the program was called by: scripts complete
// renamed programs too.
func (c call) completedName() string {
	if name := baseName(c.path); completableName().MatchString(name) {
		return name
	}
	return c.name
}

// completableName is a name that can be part of a function's in all shells.
var completableName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]*$`)

var shells = []string{"bash", "zsh", "fish", "powershell"}

// completionScripts has a script for each shell. PROGRAM in it is the program's name, COMPLETE the
// hidden command.
//
//go:embed completion
var completionScripts embed.FS
