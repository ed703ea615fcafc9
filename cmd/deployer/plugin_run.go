package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"deployer/internal/plugin"
	"deployer/internal/program"
	"deployer/internal/view/output"
)

// pluginsDisabled reports whether plugins are switched off.
// (helm.sh/helm/v3/cmd/helm/load_plugins.go)
func pluginsDisabled() bool { return os.Getenv("HELM_NO_PLUGINS") == "1" }

// parseCommandLine normalises a command line: that of a plugin when its first word is one,
// and no command of ours.
func (e *env) parseCommandLine(app *cli.App, args []string) (commandLine, error) {
	at := firstWord(app, args)
	if at < 0 || commandNamed(app.Commands, args[at]) != nil {
		return normalize(app, args)
	}
	word := args[at]
	p, err := plugin.FindByName(e.plugins().places().Plugins, word)
	switch {
	case err != nil && !pluginsDisabled():
		return commandLine{words: []string{word}}, err
	case p != nil && pluginsDisabled():
		return commandLine{words: []string{word}}, program.WithHint(fmt.Errorf("plugin %q isn't run: HELM_NO_PLUGINS is 1", word), "unset HELM_NO_PLUGINS")
	case p == nil:
		if err := pluginNotInstalled(word); err != nil {
			return commandLine{words: []string{word}}, err
		}
		return normalize(app, args[:at+1]) // flags of a command that nobody knows are no error of their own
	}
	c := e.plugins().command(p)
	app.Commands = append(app.Commands, c)
	own, theirs, err := splitPluginFlags(append(slices.Clone(args[1:at]), args[at+1:]...))
	if err != nil {
		return commandLine{words: []string{word}}, &usageError{err: err}
	}
	line := append(append([]string{args[0], word}, own...), "--")
	return commandLine{args: append(line, theirs...), words: []string{word}, flags: own, leaf: c}, nil
}

// firstWord is the place of the first word of a command line that is neither a
// flag nor the value of one; -1 without one.
func firstWord(app *cli.App, args []string) int {
	for i := 1; i < len(args); i++ {
		name := strings.TrimLeft(args[i], "-")
		switch {
		case args[i] == "--":
			return -1
		case name == args[i], name == "":
			return i
		}
		if f := findFlag(app.Commands, name); f != nil && !isBool(f) {
			i++
		}
	}
	return -1
}

// pluginFlags are the flags of Helm's that a plugin doesn't get, but finds in its
// environment.
// (helm.sh/helm/v3/cmd/helm/load_plugins.go, manuallyProcessArgs)
var pluginFlags = map[string]string{
	"-n": "--namespace", "--namespace": "--namespace", "--kube-context": "--kube-context", "--kubeconfig": "--kubeconfig",
	"--kube-apiserver": "--kube-apiserver", "--kube-token": "--kube-token", "--kube-as-user": "--kube-as-user",
	"--kube-as-group": "--kube-as-group", "--kube-ca-file": "--kube-ca-file", "--kube-tls-server-name": "--kube-tls-server-name",
	"--registry-config": "--registry-config", "--repository-cache": "--repository-cache", "--repository-config": "--repository-config",
}

// splitPluginFlags takes Helm's flags out of the arguments of a plugin, wherever they
// stand.
func splitPluginFlags(args []string) (own, theirs []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, attached := strings.Cut(args[i], "=")
		flag, known := pluginFlags[name]
		switch {
		case args[i] == "--debug", name == "--kube-insecure-skip-tls-verify":
			own = append(own, args[i])
		case name == "--burst-limit" || name == "--qps": // Helm reads these and -nNAMESPACE, and leaves them
			value := args[i:min(i+2, len(args))]
			if attached {
				value = args[i : i+1]
			}
			own, theirs = append(own, strings.Join(value, "=")), append(theirs, value...)
			i += len(value) - 1
		case !known && strings.HasPrefix(name, "-n") && !slices.Contains(args[:i], "--"):
			own, theirs = append(own, "--namespace="+args[i][len("-n"):]), append(theirs, args[i])
		case !known:
			theirs = append(theirs, args[i])
		case attached:
			own = append(own, flag+"="+value)
		case i+1 == len(args):
			return nil, nil, fmt.Errorf("flag %s needs a value", name)
		default:
			i++
			own = append(own, flag+"="+args[i])
		}
	}
	return own, theirs, nil
}

