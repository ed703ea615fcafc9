package main

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"deployer/chart"
)

// What an argument of a command is.
const (
	argRelease        = "release"
	argReleases       = "releases" // this and all that follow
	argRevision       = "revision"
	argObject         = "object"
	argChart          = "chart"
	argChartReference = "reference" // a chart, but no local path
	argFile           = "file"
	argFiles          = "files"
	argRepository     = "repository"
	argRepositories   = "repositories"
	argVariable       = "variable"
	argShell          = "shell"
	argCommand        = "command"
	argPlugins        = "plugins"
)

// argumentKinds says what the arguments of a command are where its usage doesn't.
var argumentKinds = map[string][]string{
	"upgrade": {argRelease, argChart}, "explain": {argRelease, argObject, ""}, "install": {"", argChart}, "plan": {argRelease, argChart}, "apply": {argFile},
	"template": {argChart, argChart}, "lint": {argFiles}, "create": {argFile}, "package": {argFiles}, "verify": {argFile},
	"show all": {argChart}, "show chart": {argChart}, "show values": {argChart}, "show readme": {argChart}, "show crds": {argChart},
	"dependency list": {argFile}, "dependency update": {argFile}, "dependency build": {argFile},
	"repo add": {"", ""}, "repo remove": {argRepositories}, "repo update": {argRepositories}, "repo index": {argFile},
	"pull": {argChartReference}, "push": {argFile}, "env": {argVariable}, "plugin install": {argFile}, "plugin update": {argPlugins}, "plugin uninstall": {argPlugins}, "completion": {argShell}, "help": {argCommand},
}

// argumentKindsFromUsage reads from a usage such as "NAME [REVISION]" what the arguments
// of a command are.
func argumentKindsFromUsage(usage string) []string {
	known := map[string]string{"NAME": argRelease, "NAME...": argReleases, "REVISION": argRevision, "CHART": argChart,
		"FILE": argFile, "PATH": argFile, "PATH...": argFiles}
	var kinds []string
	for _, word := range strings.Fields(usage) {
		kinds = append(kinds, known[strings.Trim(word, "[]")])
	}
	return kinds
}

// argument completes the next argument of a command.
func (q completionRequest) argument() completion {
	kinds, ok := argumentKinds[strings.Join(q.parsed.words, " ")]
	if !ok {
		kinds = argumentKindsFromUsage(q.parsed.leaf.ArgsUsage)
	}
	n := len(q.parsed.arguments)
	if n >= len(kinds) {
		if len(kinds) == 0 || !slices.Contains([]string{argReleases, argRepositories, argFiles, argPlugins}, kinds[len(kinds)-1]) {
			return completion{directive: directiveNoFiles}
		}
		n = len(kinds) - 1
	}
	switch kinds[n] {
	case argRelease, argReleases:
		return q.pick(q.without(q.releases()), "")
	case argRevision:
		return q.pick(q.revisions(), "")
	case argObject:
		return q.pick(q.objects(), "")
	case argChart, argChartReference:
		return q.chart(kinds[n] == argChart)
	case argFile, argFiles:
		return completion{directive: directiveFiles}
	case argRepository, argRepositories:
		return q.pick(q.without(q.repositories()), "")
	case argPlugins:
		var words []string
		for _, p := range q.e.installedPlugins(nil) {
			words = append(words, p.Name+"\t"+p.Usage)
		}
		return q.pick(q.without(words), "")
	case argVariable:
		return q.pick(slices.Sorted(maps.Keys(q.e.helmVariables())), "")
	case argShell:
		return q.pick([]string{"bash", "zsh", "fish", "powershell"}, "")
	case argCommand:
		return q.helpTopics()
	}
	return completion{directive: directiveNoFiles}
}

// helpTopics are the commands that help explains.
func (q completionRequest) helpTopics() completion {
	q.parsed = &normalizer{commands: commands(q.e)}
	return q.commandNames()
}

// without leaves out what the command line names already.
func (q completionRequest) without(words []string) []string {
	return slices.DeleteFunc(words, func(w string) bool {
		word, _, _ := strings.Cut(w, "\t")
		return slices.Contains(q.parsed.arguments, word)
	})
}

// chartSchemes begin charts that are in no repository of the list.
var chartSchemes = []string{"oci://\tchart in an OCI registry", "https://\tURL of a chart", "http://\tURL of a chart", "file://\tURL of a local chart"}

