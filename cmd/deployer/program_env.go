package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"deployer/internal/view/output"
)

func envCommand(e *env) *command {
	return &command{
		name: "env", usage: "show the Helm files and settings in use", args: "[VARIABLE]",
		examples: `deployer env
deployer env HELM_REPOSITORY_CONFIG`,
		flags: []*flag{outputFlag(e)},
		action: withFormat(e, 0, 1, "a variable", func(_ context.Context, args []string, format output.Format) error {
			variables := e.helmVariables()
			switch {
			case format != output.FormatTable && len(args) == 1:
				return output.Encode(e.streams.Out, format, variables[args[0]])
			case format != output.FormatTable:
				return output.Encode(e.streams.Out, format, variables)
			case len(args) == 1:
				return printTo(e.streams.Out, variables[args[0]]+"\n")
			}
			text := ""
			for _, name := range slices.Sorted(maps.Keys(variables)) {
				text += fmt.Sprintf("%s=\"%s\"\n", name, variables[name])
			}
			return printTo(e.streams.Out, text)
		}),
	}
}

// helmVariables are what helm env shows, as this run has them.
func (e *env) helmVariables() map[string]string {
	out := e.helmFiles().EnvSettings().EnvVars()
	k := e.kube
	out["HELM_NAMESPACE"] = e.offlineNamespace()
	out["HELM_DEBUG"] = fmt.Sprint(e.debug)
	out["HELM_KUBEINSECURE_SKIP_TLS_VERIFY"] = fmt.Sprint(k.InsecureSkipTLSVerify)
	if k.QPS != 0 {
		out["HELM_QPS"] = fmt.Sprintf("%.2f", k.QPS)
	}
	if k.Burst != 0 {
		out["HELM_BURST_LIMIT"] = fmt.Sprint(k.Burst)
	}
	for name, value := range map[string]string{
		"HELM_KUBECONTEXT":         k.Context,
		"HELM_KUBETOKEN":           k.Token,
		"HELM_KUBEASUSER":          k.AsUser,
		"HELM_KUBEASGROUPS":        strings.Join(k.AsGroups, ","),
		"HELM_KUBEAPISERVER":       k.APIServer,
		"HELM_KUBECAFILE":          k.CAFile,
		"HELM_KUBETLS_SERVER_NAME": k.TLSServerName,
		"KUBECONFIG":               k.Kubeconfig,
	} {
		if value != "" {
			out[name] = value
		}
	}
	return out
}
