package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// The hidden commands that completion scripts call, with the words of the
// command line up to and with the one that is being typed. They and their
// answers are those of Helm, whose scripts work with them too.
const (
	completionCommandName      = "__complete"
	plainCompletionCommandName = "__completeNoDesc" // without descriptions
)

// completeTimeout is how long a Tab may take when the cluster is asked.
const completeTimeout = 2 * time.Second

// Directives end the answer to a completion script and say what the shell adds.
// (github.com/spf13/cobra/completions.go, ShellCompDirective)
const (
	directiveNoFiles = ":4" // nothing
	directiveFiles   = ":0" // the file names that fit
	directiveNoSpace = ":6" // nothing, and no space after the word
)

// A completion is what may stand at one place of a command line.
type completion struct {
	words     []string // a word, or word, tab, description
	directive string
}

// complete answers a completion script: a word per line, then a directive. A
// completion fails silently: whoever types doesn't want to read errors.
func complete(ctx context.Context, e *env, app *cli.App, typed []string, described bool) error {
	if len(typed) == 0 {
		typed = []string{""}
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	last := typed[len(typed)-1]
	if last == `""` {
		last = "" // PowerShell can't pass an empty argument; the script writes this
	}
	answer := answerCompletion(ctx, e, app, typed[:len(typed)-1], last)
	var out strings.Builder
	for _, word := range answer.words {
		if !described {
			word, _, _ = strings.Cut(word, "\t")
		}
		fmt.Fprintln(&out, strings.TrimSpace(word))
	}
	fmt.Fprintln(&out, answer.directive)
	return printTo(e.streams.Out, out.String())
}

func answerCompletion(ctx context.Context, e *env, app *cli.App, before []string, last string) completion {
	p := &normalizer{flags: flagTable(app.Flags), commands: app.Commands}
	q := completionRequest{ctx: ctx, e: e, parsed: p, last: last}
	if plug, at := e.plugins().called(app, before); plug != nil {
		p.flags = flagTable(globalFlags(e))
		return q.pluginWord(plug, append(slices.Clone(before[:at]), before[at+1:]...))
	}
	pending := ""
	for len(before) > 0 {
		rest, err := p.next(before)
		if err != nil {
			if len(before) > 1 {
				return completion{directive: directiveNoFiles} // an unknown flag: nobody knows what comes next
			}
			pending = before[0] // the flag whose value is being typed
			break
		}
		before = rest
	}
	e.useGlobalFlags(p.given)
	if p.leaf == nil {
		maps.Copy(p.flags, flagTable(globalFlags(e)))
	}
	switch {
	case pending != "":
		return q.flagValue(pending)
	case strings.HasPrefix(last, "-"):
		if written, value, ok := strings.Cut(last, "="); ok {
			q.last, q.prefix = value, written+"="
			return q.flagValue(written)
		}
		return q.flagNames()
	case p.leaf == nil && len(p.arguments) == 0:
		return q.commandNames()
	case p.leaf == nil:
		return completion{directive: directiveNoFiles}
	}
	return q.argument()
}

// useGlobalFlags takes over the global flags on an unfinished command line, and their variables, so
// that the right cluster and files are asked. What can't be read counts as not there.
func (e *env) useGlobalFlags(given []string) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	flags := globalFlags(e)
	e.call.flags = given
	setUpVariables(e, flags)
	for _, f := range flags {
		if !isHidden(f) { // hidden ones would warn that they have no effect
			_ = f.Apply(set)
		}
	}
	for _, one := range given {
		_ = set.Parse([]string{one})
	}
}

// A completionRequest is one place of a command line to complete.
type completionRequest struct {
	ctx    context.Context
	e      *env
	parsed *normalizer
	last   string // what has been typed of the word
	prefix string // what stands before that in the shell's word: --flag=
}

// pick offers the words that begin with what has been typed.
func (q completionRequest) pick(words []string) completion {
	c := completion{directive: directiveNoFiles}
	for _, w := range words {
		if strings.HasPrefix(w, q.last) {
			c.words = append(c.words, q.prefix+w)
		}
	}
	return c
}

// commandsBeyondHelm aren't offered under the name helm.
var commandsBeyondHelm = []string{"plan", "apply", "recover", "explain"}

func (q completionRequest) commandNames() completion {
	var words []string
	root := len(q.parsed.words) == 0
	for _, c := range q.parsed.commands {
		if !c.Hidden && !(root && q.e.call.asHelm && slices.Contains(commandsBeyondHelm, c.Name)) {
			words = append(words, c.Name+"\t"+c.Usage)
		}
	}
	if root {
		for _, p := range q.e.plugins().callable(q.parsed.commands) {
			words = append(words, p.Name+"\t"+cmp.Or(p.Usage, fmt.Sprintf("the %q plugin", p.Name)))
		}
	}
	return q.pick(words)
}

func (q completionRequest) flagNames() completion {
	var words []string
	for name, f := range q.parsed.flags {
		if !isHidden(f) {
			dashes := "--"[:min(len(name), 2)]
			words = append(words, dashes+name+"\t"+usageOf(f))
		}
	}
	slices.Sort(words)
	return q.pick(words)
}

// flagWords list the values of a flag, by its name.
var flagWords = map[string]func(completionRequest) []string{
	"output": func(completionRequest) []string {
		return []string{"json\tOutput result in JSON format", "table\tOutput result in human-readable format", "yaml\tOutput result in YAML format"}
	},
	"namespace": completionRequest.namespaces, "kube-context": completionRequest.contexts,
	"version": completionRequest.versions, "revision": completionRequest.revisions,
}

// flagValue completes the value of a flag, which is written with its dashes.
func (q completionRequest) flagValue(written string) completion {
	name := strings.TrimLeft(written, "-")
	if !strings.HasPrefix(written, "--") && len(name) > 1 {
		name = name[len(name)-1:] // -Aq: the last letter takes the value
	}
	f, ok := q.parsed.flags[name]
	if !ok {
		if f = findFlag(q.parsed.commands, name); f == nil {
			return completion{directive: directiveNoFiles}
		}
	}
	if g, ok := f.(*cli.GenericFlag); ok {
		switch v := g.Value.(type) {
		case *choice:
			return q.pick(v.words)
		case *valueSource:
			return completion{directive: directiveFiles}
		}
	}
	if words := flagWords[f.Names()[0]]; words != nil {
		return q.pick(words(q))
	}
	if isPath(f.Names()[0]) {
		return completion{directive: directiveFiles}
	}
	return completion{directive: directiveNoFiles}
}

// isPath reports whether a flag's value names a file or directory.
func isPath(flag string) bool {
	ends := []string{"file", "dir", "config", "cache", "keyring", "destination", "merge", "starter", "post-renderer", "out", "report-junit"}
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(flag, end) })
}
