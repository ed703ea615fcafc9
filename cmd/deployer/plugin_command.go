package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"deployer/internal/plugin"
	"deployer/internal/view/output"
)

func pluginCommand(e *env) *command {
	return &command{
		name: "plugin", usage: "manage Helm's plugins",
		commands: []*command{pluginInstall(e), pluginList(e), pluginUpdate(e), pluginUninstall(e)},
	}
}

// pluginPlaces are where Helm keeps plugins.
func (e *env) pluginPlaces() plugin.Places {
	variables := e.files.EnvSettings().EnvVars()
	return plugin.Places{Plugins: variables["HELM_PLUGINS"], Cache: variables["HELM_CACHE_HOME"]}
}

// pluginHost is what plugins and their hooks inherit.
func (e *env) pluginHost() plugin.Host {
	variables := e.helmVariables()
	variables["HELM_BIN"] = e.helmBinary(variables["HELM_CACHE_HOME"])
	h := plugin.Host{Env: variables, In: e.streams.In}
	h.Out, h.Err = e.streams.Unfiltered()
	if e.files.Debug {
		h.Verbose = func(text string) { fmt.Fprintf(e.streams.Err, "[debug] %s\n", output.WithoutPasswords(text)) }
	}
	return h
}

func pluginInstall(e *env) *command {
	var version string
	return &command{
		name: "install", is: changes, also: "add", usage: "install a plugin", args: "PATH|URL", takes: "a path or URL",
		steps: `Installs a plugin from a directory (as a link), from a .tgz or .tar.gz archive
or its URL, or from a repository that git can clone, and runs its install hook.
A plugin that can't be used is removed again.`,
		examples: `deployer plugin install https://github.com/databus23/helm-diff --version v3.15.11
deployer plugin install ./helm-mine`,
		codes: "0 done; 1 failed, nothing is installed",
		flags: []*flag{
			{name: "version", usage: "`VERSION` in the repository: a tag, branch, commit or range (default: the newest)", is: common | safe | noVariable, value: text(&version)},
		},
		action: func(ctx context.Context, args []string) error {
			p, err := e.pluginHost().Install(ctx, e.pluginPlaces(), args[0], version)
			if err != nil {
				return err
			}
			if reservedCommand(e.commands, p.Name) != nil {
				e.warn(fmt.Sprintf("plugin %q can't be called: %s has a command of that name", p.Name, e.call.name))
			}
			return printTo(e.streams.Out, fmt.Sprintf("Installed plugin: %s\n", p.Name))
		},
	}
}

func pluginList(e *env) *command {
	return &command{
		name: "list", also: "ls", usage: "list installed plugins",
		examples: "deployer plugin list -o json",
		codes:    "0 done, even if there are none; 1 a plugin is broken",
		flags:    []*flag{outputFlag(e)},
		action: func(_ context.Context, _ []string) error {
			found, broken := plugin.Find(e.pluginPlaces().Plugins)
			rows, list := [][]string{}, []map[string]string{}
			for _, p := range found {
				e.warnOfBothCommands(p)
				rows = append(rows, []string{p.Name, p.Version, p.Description})
				list = append(list, map[string]string{"name": p.Name, "version": p.Version, "description": p.Description})
			}
			var errs []error
			if e.format == output.FormatTable {
				errs = append(errs, output.Table(e.streams.Out, []string{"NAME", "VERSION", "DESCRIPTION"}, rows))
			} else {
				errs = append(errs, output.Encode(e.streams.Out, e.format, list))
			}
			for _, b := range broken {
				errs = append(errs, b)
			}
			return errors.Join(errs...)
		},
	}
}

func pluginUpdate(e *env) *command {
	return &command{
		name: "update", is: changes, also: "up", usage: "update plugins", args: "NAME...", takes: "a plugin name", complete: "PLUGIN...",
		steps: `Updates plugins that were cloned to their newest version, and runs their update
hooks. A plugin that was installed with --version stays at that version. If an
update fails, the plugin stays as it was.`,
		examples: "deployer plugin update diff",
		action: func(ctx context.Context, names []string) error {
			return e.forEachPlugin(ctx, names, "update", "Updated", func(p *plugin.Plugin) error {
				return e.pluginHost().Update(ctx, e.pluginPlaces(), p)
			})
		},
	}
}

func pluginUninstall(e *env) *command {
	return &command{
		name: "uninstall", is: changes, also: "rm remove", usage: "uninstall plugins", args: "NAME...", takes: "a plugin name", complete: "PLUGIN...",
		steps: `Runs the plugins' delete hooks and deletes their files. For a plugin that was
installed from a directory, it deletes the link only.`,
		examples: "deployer plugin uninstall diff",
		action: func(ctx context.Context, names []string) error {
			return e.forEachPlugin(ctx, names, "uninstall", "Uninstalled", func(p *plugin.Plugin) error {
				return e.pluginHost().Uninstall(ctx, p)
			})
		},
	}
}

// forEachPlugin does the same with each plugin that a command line names, once. One that
// fails doesn't keep the others from it.
func (e *env) forEachPlugin(ctx context.Context, names []string, verb, done string, do func(*plugin.Plugin) error) error {
	var failed []error
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue // done already
		}
		if ctx.Err() != nil {
			return errors.Join(append(failed, context.Cause(ctx))...)
		}
		p, err := plugin.FindByName(e.pluginPlaces().Plugins, name)
		if broken, ok := errors.AsType[*plugin.BrokenError](err); ok && verb == "uninstall" {
			p, err = &plugin.Plugin{Dir: broken.Dir}, nil // without its hook, which nobody can read
		}
		if err == nil && p == nil {
			//lint:ignore ST1005 Helm's words
			failed = append(failed, fmt.Errorf("Plugin: %s not found", name))
			continue
		}
		if err == nil {
			err = do(p)
		}
		if err != nil {
			//lint:ignore ST1005 Helm's words
			failed = append(failed, fmt.Errorf("Failed to %s plugin %s, got error (%w)", verb, name, err))
			continue
		}
		if err := printTo(e.streams.Out, fmt.Sprintf("%s plugin: %s\n", done, name)); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// callablePlugins are those that can be called: none with HELM_NO_PLUGINS=1, as
// in Helm, and none that has the name of a command.
func (e *env) callablePlugins(commands []*command) []*plugin.Plugin {
	if pluginsDisabled() {
		return nil
	}
	found, _ := plugin.Find(e.pluginPlaces().Plugins)
	return slices.DeleteFunc(found, func(p *plugin.Plugin) bool { return reservedCommand(commands, p.Name) != nil })
}

// absolutePath is a path that stays right when a plugin changes its directory.
func absolutePath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
