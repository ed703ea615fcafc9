package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"deployer/internal/plugin"
	"deployer/internal/view/output"
)

func pluginCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "plugin", Usage: "manage Helm's plugins",
		Subcommands: []*cli.Command{pluginInstall(e), pluginList(e), pluginUpdate(e), pluginUninstall(e)},
	}
}

// pluginPlaces are where Helm keeps plugins.
func (e *env) pluginPlaces() plugin.Places {
	variables := e.helmFiles().EnvSettings().EnvVars()
	return plugin.Places{Plugins: variables["HELM_PLUGINS"], Cache: variables["HELM_CACHE_HOME"]}
}

// pluginHost is what plugins and their hooks inherit.
func (e *env) pluginHost() plugin.Host {
	variables := e.helmVariables()
	variables["HELM_BIN"] = e.helmBinary(variables["HELM_CACHE_HOME"])
	h := plugin.Host{Env: variables, In: e.streams.In}
	h.Out, h.Err = e.streams.Unfiltered()
	if e.global.debug {
		h.Verbose = func(text string) { fmt.Fprintf(e.streams.Err, "[debug] %s\n", text) }
	}
	return h
}

func pluginInstall(e *env) *cli.Command {
	var version string
	return &cli.Command{
		Name: "install", Aliases: []string{"add"}, Usage: "install a plugin", ArgsUsage: "PATH|URL",
		Description: `Installs a plugin from a directory (as a link), from a .tgz or .tar.gz archive
or its URL, or from a repository that git can clone, and runs its install hook.
A plugin that can't be used is removed again.

Examples:
  deployer plugin install https://github.com/databus23/helm-diff --version v3.15.11
  deployer plugin install ./helm-mine

Exit codes: 0 done; 1 failed, nothing is installed`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "version", Usage: "`VERSION` in the repository: a tag, branch, commit or range (default: the newest)", Destination: &version},
		},
		Action: action(1, 1, "a path or URL", func(ctx context.Context, args []string) error {
			p, err := e.pluginHost().Install(ctx, e.pluginPlaces(), args[0], version)
			if err != nil {
				return err
			}
			if commandNamed(commands(e), p.Name) != nil {
				e.warn(fmt.Sprintf("plugin %q can't be called: %s has a command of that name", p.Name, e.call.name))
			}
			return printTo(e.streams.Out, fmt.Sprintf("Installed plugin: %s\n", p.Name))
		}),
	}
}

func pluginList(e *env) *cli.Command {
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list installed plugins",
		Description: `Examples:
  deployer plugin list

Exit codes: 0 done, even if there are none; 1 a plugin is broken`,
		Action: action(0, 0, "", func(_ context.Context, _ []string) error {
			found, broken := plugin.Find(e.pluginPlaces().Plugins)
			errs := make([]error, len(broken))
			for i, b := range broken {
				errs[i] = b
			}
			rows := [][]string{}
			for _, p := range found {
				rows = append(rows, []string{p.Name, p.Version, p.Description})
			}
			return errors.Join(output.Table(e.streams.Out, []string{"NAME", "VERSION", "DESCRIPTION"}, rows), errors.Join(errs...))
		}),
	}
}

func pluginUpdate(e *env) *cli.Command {
	return &cli.Command{
		Name: "update", Aliases: []string{"up"}, Usage: "update plugins", ArgsUsage: "NAME...",
		Description: `Updates plugins that were cloned to their newest version, and runs their update
hooks. A plugin that was installed with --version stays at that version. If an
update fails, the plugin stays as it was.

Examples:
  deployer plugin update diff

Exit codes: 0 done; 1 failed`,
		Action: action(1, -1, "a plugin name", func(ctx context.Context, names []string) error {
			return e.forEachPlugin(ctx, names, "update", "Updated", func(p *plugin.Plugin) error {
				return e.pluginHost().Update(ctx, e.pluginPlaces(), p)
			})
		}),
	}
}

func pluginUninstall(e *env) *cli.Command {
	return &cli.Command{
		Name: "uninstall", Aliases: []string{"rm", "remove"}, Usage: "uninstall plugins", ArgsUsage: "NAME...",
		Description: `Runs the plugins' delete hooks and deletes their files. For a plugin that was
installed from a directory, it deletes the link only.

Examples:
  deployer plugin uninstall diff

Exit codes: 0 done; 1 failed`,
		Action: action(1, -1, "a plugin name", func(ctx context.Context, names []string) error {
			return e.forEachPlugin(ctx, names, "uninstall", "Uninstalled", func(p *plugin.Plugin) error {
				return e.pluginHost().Uninstall(ctx, p)
			})
		}),
	}
}

// forEachPlugin does the same with each plugin that a command line names. One that
// fails doesn't keep the others from it.
func (e *env) forEachPlugin(ctx context.Context, names []string, verb, done string, do func(*plugin.Plugin) error) error {
	var failed []error
	for _, name := range slices.Compact(names) {
		if ctx.Err() != nil {
			return errors.Join(append(failed, context.Cause(ctx))...)
		}
		p, err := plugin.FindByName(e.pluginPlaces().Plugins, name)
		var broken *plugin.BrokenError
		if errors.As(err, &broken) && verb == "uninstall" {
			p, err = &plugin.Plugin{Dir: broken.Dir}, nil // without its hook, which nobody can read
		}
		switch {
		case err != nil:
		case p == nil:
			//lint:ignore ST1005 Helm's words
			failed = append(failed, fmt.Errorf("Plugin: %s not found", name))
			continue
		default:
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

// installedPlugins are those that can be called: none with HELM_NO_PLUGINS=1, as
// in Helm, and none that has the name of a command.
func (e *env) installedPlugins(commands []*cli.Command) []*plugin.Plugin {
	if pluginsDisabled() {
		return nil
	}
	found, _ := plugin.Find(e.pluginPlaces().Plugins)
	return slices.DeleteFunc(found, func(p *plugin.Plugin) bool { return commandNamed(commands, p.Name) != nil })
}

// addPlugins puts the installed plugins among the commands, for help.
func (e *env) addPlugins(app *cli.App) {
	for _, p := range e.installedPlugins(app.Commands) {
		app.Commands = append(app.Commands, e.pluginCommandOf(p))
	}
}

// absolutePath is a path that stays right when a plugin changes its directory.
func absolutePath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
