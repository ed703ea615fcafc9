package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"deployer/chart"
	"deployer/internal/view/output"
)

// buildVersion and buildCommit are set when linking a release.
var (
	buildVersion = "dev"
	buildCommit  = "" // else what Go knows of the repository counts
)

func versionCommand(e *env) *command {
	var short bool
	var format string
	return &command{
		name: "version", usage: "show the version of this program",
		steps: `If the program is called helm, it prints the Helm version that it replaces,
because scripts decide by it what they can use.`,
		examples: `deployer version
deployer version --template '{{.Version}}'`,
		flags: []*flag{
			{name: "short", usage: "print the version number only", is: usual | safe, value: toggle(&short)},
			{name: "template", usage: "Go `TEMPLATE` with .Version, .GitCommit, .GitTreeState and .GoVersion", is: usual | safe, value: text(&format)},
			{name: "client", also: "c", why: "there is only a client since Helm 3", welcome: []string{"true"}, value: noEffectSwitch()},
			outputFlag(e),
		},
		action: func(_ context.Context, _ []string) error {
			switch {
			case format != "":
				return e.printTemplate(e.streams.Out, format, e.call.build())
			case e.call.asHelm:
				return printTo(e.streams.Out, e.call.build().text(short)+"\n")
			case short:
				return printTo(e.streams.Out, buildVersion+"\n")
			}
			return e.printVersion()
		},
	}
}

func (c *console) printVersion() error {
	info := c.call.build()
	if c.format != output.FormatTable {
		return output.Encode(c.streams.Out, c.format, info)
	}
	return printTo(c.streams.Out, fmt.Sprintf("deployer %s (commit %s, %s, Helm engine %s, client-go %s)\n",
		info.Version, cmp.Or(info.GitCommit, "unknown"), info.GoVersion, info.Helm, info.ClientGo))
}

// printTemplate is --template: a Go template for data.
func (c *console) printTemplate(to io.Writer, text string, data any) error {
	t, err := template.New("--template").Funcs(sprig.TxtFuncMap()).Parse(text)
	if err != nil {
		return usagef("--template: %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, data); err != nil {
		return fmt.Errorf("--template: %w", err)
	}
	return printTo(to, out.String())
}

// buildFacts say what this binary was made of. --template has Helm's field names.
type buildFacts struct {
	Version      string `json:"version"`
	GitCommit    string `json:"commit"`
	GitTreeState string `json:"-"`
	GoVersion    string `json:"go"`
	Platform     string `json:"platform"`
	Helm         string `json:"helm"`
	ClientGo     string `json:"client_go"`
}

// build is this binary, with Helm's version when called helm. The commit is that of this program either way.
func (c call) build() buildFacts {
	b := buildFacts{Version: buildVersion, GitCommit: buildCommit, GitTreeState: "clean", GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if c.asHelm {
		b.Version = chart.HelmVersion
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && b.GitCommit == "" {
			b.GitCommit = s.Value
		}
	}
	for _, m := range info.Deps {
		switch m.Path {
		case "helm.sh/helm/v3":
			b.Helm = m.Version
		case "k8s.io/client-go":
			b.ClientGo = m.Version
		}
	}
	return b
}

// text is what helm version prints.
func (b buildFacts) text(short bool) string {
	switch {
	case !short:
		return fmt.Sprintf("version.BuildInfo{Version:%q, GitCommit:%q, GitTreeState:%q, GoVersion:%q}",
			b.Version, b.GitCommit, b.GitTreeState, b.GoVersion)
	case len(b.GitCommit) >= 7:
		return b.Version + "+g" + b.GitCommit[:7]
	}
	return b.Version
}

func envCommand(e *env) *command {
	return &command{
		name: "env", usage: "show the Helm files and settings in use", args: "[VARIABLE]", takes: "a variable",
		examples: `deployer env
deployer env HELM_REPOSITORY_CONFIG`,
		flags: []*flag{outputFlag(e)},
		action: func(_ context.Context, args []string) error {
			variables := e.helmVariables()
			var document any = variables
			text := ""
			for _, name := range slices.Sorted(maps.Keys(variables)) {
				text += fmt.Sprintf("%s=\"%s\"\n", name, variables[name])
			}
			if len(args) == 1 {
				document, text = variables[args[0]], variables[args[0]]+"\n"
			}
			if e.format != output.FormatTable {
				return output.Encode(e.streams.Out, e.format, document)
			}
			return printTo(e.streams.Out, text)
		},
	}
}

// helmVariables are what helm env shows, as this run has them.
func (e *env) helmVariables() map[string]string {
	out := e.files.EnvSettings().EnvVars()
	for _, f := range e.global {
		for _, name := range strings.Fields(f.env) {
			if f.value.current == nil {
				continue
			}
			if value := f.value.current(); value != "" && strings.Trim(value, "0.") != "" {
				out[name] = value
			}
		}
	}
	out["HELM_NAMESPACE"] = e.offlineNamespace()
	if e.kube.Kubeconfig != "" {
		out["KUBECONFIG"] = e.kube.Kubeconfig
	}
	return out
}