// chart completes a chart: repositories first, then the charts of the one that
// is typed, and local paths when they may be. Paths are offered beside other words only
// once something is typed: else they would hide the repositories.
// (helm.sh/helm/v3/cmd/helm/search_repo.go, compListCharts)
func (q completionRequest) chart(local bool) completion {
	repository, _, inside := strings.Cut(q.last, "/")
	known := q.repositories()
	if inside {
		for _, r := range known {
			if name, _, _ := strings.Cut(r, "\t"); name == repository {
				return q.pick(q.e.repositoryList().Charts(name), "")
			}
		}
	}
	var words []string
	for _, r := range known {
		name, url, _ := strings.Cut(r, "\t")
		words = append(words, name+"/\t"+url)
	}
	for _, scheme := range chartSchemes {
		words = append(words, scheme)
		if begin, _, _ := strings.Cut(scheme, "\t"); strings.HasPrefix(q.last, begin) {
			return completion{directive: directiveNoSpace} // nobody knows what is there
		}
	}
	out := q.pick(words, "")
	switch {
	case !local:
		out.directive = directiveNoSpace
	case len(out.words) == 0:
		out.directive = directiveFiles
	case q.last == "":
		out.words = append(out.words, "./\tlocal chart", "/\tlocal chart")
		out.directive = directiveNoSpace
	default:
		out.directive = directiveNoSpace
		if paths, err := filepath.Glob(q.last + "*"); err == nil {
			out.words = append(out.words, paths...)
		}
	}
	return out
}

func (q completionRequest) repositories() []string {
	entries, err := q.e.repositoryList().List()
	if err != nil {
		return nil
	}
	var out []string
	for _, r := range entries {
		out = append(out, r.Name+"\t"+r.URL)
	}
	return out
}

// versions are those of the chart that the command line names.
func (q completionRequest) versions() []string {
	for _, argument := range slices.Backward(q.parsed.arguments) {
		if found := q.e.repositoryList().Versions(argument); len(found) > 0 {
			return found
		}
	}
	return nil
}

func (q completionRequest) contexts() []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = q.e.global.kube.Kubeconfig
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

func (q completionRequest) namespaces() []string {
	return q.names("namespaces", "", metav1.ListOptions{}, func(m metav1.ObjectMeta) string { return m.Name })
}

// releases names the releases of the namespace. The labels that Helm gives to
// their records are enough, so no record is read.
func (q completionRequest) releases() []string {
	if os.Getenv("HELM_DRIVER") == "memory" {
		return releasesInFiles(os.Getenv("HELM_MEMORY_DRIVER_DATA"), q.e.offlineNamespace())
	}
	return q.names("secrets", q.e.offlineNamespace(), metav1.ListOptions{LabelSelector: "owner=helm"},
		func(m metav1.ObjectMeta) string { return m.Labels["name"] })
}

// revisions are those of the release that the command line names, newest first.
func (q completionRequest) revisions() []string {
	if len(q.parsed.arguments) == 0 {
		return nil
	}
	found := q.names("secrets", q.e.offlineNamespace(), metav1.ListOptions{LabelSelector: "owner=helm,name=" + q.parsed.arguments[0]},
		func(m metav1.ObjectMeta) string { return m.Labels["version"] + "\t" + m.Labels["status"] })
	number := func(s string) int {
		text, _, _ := strings.Cut(s, "\t")
		n, _ := strconv.Atoi(text) // a label that is no number is not Helm's; it comes last
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(number(b), number(a)) })
	return found
}

// names lists objects of a core kind and makes a word of each; nothing when
// the cluster can't be asked in time.
func (q completionRequest) names(resource, namespace string, opts metav1.ListOptions, word func(metav1.ObjectMeta) string) []string {
	cluster, err := q.e.connect()
	if err != nil {
		return nil
	}
	client, err := cluster.Metadata()
	if err != nil {
		return nil
	}
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).List(q.ctx, opts)
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for _, item := range list.Items {
		if w := word(item.ObjectMeta); w != "" {
			found[w] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// objects are those of the release that the command line names.
func (q completionRequest) objects() []string {
	if len(q.parsed.arguments) == 0 {
		return nil
	}
	record, err := q.e.readRecord(q.ctx, q.parsed.arguments[0], 0)
	if err != nil {
		return nil
	}
	manifests, err := chart.Parse(record.Manifest)
	if err != nil {
		return nil
	}
	var out []string
	for _, m := range manifests {
		out = append(out, m.Object.GetKind()+"/"+m.Object.GetName())
	}
	return out
}
