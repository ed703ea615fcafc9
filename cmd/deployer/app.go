package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"deployer/internal/lazyregexp"
	"deployer/internal/program"
	"deployer/internal/view/output"
)

// newApp builds the command tree.
func newApp(e *env) *cli.App {
	app := &cli.App{
		Name:                      e.call.name,
		Usage:                     "deploy Helm charts with server-side apply and follow the rollout",
		Writer:                    e.streams.Out,
		ErrWriter:                 e.streams.Err,
		HideVersion:               true,
		HideHelp:                  true, // normalize finds --help, help_page.go writes the page
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              e.onUsageError,
		Action:                    showHelp(e),
		Commands:                  commands(e),
	}
	global := globalFlags(e)
	for _, c := range app.Commands {
		setUpCommand(e, c, c.Name, global)
	}
	return app
}

// setUpCommand adds to a command what all commands have: the global flags, our usage errors, and the usual
// exit codes unless its description has others. All share the flags, because only one command runs. path is
// the command with its parents, such as "repo add".
func setUpCommand(e *env, c *cli.Command, path string, global []cli.Flag) {
	c.OnUsageError = e.onUsageError
	c.HideHelp, c.HideHelpCommand = true, true
	if len(c.Subcommands) == 0 {
		if c.Category != pluginGroup && !strings.Contains(c.Description, exitCodesHeading) {
			c.Description += "\n\n" + exitCodesHeading + " 0 done; 1 failed"
		}
		c.Flags = append(c.Flags, global...)
		tolerateBrokenPipes(e, c, path)
		return
	}
	c.Action = showHelp(e)
	for _, sub := range c.Subcommands {
		setUpCommand(e, sub, path+" "+sub.Name, global)
	}
}

// prepareToRun gives the flags of the command that runs their environment variables; for all commands that would
// take too long. It also hides the flags between Before and Action. There the library looks up each flag among all,
// to run an action of the flag, which ours don't have.
func (e *env) prepareToRun(c *cli.Command) {
	setUpVariables(e, c.Flags)
	flags, body := c.Flags, c.Action
	c.Before = func(*cli.Context) error {
		c.Flags = nil
		return nil
	}
	c.Action = func(ctx *cli.Context) error {
		c.Flags = flags
		return body(ctx)
	}
}

// setUpVariables gives flags their environment variables, except those on the command line: a value of a variable would
// be added to a list.
func setUpVariables(e *env, flags []cli.Flag) {
	for _, f := range flags {
		if name, variables := nameAndVariables(f); variables != nil && e.call.hasFlag(name) {
			*variables = nil
			continue
		}
		addVariable(f)
		e.dropUnreadableVariables(f)
	}
}

