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

	"deployer/internal/plugin"
	"deployer/internal/program"
	"deployer/internal/view/output"
)

// pluginsDisabled reports whether plugins are switched off.
// (helm.sh/helm/v3/cmd/helm/load_plugins.go)
func pluginsDisabled() bool { return os.Getenv("HELM_NO_PLUGINS") == "1" }

// parseCommandLine reads a command line: that of a plugin when its first word is one, and no command of ours.
func (e *env) parseCommandLine(words []string) (commandLine, error) {
	p, at, err := e.calledPlugin(words)
	if at < 0 {
		return parse(e.commands, words)
	}
	word := words[at]
	unparsed := commandLine{words: []string{word}}
	switch {
	case err != nil && !pluginsDisabled():
		return unparsed, err
	case p != nil && pluginsDisabled():
		return unparsed, program.WithHint(fmt.Errorf("plugin %q isn't run: HELM_NO_PLUGINS is 1", word), "unset HELM_NO_PLUGINS")
	case p == nil && commandNamed(e.commands, word) != nil && !e.call.asHelm && !isForHelmDiff(words[at+1:]):
		return parse(e.commands, words)
	case p == nil:
		if err := pluginNotInstalled(word); err != nil {
			return unparsed, err
		}
		return parse(e.commands, words[:at+1]) // flags of a command that nobody knows are no error of their own
	}
	own, theirs, err := e.splitPluginFlags(append(slices.Clone(words[:at]), words[at+1:]...))
	if err != nil {
		return unparsed, commandLine{}.withUsageHint(err)
	}
	return commandLine{words: unparsed.words, leaf: e.commandOfPlugin(p), flags: own, arguments: theirs}, nil
}

// isForHelmDiff reports whether words are a command of the plugin diff.
func isForHelmDiff(words []string) bool {
	return len(words) > 0 && slices.Contains([]string{"upgrade", "release", "revision", "rollback", "version"}, words[0])
}

// calledPlugin is the place of the first word of a command line that is neither a flag nor the value of one, and the plugin of
// that name, if there is one. Where a command of ours comes first, or nothing, the place is -1.
func (e *env) calledPlugin(words []string) (p *plugin.Plugin, at int, err error) {
	for at, word := range plainWords(words, flagTable(allFlags(e.commands))) {
		if reservedCommand(e.commands, word) != nil {
			break
		}
		p, err = plugin.FindByName(e.pluginPlaces().Plugins, word)
		return p, at, err
	}
	return nil, -1, nil
}

// splitPluginFlags takes the flags that a plugin doesn't get, but finds in its environment, out of its arguments,
// wherever they stand. (helm.sh/helm/v3/cmd/helm/load_plugins.go, manuallyProcessArgs)
func (e *env) splitPluginFlags(args []string) (own []givenFlag, theirs []string, err error) {
	known := flagTable(e.global)
	for i := 0; i < len(args); i++ {
		name, value, attached := strings.Cut(args[i], "=")
		word := strings.TrimLeft(name, "-")
		f := known[word]
		if name != withDashes(word) {
			f = nil // -namespace
		}
		switch {
		case f != nil && f.is.has(alsoPlugins): // Helm reads these and -nNAMESPACE, and leaves them
			theirs = append(theirs, args[i])
			if !attached && i+1 < len(args) {
				i++
				value = args[i]
				theirs = append(theirs, value)
			}
			own = append(own, givenFlag{f, value})
		case f == nil && strings.HasPrefix(name, "-n") && !slices.Contains(args[:i], "--"):
			own, theirs = append(own, givenFlag{known["n"], args[i][len("-n"):]}), append(theirs, args[i])
		case f == nil || !f.is.has(notForPlugins) || f.name == "debug" && attached:
			theirs = append(theirs, args[i])
		case attached:
			own = append(own, givenFlag{f, value})
		case f.value.bare != "":
			own = append(own, givenFlag{f, f.value.bare})
		case i+1 == len(args):
			return nil, nil, fmt.Errorf("flag %s needs a value", name)
		default:
			i++
			own = append(own, givenFlag{f, args[i]})
		}
	}
	return own, theirs, nil
}

// commandOfPlugin is a plugin as a command.
func (e *env) commandOfPlugin(p *plugin.Plugin) *command {
	return &command{
		name: p.Name, usage: cmp.Or(p.Usage, fmt.Sprintf("the %q plugin", p.Name)), group: pluginGroup, args: "[arguments]",
		steps: p.Description, flags: e.global,
		action: func(ctx context.Context, args []string) error { return e.runPlugin(ctx, p, args) },
	}
}

// A pluginError is a plugin that has ended with a code of its own.
type pluginError struct {
	name string
	code int
}

func (p *pluginError) Error() string { return fmt.Sprintf("plugin %q exited with error", p.name) }

