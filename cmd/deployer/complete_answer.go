package main

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"deployer/internal/lazyregexp"
	"deployer/internal/program"
	"deployer/internal/view/textfmt"
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
func complete(ctx context.Context, e *env, typed []string, described bool) error {
	if len(typed) == 0 {
		typed = []string{""}
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	last := typed[len(typed)-1]
	if last == `""` {
		last = "" // PowerShell can't pass an empty argument; the script writes this
	}
	answer := answerCompletion(ctx, e, typed[:len(typed)-1], last)
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

func answerCompletion(ctx context.Context, e *env, before []string, last string) completion {
	p := newParser(e.commands, before)
	q := completionRequest{ctx: ctx, e: e, parsed: p, last: last}
	if plug, at, _ := e.calledPlugin(before); plug != nil && !pluginsDisabled() {
		p.known = flagTable(e.global)
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
	e.call.flags = p.flags
	e.useFlags(e.global, everywhere) // so that the right cluster and files are asked
	switch {
	case pending != "":
		return q.flagValue(pending)
	case strings.HasPrefix(last, "-"):
		if written, value, ok := strings.Cut(last, "="); ok {
			q.last, q.prefix = value, written+"="
			return q.flagValue(written)
		}
		if p.leaf == nil {
			p.known = flagTable(e.global)
		}
		return q.flagNames()
	case p.leaf == nil && len(p.arguments) == 0:
		return q.commandNames()
	case p.leaf == nil:
		return completion{directive: directiveNoFiles}
	}
	return q.argument()
}

// A completionRequest is one place of a command line to complete.
type completionRequest struct {
	ctx    context.Context
	e      *env
	parsed *parser
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

func (q completionRequest) commandNames() completion {
	var words []string
	for _, c := range q.parsed.commands {
		if !q.e.call.asHelm || !c.is.has(beyondHelm) {
			words = append(words, c.name+"\t"+c.usage)
		}
	}
	if len(q.parsed.words) == 0 {
		for _, p := range q.e.callablePlugins(q.parsed.commands) {
			words = append(words, p.Name+"\t"+cmp.Or(p.Usage, fmt.Sprintf("the %q plugin", p.Name)))
		}
	}
	return q.pick(words)
}

func (q completionRequest) flagNames() completion {
	words := []string{"--help\tshow help", "--help-all\tshow help", "-h\tshow help"}
	for name, f := range q.parsed.known {
		if !f.isHidden() {
			words = append(words, withDashes(name)+"\t"+f.usageText())
		}
	}
	slices.Sort(words)
	return q.pick(words)
}

// flagValue completes the value of a flag, which is written with its dashes: by its words, or by the name of its value.
func (q completionRequest) flagValue(written string) completion {
	name := strings.TrimLeft(written, "-")
	if !strings.HasPrefix(written, "--") && len(name) > 1 {
		name = name[len(name)-1:] // -Aq: the last letter takes the value
	}
	switch f := q.parsed.known[name]; {
	case f == nil:
		return completion{directive: directiveNoFiles}
	case f.value.words != nil:
		return q.pick(f.value.words)
	default:
		return q.ofKind(f.kind())
	}
}

func completionCommand(e *env) *command {
	var plain bool
	return &command{
		name: "completion", usage: "print a completion script for your shell", args: "bash|zsh|fish|powershell", takes: "bash, zsh, fish or powershell",
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
		action: func(_ context.Context, args []string) error {
			if !slices.Contains(shells, args[0]) {
				return program.Suggest(usagef("no completion script for %q; there are %s", args[0], textfmt.List(shells)), args[0], shells)
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
		},
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