// onUsageError reports all flags with invalid values; the flag package reports only the first.
func (e *env) onUsageError(c *cli.Context, first error, _ bool) error {
	var problems []error
	for _, given := range e.call.flags {
		set := flag.NewFlagSet("", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		for _, f := range c.Command.Flags {
			_ = f.Apply(set) // its error is about a variable, which is in first
		}
		if err := set.Parse([]string{given}); err != nil {
			problems = append(problems, flagProblem(c, err))
		}
	}
	if len(problems) == 0 {
		problems = append(problems, flagProblem(c, first))
	}
	return &usageError{err: errors.Join(problems...), command: commandPath(c)}
}

func flagProblem(c *cli.Context, err error) error {
	if m := badValue().FindStringSubmatch(err.Error()); m != nil {
		err = fmt.Errorf("--%s: %s", m[2], m[3])
		if m[3] == "parse error" {
			err = fmt.Errorf("--%s: %s %s", m[2], m[1], expectedValue(c, m[2]))
		}
	}
	return err
}

// expectedValue says why a value is invalid for a flag.
func expectedValue(c *cli.Context, flag string) string {
	switch flagTable(c.Command.Flags)[flag].(type) {
	case *cli.DurationFlag:
		return "is not a duration: it needs units, such as 90s or 1h30m"
	case *cli.BoolFlag:
		return "is not one of true, false"
	}
	return "is not a whole number, or out of range"
}

// badValue matches the flag package's error for an invalid value, which has no type of its
// own. Other errors are shown unchanged.
var badValue = lazyregexp.New(`^(?s:invalid (?:boolean )?value (".*") for (?:flag )?-([\w-]+): (.*))$`)

// addVariable lets DEPLOYER_FLAG_NAME stand for --flag-name. DEPLOYER_VERSION
// doesn't stand for a chart's --version: scripts that install deployer use it.
func addVariable(f cli.Flag) {
	if name, variables := nameAndVariables(f); variables != nil && name != "version" {
		*variables = append([]string{"DEPLOYER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))}, *variables...)
	}
}

// nameAndVariables returns the name of a flag and its environment variables; nil for a flag that can't
// have any. f.Names would search the names of all flags of all commands by a regular expression.
func nameAndVariables(f cli.Flag) (name string, variables *[]string) {
	switch f := f.(type) {
	case *cli.BoolFlag:
		return f.Name, &f.EnvVars
	case *cli.StringFlag:
		return f.Name, &f.EnvVars
	case *cli.UintFlag:
		return f.Name, &f.EnvVars
	case *cli.IntFlag:
		return f.Name, &f.EnvVars
	case *cli.DurationFlag:
		return f.Name, &f.EnvVars
	case *cli.GenericFlag:
		if _, without := f.Value.(*noOpFlag); !without { // a variable that is set for upgrade isn't meant for template
			return f.Name, &f.EnvVars
		}
	}
	return "", nil
}

// globalCategory is the group of the flags that every command has.
const globalCategory = "Global"

// globalFlags choose the cluster, Helm's files and how output looks; every
// command has them.
func globalFlags(e *env) []cli.Flag {
	const group = globalCategory
	k := &e.kube
	return append([]cli.Flag{
		&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Category: group, Usage: "`NAMESPACE` of the release (default: the context's)", Destination: &k.Namespace, EnvVars: []string{"HELM_NAMESPACE"}},
		&cli.StringFlag{Name: "kubeconfig", Category: group, Usage: "kubeconfig `FILE` (default: KUBECONFIG or ~/.kube/config)", Destination: &k.Kubeconfig},
		&cli.StringFlag{Name: "kube-context", Category: group, Usage: "`NAME` of the kubeconfig context", Destination: &k.Context, EnvVars: []string{"HELM_KUBECONTEXT"}},
		&cli.StringFlag{Name: "expect-context", Category: group, Usage: "refuse to use a kubeconfig context other than `NAME`", Destination: &k.ExpectContext},
		&cli.StringFlag{Name: "kube-apiserver", Category: group, Usage: "`URL` of the API server", Destination: &k.APIServer, EnvVars: []string{"HELM_KUBEAPISERVER"}},
		&cli.StringFlag{Name: "kube-token", Category: group, Usage: "bearer `TOKEN` to log in with", Destination: &k.Token, EnvVars: []string{"HELM_KUBETOKEN"}},
		&cli.StringFlag{Name: "kube-as-user", Category: group, Usage: "`USER` to impersonate", Destination: &k.AsUser, EnvVars: []string{"HELM_KUBEASUSER"}},
		&cli.GenericFlag{Name: "kube-as-group", Category: group, Usage: "`GROUP` to impersonate (may be repeated)", Value: e.groups(), EnvVars: []string{"HELM_KUBEASGROUPS"}},
		&cli.StringFlag{Name: "kube-ca-file", Category: group, Usage: "`FILE` with the certificate authority of the API server", Destination: &k.CAFile, EnvVars: []string{"HELM_KUBECAFILE"}},
		&cli.StringFlag{Name: "kube-tls-server-name", Category: group, Usage: "server `NAME` to expect in the API server's certificate", Destination: &k.TLSServerName, EnvVars: []string{"HELM_KUBETLS_SERVER_NAME"}},
		&cli.BoolFlag{Name: "kube-insecure-skip-tls-verify", Category: group, Usage: "don't verify the API server's certificate", Destination: &k.InsecureSkipTLSVerify, EnvVars: []string{"HELM_KUBEINSECURE_SKIP_TLS_VERIFY"}},
		&cli.GenericFlag{Name: "qps", Category: group, Usage: "maximum requests per second; 0 lets the API server set the pace", Value: (*float32Value)(&k.QPS), EnvVars: []string{"HELM_QPS"}},
		&cli.IntFlag{Name: "burst-limit", Category: group, Usage: "requests allowed above --qps for a short time", Destination: &k.Burst, EnvVars: []string{"HELM_BURST_LIMIT"}},
		&cli.StringFlag{Name: "registry-config", Category: group, Usage: "`FILE` with registry credentials", Destination: &e.files.RegistryConfig},
		&cli.StringFlag{Name: "repository-config", Category: group, Usage: "`FILE` with the list of chart repositories", Destination: &e.files.RepositoryConfig},
		&cli.StringFlag{Name: "repository-cache", Category: group, Usage: "`DIR` with cached repository indexes", Destination: &e.files.RepositoryCache},
		&cli.GenericFlag{Name: "content-cache", Category: group, Hidden: true, Value: &noOpFlag{e: e, name: "content-cache", why: "charts are not cached"}},
		&cli.GenericFlag{Name: "color", Aliases: []string{"colour"}, Category: group, Usage: "when to use colors: auto (on a terminal), always or never", Value: newChoice((*string)(&e.colour), "auto", "always", "never"), EnvVars: []string{"HELM_COLOR"}},
		&cli.BoolFlag{Name: "debug", Category: group, Usage: "print more details", Destination: &e.debug, EnvVars: []string{"HELM_DEBUG"}},
	}, klogFlags(e)...)
}

// outputFlag is -o of commands with a result.
func outputFlag(e *env) *cli.StringFlag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "output `FORMAT`: table, json, yaml", Value: "table", Destination: &e.format}
}

