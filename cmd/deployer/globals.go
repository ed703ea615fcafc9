package main

import (
	"cmp"
	"context"
	stdflag "flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/internal/view/output"
)

// globalFlags choose the cluster, Helm's files and how output looks; every command has them.
func globalFlags(e *env) []*flag {
	k := &e.kube
	return inGroup(globalGroup, append([]*flag{
		{name: "namespace", also: "n", usage: "`NAMESPACE` of the release (default: the context's)", env: "HELM_NAMESPACE", is: common | safe | everywhere | notForPlugins | ofThisRun, value: text(&k.Context.Namespace)},
		{name: "kubeconfig", kubectl: "kubeconfig", usage: "kubeconfig `FILE` (default: KUBECONFIG or ~/.kube/config)", is: usual | safe | everywhere | notForPlugins, value: text(&k.Kubeconfig)},
		{name: "kube-context", kubectl: "context", usage: "`CONTEXT` of the kubeconfig", env: "HELM_KUBECONTEXT", is: usual | safe | everywhere | notForPlugins, value: text(&k.CurrentContext)},
		{name: "expect-context", usage: "refuse any other context than `CONTEXT`", is: usual | safe | everywhere, value: text(&k.ExpectContext)},
		{name: "kube-apiserver", kubectl: "server", usage: "`URL` of the API server", env: "HELM_KUBEAPISERVER", is: rare | safe | everywhere | notForPlugins, value: text(&k.ClusterInfo.Server)},
		{name: "kube-token", usage: "bearer `TOKEN` to log in with", env: "HELM_KUBETOKEN", is: rare | safe | everywhere | notForPlugins, value: text(&k.AuthInfo.Token)},
		{name: "kube-as-user", usage: "`USER` to impersonate", env: "HELM_KUBEASUSER", is: rare | safe | everywhere | notForPlugins, value: text(&k.AuthInfo.Impersonate)},
		{name: "kube-as-group", usage: "`GROUP` to impersonate (repeatable)", env: "HELM_KUBEASGROUPS", is: rare | safe | everywhere | notForPlugins, value: groups(&k.AuthInfo.ImpersonateGroups)},
		{name: "kube-ca-file", usage: "`FILE` with the certificate authority of the API server", env: "HELM_KUBECAFILE", is: rare | safe | everywhere | notForPlugins, value: text(&k.ClusterInfo.CertificateAuthority)},
		{name: "kube-tls-server-name", usage: "server `NAME` to expect in the API server's certificate", env: "HELM_KUBETLS_SERVER_NAME", is: rare | safe | everywhere | notForPlugins, value: text(&k.ClusterInfo.TLSServerName)},
		{name: "kube-insecure-skip-tls-verify", usage: "don't verify the API server's certificate", env: "HELM_KUBEINSECURE_SKIP_TLS_VERIFY", is: rare | risky | everywhere | notForPlugins, value: toggle(&k.ClusterInfo.InsecureSkipTLSVerify)},
		{name: "qps", usage: "maximum requests per second; 0 lets the API server set the pace", env: "HELM_QPS", is: rare | safe | everywhere | alsoPlugins, value: rate(&k.QPS)},
		{name: "burst-limit", usage: "requests allowed above --qps for a short time", env: "HELM_BURST_LIMIT", is: rare | safe | everywhere | alsoPlugins, value: number(&k.Burst)},
		{name: "registry-config", usage: "`FILE` with registry credentials", is: rare | safe | everywhere | notForPlugins, value: text(&e.files.RegistryConfig)},
		{name: "repository-config", usage: "`FILE` with the list of chart repositories", is: rare | safe | everywhere | notForPlugins, value: text(&e.files.RepositoryConfig)},
		{name: "repository-cache", usage: "`DIR` with cached repository indexes", is: rare | safe | everywhere | notForPlugins, value: text(&e.files.RepositoryCache)},
		{name: "color", also: "colour", usage: "auto (on a terminal), always or never", env: "HELM_COLOR", is: usual | safe | everywhere | ofThisRun, value: choice(&e.colour, "auto", "always", "never")},
		{name: "debug", usage: "print more details", env: "HELM_DEBUG", is: usual | safe | everywhere | notForPlugins | ofThisRun, value: toggle(&e.files.Debug)},
		{name: "content-cache", is: everywhere, why: "charts are not cached", value: text(new(string))},
	}, klogFlags()...))
}

// groups is --kube-as-group. Only its variables separate groups by commas, as in Helm: the name of a group, such as that
// of a directory, may have commas in it. (helm.sh/helm/v3/pkg/cli/environment.go, envCSV)
func groups(to *[]string) value {
	v, separated := verbatimList(to), list(to)
	v.current = func() string { return strings.Join(*to, ",") }
	v.fromEnv = func(s string) error { return separated.set(strings.Trim(s, ", ")) }
	return v
}