// runPlugin runs a plugin in place of this program: it inherits our streams, gets our signals,
// and its exit code is ours.
func (e *env) runPlugin(ctx context.Context, p *plugin.Plugin, args []string) error {
	if p.UseTunnelDeprecated && (!e.call.asHelm || e.files.Debug) { // helm-diff has it, and scripts look at its standard error
		e.warn(fmt.Sprintf("plugin %q asks for a tunnel to Tiller (useTunnel), which was part of Helm 2: there is no tunnel", p.Name))
	}
	e.warnOfBothCommands(p)
	if e.kube.ExpectContext != "" { // a plugin connects by itself
		if _, err := e.connect(); err != nil {
			return err
		}
	}
	cmd, err := e.pluginHost().Command(context.WithoutCancel(ctx), p, args)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer func() {
		signal.Stop(signals)
		close(signals)
	}()
	e.stopSignals()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("plugin %q: %w", p.Name, err)
	}
	go forwardSignals(signals, cmd.Process, e.streams.OutTTY || e.streams.ErrTTY || output.IsTerminal(e.streams.In))
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &pluginError{name: p.Name, code: processExitCode(exit)}
	}
	if err != nil {
		return fmt.Errorf("plugin %q: %w", p.Name, err)
	}
	return nil
}

// warnOfBothCommands warns, as Helm does, of a plugin.yaml of which only one part counts.
func (e *env) warnOfBothCommands(p *plugin.Plugin) {
	if len(p.PlatformCommand) > 0 && p.Metadata.Command != "" {
		e.printWarning(fmt.Sprintf("both 'platformCommand' and 'command' are set in %q (this will become an error in a future Helm version)", filepath.Join(p.Dir, "plugin.yaml")))
	}
}

// forwardSignals forwards signals to a process, until there are no more. A terminal has already sent
// it the signals of typed keys.
func forwardSignals(signals <-chan os.Signal, to *os.Process, onTerminal bool) {
	for s := range signals {
		if !onTerminal || s != syscall.SIGINT && s != syscall.SIGQUIT {
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
func (e *env) helmBinary(cache string) string {
	if e.call.asHelm {
		if path, err := exec.LookPath(e.call.path); err == nil {
			return absolutePath(path)
		}
		return e.call.path
	}
	self, err := os.Executable()
	if err != nil {
		return e.call.path
	}
	link := filepath.Join(cache, "deployer", fmt.Sprintf("%x", sha256.Sum256([]byte(self)))[:12], "helm")
	if err := linkTo(self, link); err != nil {
		e.warn(fmt.Sprintf("HELM_BIN has this program's own name for plugins, because creating a link named helm failed: %v", err))
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

// A knownPlugin is one that people have and that isn't installed here.
type knownPlugin struct {
	source  string // what plugin install takes
	instead string // what does the same without it; empty when nothing does
}

// knownPlugins by the word they are called by. Nothing that is suggested deletes
// or overrides anything.
var knownPlugins = map[string]knownPlugin{
	"2to3":             {"https://github.com/helm/helm-2to3", ""},
	"cm-push":          {"https://github.com/chartmuseum/helm-push", "for an OCI registry: " + program.Name + " push CHART oci://REGISTRY/PATH"},
	"dashboard":        {"https://github.com/komodorio/helm-dashboard", program.Name + " list, " + program.Name + " status NAME, " + program.Name + " history NAME"},
	"diff":             {"https://github.com/databus23/helm-diff", program.Name + " plan NAME CHART"},
	"drift":            {"https://github.com/nikhilsbhat/helm-drift", program.Name + " plan NAME --drift"},
	"gcs":              {"https://github.com/hayorov/helm-gcs", "for an OCI registry: " + program.Name + " push CHART oci://REGISTRY/PATH"},
	"git":              {"https://github.com/aslafy-z/helm-git", "a chart in a directory: git clone, then " + program.Name + " upgrade NAME ./PATH"},
	"images":           {"https://github.com/nikhilsbhat/helm-images", program.Name + " template CHART, which shows them all"},
	"mapkubeapis":      {"https://github.com/helm/helm-mapkubeapis", "no record has to be changed: an upgrade finds objects under whatever version the cluster has"},
	"push-artifactory": {"https://github.com/belitre/helm-push-artifactory-plugin", "for an OCI registry: " + program.Name + " push CHART oci://REGISTRY/PATH"},
	"s3":               {"https://github.com/hypnoglow/helm-s3", "for an OCI registry: " + program.Name + " push CHART oci://REGISTRY/PATH"},
	"schema":           {"https://github.com/losisin/helm-values-schema-json", ""},
	"schema-gen":       {"https://github.com/karuppiah7890/helm-schema-gen", ""},
	"secrets":          {"https://github.com/jkroepke/helm-secrets", program.Name + " upgrade NAME CHART -f ENCRYPTED: values files of SOPS and age are decrypted"},
	"unittest":         {"https://github.com/helm-unittest/helm-unittest", ""},
}

// pluginNotInstalled is the error for a known plugin that isn't there; nil for any
// other word.
func pluginNotInstalled(word string) error {
	known, ok := knownPlugins[word]
	if !ok {
		return nil
	}
	hint := "to install it:     " + program.Name + " plugin install " + known.source
	if known.instead != "" {
		hint = "without a plugin:  " + known.instead + "\n" + hint
	}
	return program.WithHint(fmt.Errorf("%q is a plugin that is not installed", word), hint)
}