// action is the action of a command with at least minArgs and at most maxArgs arguments; -1 is any
// number. names says in errors what they are.
func action(minArgs, maxArgs int, names string, do func(ctx context.Context, args []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		args, command := c.Args().Slice(), commandPath(c)
		switch {
		case len(args) < minArgs:
			return usagef(command, "%q needs %s", c.App.Name+" "+command, names)
		case maxArgs >= 0 && len(args) > maxArgs:
			return withShellHint(usagef(command, "%q takes %s; unexpected argument %q", c.App.Name+" "+command, cmp.Or(names, "no arguments"), args[maxArgs]), args)
		}
		return do(c.Context, args)
	}
}

// withShellHint says where an argument too many may come from.
func withShellHint(err error, args []string) error {
	for _, arg := range args {
		if word := canonicalBool(arg); word == "true" || word == "false" {
			return program.WithHint(err, fmt.Sprintf("write the value of a switch after an equals sign: --wait=%s", arg))
		}
		if strings.Contains(arg, "=") {
			return program.WithHint(err, "the shell may have split a value with {…,…} or blanks: quote it, such as --set 'key={a,b}'")
		}
	}
	return err
}

// actionWithFormat is action for a command with -o: do gets the format too.
func actionWithFormat(e *env, minArgs, maxArgs int, names string, do func(ctx context.Context, args []string, format output.Format) error) cli.ActionFunc {
	return action(minArgs, maxArgs, names, func(ctx context.Context, args []string) error {
		format, err := e.outputFormat(output.ParseFormat)
		if err != nil {
			return err
		}
		return do(ctx, args, format)
	})
}

func printTo(w io.Writer, text string) error {
	_, err := fmt.Fprint(w, text)
	return err
}