// command is a plugin as a command.
func (ps plugins) command(p *plugin.Plugin) *cli.Command {
	c := &cli.Command{
		Name: p.Name, Usage: cmp.Or(p.Usage, fmt.Sprintf("the %q plugin", p.Name)), Category: pluginGroup, ArgsUsage: "[arguments]",
		Description: p.Description,
		Action:      action(0, -1, "", func(ctx context.Context, args []string) error { return ps.run(ctx, p, args) }),
	}
	setUpCommand(ps.env, c, p.Name, globalFlags(ps.env))
	return c
}

// A pluginError is a plugin that has ended with a code of its own.
type pluginError struct {
	name string
	code int
}

func (p *pluginError) Error() string { return fmt.Sprintf("plugin %q exited with error", p.name) }

// run runs a plugin in place of this program: it inherits our streams, gets our signals,
// and its exit code is ours.
func (ps plugins) run(ctx context.Context, p *plugin.Plugin, args []string) error {
	if p.UseTunnelDeprecated && (!ps.call.asHelm || ps.debug) { // helm-diff has it, and scripts look at its standard error
		ps.warn(fmt.Sprintf("plugin %q asks for a tunnel to Tiller (useTunnel), which was part of Helm 2: there is no tunnel", p.Name))
	}
	cmd, err := ps.host().Command(context.WithoutCancel(ctx), p, args)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	ps.stopSignals()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("plugin %q: %w", p.Name, err)
	}
	ended := make(chan struct{})
	go forwardSignals(signals, cmd.Process, ended, ps.streams.OutTTY || ps.streams.ErrTTY || output.IsTerminal(ps.streams.In))
	err = cmd.Wait()
	close(ended)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &pluginError{name: p.Name, code: processExitCode(exit)}
	}
	if err != nil {
		return fmt.Errorf("plugin %q: %w", p.Name, err)
	}
	return nil
}

// forwardSignals forwards signals to a process until it has ended. A terminal has already sent
// it the signals of typed keys.
func forwardSignals(signals <-chan os.Signal, to *os.Process, ended <-chan struct{}, onTerminal bool) {
	for {
		select {
		case <-ended:
			return
		case s := <-signals:
			if onTerminal && (s == syscall.SIGINT || s == syscall.SIGQUIT) {
				continue
			}
			_ = to.Signal(s) // it may have ended in this moment
		}
	}
}

// processExitCode is the exit code of a process; that of one which a signal has ended is
// what a shell makes of it.
func processExitCode(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// helmBinary is what plugins find in HELM_BIN: this program under the name helm,
// so that what they run has Helm's flags, defaults and answers. When it was
// called by another name, a link is made in the cache.
func (ps plugins) helmBinary(cache string) string {
	if ps.call.asHelm {
		if path, err := exec.LookPath(ps.call.path); err == nil {
			return absolutePath(path)
		}
		return ps.call.path
	}
	self, err := os.Executable()
	if err != nil {
		return ps.call.path
	}
	link := filepath.Join(cache, "deployer", fmt.Sprintf("%x", sha256.Sum256([]byte(self)))[:12], "helm")
	if err := linkTo(self, link); err != nil {
		ps.warn(fmt.Sprintf("HELM_BIN has this program's own name for plugins, because creating a link named helm failed: %v", err))
		return self
	}
	return absolutePath(link)
}

// linkTo makes a link, unless it is there. Runs at the same time may make the
// same.
func linkTo(target, link string) error {
	if at, err := os.Readlink(link); err == nil && at == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	made := fmt.Sprintf("%s.%d", link, os.Getpid())
	if err := os.Symlink(target, made); err != nil {
		return err
	}
	return os.Rename(made, link)
}
