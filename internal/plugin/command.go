package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strings"

	helmplugin "helm.sh/helm/v3/pkg/plugin"

	"deployer/internal/program"
)

// A Host has the environment and streams that plugins inherit.
type Host struct {
	Env     map[string]string // Helm's variables, such as HELM_BIN
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Verbose func(string) // called for each step; may be nil
}

func (h Host) verbose(format string, args ...any) {
	if h.Verbose != nil {
		h.Verbose(fmt.Sprintf(format, args...))
	}
}

// variables returns the environment variables that are set for a plugin.
func (h Host) variables(p *Plugin) map[string]string {
	out := map[string]string{}
	maps.Copy(out, h.Env)
	out["HELM_PLUGIN_NAME"], out["HELM_PLUGIN_DIR"] = p.Name, p.Dir
	return out
}

// newCommand makes a process of an expanded command line. Variables are those of
// the plugin, then those of this process.
func (h Host) newCommand(ctx context.Context, p *Plugin, main string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, main, args...)
	cmd.Env = os.Environ()
	for name, value := range h.variables(p) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = h.In, h.Out, h.Err
	return cmd
}

// Command is the process that runs a plugin with arguments, not started yet.
// An error says that the plugin has no command for this platform, or what keeps its file from being executed.
func (h Host) Command(ctx context.Context, p *Plugin, args []string) (*exec.Cmd, error) {
	main, own, err := h.resolve(p)
	if err != nil {
		return nil, err
	}
	if !p.IgnoreFlags {
		own = append(own, args...)
	}
	return h.Program(ctx, p, main, own)
}

// Program is the process that runs a file of a plugin, such as the one that
// completes its command lines.
func (h Host) Program(ctx context.Context, p *Plugin, path string, args []string) (*exec.Cmd, error) {
	if err := checkExecutable(p, path); err != nil {
		return nil, err
	}
	return h.newCommand(ctx, p, path, args), nil
}

// resolve returns the program and the arguments in a plugin's plugin.yaml.
func (h Host) resolve(p *Plugin) (string, []string, error) {
	commands := p.PlatformCommand
	if len(commands) == 0 && p.Metadata.Command != "" {
		commands = []helmplugin.PlatformCommand{{Command: p.Metadata.Command}}
	}
	if c := commandForThisPlatform(commands); c != nil {
		words := h.expanded(p, c)
		return words[0], words[1:], nil
	}
	if len(commands) == 0 {
		return "", nil, fmt.Errorf("plugin %q has no command: its plugin.yaml has neither command nor platformCommand", p.Name)
	}
	var platforms []string
	for _, c := range commands {
		platforms = append(platforms, strings.Trim(c.OperatingSystem+"/"+c.Architecture, "/"))
	}
	return "", nil, fmt.Errorf("plugin %q has no command for %s/%s, but for %s", p.Name, runtime.GOOS, runtime.GOARCH, strings.Join(platforms, ", "))
}

// commandForThisPlatform chooses a command as Helm does: that of the system and the
// architecture, else the first of the system, else the first of neither. Nil
// when there is none.
// (helm.sh/helm/v3/pkg/plugin/plugin.go, getPlatformCommand)
func commandForThisPlatform(commands []helmplugin.PlatformCommand) *helmplugin.PlatformCommand {
	var best *helmplugin.PlatformCommand
	for i := range commands {
		c := &commands[i]
		system, arch := strings.EqualFold(c.OperatingSystem, runtime.GOOS), strings.EqualFold(c.Architecture, runtime.GOARCH)
		switch {
		case c.Command == "":
		case system && arch:
			return c
		case c.Architecture != "" || c.OperatingSystem != "" && !system:
		case best == nil, best.OperatingSystem == "" && system:
			best = c
		}
	}
	return best
}

// expanded is a command line with its variables replaced: those of the plugin, then those of this process. The
// command is cut at spaces, as in Helm: no shell reads it.
func (h Host) expanded(p *Plugin, c *helmplugin.PlatformCommand) []string {
	variables := h.variables(p)
	var out []string
	for _, word := range append(strings.Split(c.Command, " "), c.Args...) {
		out = append(out, os.Expand(word, func(name string) string {
			if value, ok := variables[name]; ok {
				return value
			}
			return os.Getenv(name)
		}))
	}
	return out
}

// checkExecutable returns why a program can't be started. The system's own error would name
// neither the plugin nor a remedy.
func checkExecutable(p *Plugin, main string) error {
	path, err := exec.LookPath(main)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return program.WithHint(fmt.Errorf("plugin %q: %s is not executable", p.Name, main), "chmod +x "+main)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return program.WithHint(fmt.Errorf("plugin %q: its command %s does not exist", p.Name, main), "install the plugin again, or what it needs")
	}
	return fmt.Errorf("plugin %q: its command %s can't be run: %w", p.Name, path, err)
}

// runHook runs a plugin's hook for install, update or delete, if there is one for this
// platform.
// (helm.sh/helm/v3/cmd/helm/plugin.go, runHook)
func (h Host) runHook(ctx context.Context, p *Plugin, event string) error {
	var words []string
	if platform := p.PlatformHooks[event]; len(platform) > 0 {
		if c := commandForThisPlatform(platform); c != nil {
			words = h.expanded(p, c)
		}
	} else if line := p.Hooks[event]; line != "" {
		words = []string{"sh", "-c", line}
	}
	if len(words) == 0 {
		return nil
	}
	h.verbose("running the %s hook of plugin %s: %s", event, p.Name, strings.Join(words, " "))
	cmd := h.newCommand(ctx, p, words[0], words[1:])
	cmd.Stdin = nil
	err := cmd.Run()
	exit, hasExited := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case hasExited:
		return fmt.Errorf("plugin %s hook for %q exited with error (%s)", event, p.Name, exit)
	case errors.Is(err, fs.ErrPermission):
		return program.WithHint(fmt.Errorf("plugin %s hook for %q: %s is not executable", event, p.Name, words[0]), "chmod +x "+words[0])
	case err != nil:
		return fmt.Errorf("plugin %s hook for %q: %w", event, p.Name, err)
	}
	return nil
}
