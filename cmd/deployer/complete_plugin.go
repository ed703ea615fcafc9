package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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

// pluginWord completes a word of a plugin's command line: with the commands, words and
// flags in completion.yaml, and with what its program answers, by cobra's rules.
// (github.com/spf13/cobra/completions.go, getCompletions)
func (q completionRequest) pluginWord(p *plugin.Plugin, args []string) completion {
	own, theirs, err := q.e.splitPluginFlags(args)
	if err != nil {
		return q.flagValue(args[len(args)-1])
	}
	q.e.call.flags = own
	q.e.useFlags(q.e.global, everywhere)
	words, path, theirs := wordsOf(p).at(theirs)
	offered, isFlag := completion{directive: directiveFiles}, strings.HasPrefix(q.last, "-")
	switch {
	case isFlag:
		offered = q.pluginFlagNames(words)
	case len(theirs) == 0:
		offered = q.pick(slices.Concat(words.commandNames(), words.ValidArgs))
	}
	if words.Commands != nil || len(words.ValidArgs) > 0 && !isFlag {
		return offered
	}
	if p.IgnoreFlags {
		theirs = nil
	} else {
		theirs = append(theirs, q.last)
	}
	answer := q.askPlugin(p, append(path, theirs...))
	return completion{words: append(offered.words, answer.words...), directive: answer.directive}
}

// wordsOf reads a plugin's completion.yaml. Without it there is less to offer.
func wordsOf(p *plugin.Plugin) pluginWords {
	words := pluginWords{}
	if data, err := os.ReadFile(filepath.Join(p.Dir, staticCompletion)); err == nil {
		_ = yaml.Unmarshal(data, &words)
	}
	return words
}

// at follows the commands of a command line. It returns the last one, the names of all, and
// the arguments.
func (w pluginWords) at(args []string) (last pluginWords, path, rest []string) {
	for len(args) > 0 {
		i := slices.IndexFunc(w.Commands, func(c pluginWords) bool { return c.Name == args[0] })
		if i < 0 {
			break
		}
		w, path, args = w.Commands[i], append(path, args[0]), args[1:]
	}
	return w, path, args
}

func (w pluginWords) commandNames() []string {
	var names []string
	for _, c := range w.Commands {
		names = append(names, c.Name)
	}
	return names
}

// pluginFlagNames offers the flags of a plugin, and the global ones that it finds in its
// environment: all but --color and --help, which it gets.
func (q completionRequest) pluginFlagNames(words pluginWords) completion {
	maps.DeleteFunc(q.parsed.known, func(_ string, f *flag) bool { return !f.is.has(notForPlugins | alsoPlugins) })
	offered := q.flagNames()
	offered.words = slices.DeleteFunc(offered.words, func(word string) bool { return strings.HasSuffix(word, "\tshow help") })
	var written []string
	for _, name := range words.Flags {
		written = append(written, withDashes(name))
	}
	offered.words = append(offered.words, q.pick(written).words...)
	return offered
}

// askPlugin runs a plugin's program for completions, if it has one. Its answer is
// a word a line, and a directive at last.
func (q completionRequest) askPlugin(p *plugin.Plugin, args []string) completion {
	answer := completion{directive: directiveFiles}
	var out bytes.Buffer
	host := q.e.pluginHost()
	host.In, host.Out, host.Err = nil, &out, nil
	cmd, err := host.Program(q.ctx, p, filepath.Join(p.Dir, dynamicCompletion), args)
	if err != nil || cmd.Run() != nil || context.Cause(q.ctx) != nil {
		return answer
	}
	answer.words = strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
	if n := len(answer.words) - 1; n >= 0 {
		code, ok := strings.CutPrefix(answer.words[n], ":")
		if _, err := strconv.Atoi(code); ok && err == nil {
			answer.words, answer.directive = answer.words[:n], answer.words[n]
		}
	}
	return answer
}