// outputFlag is -o of commands with a result.
func outputFlag(e *env) *flag {
	return outputFlagWith(e, output.ParseFormat)
}

// outputFlagWith is -o of a command with formats of its own, of which help has words.
func outputFlagWith(e *env, parse func(string) (output.Format, error), words ...string) *flag {
	var asked string
	v := text(&asked, "table")
	v.words = append([]string{"json\tOutput result in JSON format", "table\tOutput result in human-readable format", "yaml\tOutput result in YAML format"}, words...)
	formats := []string{"table", "json", "yaml"}
	v.check = func() error {
		format, err := parse(asked)
		if err != nil {
			return &usageError{program.Suggest(err, asked, slices.DeleteFunc(append(formats, planFormats...), func(name string) bool {
				_, err := parse(name)
				return err != nil
			}))}
		}
		e.format = format
		return nil
	}
	return &flag{name: "output", also: "o", usage: "output `FORMAT`: " + strings.Join(append(formats, words...), ", "), is: common | safe | reporting, value: v}
}

// checkArguments checks that there are as many arguments as a usage such as "NAME [REVISION]" has. takes says in errors
// what they are.
func (c call) checkArguments(usage, takes string, args []string) error {
	names := strings.Fields(usage)
	needed := len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasPrefix(name, "[") }))
	switch {
	case len(args) < needed:
		return usagef(`"%s %s" needs %s`, program.Name, c.command(), takes)
	case len(args) > len(names) && !strings.HasSuffix(strings.TrimRight(usage, "]"), "..."):
		return withShellHint(usagef(`"%s %s" takes %s; unexpected argument %q`, program.Name, c.command(), cmp.Or(takes, "no arguments"), args[len(names)]), args)
	}
	return nil
}

// withShellHint says where an argument too many may come from.
func withShellHint(err error, args []string) error {
	for _, arg := range args {
		if word := canonicalBool(arg); word == "true" || word == "false" {
			return program.WithHint(err, "write the value of a switch after an equals sign: --wait="+arg)
		}
		if strings.Contains(arg, "=") {
			return program.WithHint(err, "the shell may have split a value with {…,…} or blanks: quote it, such as --set 'key={a,b}'")
		}
	}
	return err
}

func printTo(w io.Writer, text string) error {
	_, err := fmt.Fprint(w, text)
	return err
}

// deployingFlagsOfHelm are those that have no effect with any command that deploys.
func deployingFlagsOfHelm() []*flag {
	return []*flag{
		noEffect("recreate-pods", "pods are replaced when their template changes; use kubectl rollout restart to force it"),
		noEffect("cleanup-on-fail", "the next release deletes what a failed release created"),
		{name: "server-side", why: "every object is applied by server-side apply", welcome: []string{"true", "auto"}, value: noEffectSwitch("auto")},
		noEffect("force-conflicts", "the chart wins by default; see --conflicts"),
	}
}

// klogFlags are those of Kubernetes' logging, which every command of Helm has.
// (helm.sh/helm/v3/cmd/helm/flags.go, addKlogFlags)
func klogFlags() []*flag {
	const why = "requests aren't logged, for they have the values of Secrets in them; see --debug"
	defined := stdflag.NewFlagSet("klog", stdflag.ContinueOnError)
	klog.InitFlags(defined)
	var out []*flag
	defined.VisitAll(func(k *stdflag.Flag) {
		f := &flag{name: strings.ReplaceAll(k.Name, "_", "-"), is: everywhere, why: why, value: text(new(string))}
		if b, ok := k.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			f.value = noEffectSwitch()
		}
		out = append(out, f)
	})
	return out
}

// readTimeout is how long a command that only reads the cluster may take by default.
const readTimeout = 5 * time.Minute

// limitByTimeout gives a command that only reads the cluster the flag --timeout.
func limitByTimeout(c *command) {
	var limit time.Duration
	c.flags = append(c.flags, &flag{name: "timeout", usage: "time limit for reading from the cluster; 0 sets none", is: usual | safe, value: duration(&limit, readTimeout)})
	read := c.action
	c.action = func(ctx context.Context, args []string) error {
		ctx, done := limitReading(ctx, limit)
		return done(read(ctx, args))
	}
}

// limitReading limits the time of a command that reads from the cluster; 0 sets no limit.
// Call the returned function with the command's error.
func limitReading(ctx context.Context, limit time.Duration) (context.Context, func(error) error) {
	return limitTime(ctx, limit, "reading from the cluster", "the API server answers slowly, or doesn't finish its answer")
}

// limitTime is kube.WithLimit for a command with --timeout: the error of the limit says what took too long, and the
// hint why that may be.
func limitTime(ctx context.Context, limit time.Duration, what, why string) (context.Context, func(error) error) {
	return kube.WithLimit(ctx, limit, func(err error) error {
		return program.WithHint(fmt.Errorf("%s took more than %s: %w", what, limit, err), why+"; give it more time with a longer --timeout")
	})
}
