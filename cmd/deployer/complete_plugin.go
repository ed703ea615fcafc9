package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"deployer/internal/plugin"
)

// The files in which a plugin says how it is completed.
// (helm.sh/helm/v3/cmd/helm/load_plugins.go)
const (
	staticCompletion  = "completion.yaml"
	dynamicCompletion = "plugin.complete"
)

// pluginWords are the commands and flags of a plugin, from completion.yaml.
type pluginWords struct {
	Name      string        `json:"name"`
	ValidArgs []string      `json:"validArgs"`
	Flags     []string      `json:"flags"`
	Commands  []pluginWords `json:"commands"`
}

// pluginOf is the installed plugin that a command line calls, and the place
// of its name; nil when it calls none.
func (e *env) pluginOf(app *cli.App, before []string) (*plugin.Plugin, int) {
	if pluginsDisabled() {
		return nil, 0
	}
	at := firstWord(app, append([]string{""}, before...)) - 1
	if at < 0 || commandNamed(app.Commands, before[at]) != nil {
		return nil, 0
	}
	p, err := plugin.FindByName(e.pluginPlaces().Plugins, before[at])
	if err != nil {
		return nil, 0
	}
	return p, at
}

// pluginWord completes a word of a plugin's command line: with the commands and
// flags that it names, and with what its program answers.
func (q completionRequest) pluginWord(p *plugin.Plugin, args []string) completion {
	own, theirs, err := splitPluginFlags(args)
	if err != nil {
		return q.flagValue(strings.TrimLeft(args[len(args)-1], "-"), args[len(args)-1], "")
	}
	q.e.useGlobalFlags(&normalizer{given: own})
	words := pluginWords{}
	if data, err := os.ReadFile(filepath.Join(p.Dir, staticCompletion)); err == nil {
		_ = yaml.Unmarshal(data, &words) // without it there is less to offer
	}
	var path []string
	for len(theirs) > 0 {
		i := slices.IndexFunc(words.Commands, func(w pluginWords) bool { return w.Name == theirs[0] })
		if i < 0 {
			break
		}
		words, path, theirs = words.Commands[i], append(path, theirs[0]), theirs[1:]
	}
	var offered completion
	offered.directive = directiveNoFiles
	if strings.HasPrefix(q.last, "-") {
		offered = q.flagNames()
		offered.words = append(offered.words, q.pick(writtenFlags(words.Flags), "").words...)
	}
	if words.Commands != nil {
		for _, c := range words.Commands {
			if strings.HasPrefix(c.Name, q.last) {
				offered.words = append(offered.words, c.Name)
			}
		}
		return offered
	}
	if len(words.ValidArgs) > 0 {
		offered.words = append(offered.words, q.pick(words.ValidArgs, "").words...)
		return offered
	}
	answer := q.askPlugin(p, append(path, theirs...))
	return completion{words: append(offered.words, answer.words...), directive: answer.directive}
}

// writtenFlags are flags as they are written. Where there are more letters than words,
// the ones left over have both forms, as in Helm.
func writtenFlags(flags []string) []string {
	var letters, words []string
	for _, f := range flags {
		if len(f) == 1 {
			letters = append(letters, f)
		} else {
			words = append(words, f)
		}
	}
	if len(letters) > len(words) {
		words = append(words, letters[len(words):]...)
	}
	var out []string
	for _, w := range words {
		out = append(out, "--"+w)
	}
	for _, l := range letters {
		out = append(out, "-"+l)
	}
	return out
}

// askPlugin runs a plugin's program for completions, if it has one. Its answer is
// a word a line, and a directive at last.
func (q completionRequest) askPlugin(p *plugin.Plugin, args []string) completion {
	none := completion{directive: directiveFiles}
	if !p.IgnoreFlags {
		args = append(slices.Clone(args), q.last)
	}
	var out bytes.Buffer
	host := q.e.pluginHost()
	host.In, host.Out, host.Err = nil, &out, nil
	cmd, err := host.Program(q.ctx, p, filepath.Join(p.Dir, dynamicCompletion), args)
	if err != nil || cmd.Run() != nil || context.Cause(q.ctx) != nil {
		return none
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if line != "" {
			none.words = append(none.words, line)
		}
	}
	if n := len(none.words); n > 0 {
		if last := none.words[n-1]; len(last) > 1 && last[0] == ':' {
			if _, err := strconv.Atoi(last[1:]); err == nil {
				none.words, none.directive = none.words[:n-1], last
			}
		}
	}
	return none
}

// helmCompletedCommands are what Tab offers under the name helm: what Helm has.
var helmCompletedCommands = []string{"completion", "create", "dependency", "env", "get", "help", "history", "install", "lint", "list", "package", "plugin",
	"pull", "push", "registry", "repo", "rollback", "search", "show", "status", "template", "test", "uninstall", "upgrade", "verify", "version"}
