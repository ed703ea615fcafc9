package main

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"deployer/chart"
)

// kinds complete values and arguments by what help calls them, without brackets and "..."; nil offers nothing.
func kinds() map[string]func(completionRequest) completion {
	out := map[string]func(completionRequest) completion{
		"NAME":                     func(q completionRequest) completion { return q.pick(q.without(q.releases())) },
		"REVISION":                 func(q completionRequest) completion { return q.pick(q.revisions()) },
		"KIND/NAME":                func(q completionRequest) completion { return q.pick(q.objects()) },
		"NAMESPACE":                func(q completionRequest) completion { return q.pick(q.namespaces()) },
		"CONTEXT":                  func(q completionRequest) completion { return q.pick(q.contexts()) },
		"VERSION":                  func(q completionRequest) completion { return q.pick(q.versions()) },
		"CHART":                    func(q completionRequest) completion { return q.chart(true) },
		"REFERENCE":                func(q completionRequest) completion { return q.chart(false) },
		"REPOSITORY":               func(q completionRequest) completion { return q.pick(q.without(q.repositories())) },
		"PLUGIN":                   func(q completionRequest) completion { return q.pick(q.without(q.plugins())) },
		"VARIABLE":                 func(q completionRequest) completion { return q.pick(slices.Sorted(maps.Keys(q.e.helmVariables()))) },
		"bash|zsh|fish|powershell": func(q completionRequest) completion { return q.pick(shells) },
		"COMMAND":                  completionRequest.helpTopics,
	}
	for _, name := range []string{"FILE", "PATH", "PATH|URL", "DIR", "ARCHIVE", "PROGRAM", "KEY=VALUE", "KEY=PATH", "KEY=JSON"} {
		out[name] = completionRequest.files
	}
	for _, name := range strings.Fields("TEXT VALUE N DURATION MODE URL TOKEN USER GROUP PASSWORD DIGEST KEY ARG NAME=VALUE NAMESPACE/NAME " +
		"name=TEST TEMPLATE EXPRESSION SELECTOR LAYOUT CONSTRAINT RELEASE API KIND") {
		out[name] = nil
	}
	return out
}

// argument completes the next argument of a command.
func (q completionRequest) argument() completion {
	names := strings.Fields(cmp.Or(q.parsed.leaf.complete, q.parsed.leaf.args))
	n := len(q.parsed.arguments)
	if last := len(names) - 1; n > last && last >= 0 && strings.HasSuffix(strings.Trim(names[last], "[]"), "...") {
		n = last
	}
	if n >= len(names) {
		return completion{directive: directiveNoFiles}
	}
	return q.ofKind(strings.TrimSuffix(strings.Trim(names[n], "[]"), "..."))
}

// ofKind completes what help calls by this name.
func (q completionRequest) ofKind(kind string) completion {
	if complete := kinds()[kind]; complete != nil {
		return complete(q)
	}
	return completion{directive: directiveNoFiles}
}

func (q completionRequest) files() completion { return completion{directive: directiveFiles} }

// helpTopics are the commands that help explains.
func (q completionRequest) helpTopics() completion {
	q.parsed = newParser(q.e.commands, nil)
	return q.commandNames()
}

// without leaves out what the command line names already.
func (q completionRequest) without(words []string) []string {
	return slices.DeleteFunc(words, func(w string) bool {
		word, _, _ := strings.Cut(w, "\t")
		return slices.Contains(q.parsed.arguments, word)
	})
}

// chartSchemes begin references to charts that are in no repository of the list.
var chartSchemes = []string{"oci://\tchart in an OCI registry", "https://\tURL of a chart", "http://\tURL of a chart", "file://\tURL of a local chart"}

// chart completes a chart: repositories first, then the charts of the one that
// is typed, and local paths when they may be. Paths are offered beside other words only
// once something is typed: else they would hide the repositories.
// (helm.sh/helm/v3/cmd/helm/search_repo.go, compListCharts)
func (q completionRequest) chart(local bool) completion {
	repository, _, inside := strings.Cut(q.last, "/")
	list := q.e.repositoryList()
	entries, _ := list.List() // of a list that can't be read nothing is offered
	var words []string
	for _, r := range entries {
		if inside && r.Name == repository {
			return q.pick(list.Charts(r.Name))
		}
		words = append(words, r.Name+"/\t"+r.URL)
	}
	for _, scheme := range chartSchemes {
		words = append(words, scheme)
		if begin, _, _ := strings.Cut(scheme, "\t"); strings.HasPrefix(q.last, begin) {
			return completion{directive: directiveNoSpace} // nobody knows what is there
		}
	}
	out := q.pick(words)
	out.directive = directiveNoSpace
	switch {
	case !local:
	case len(out.words) == 0:
		out.directive = directiveFiles
	case q.last == "":
		out.words = append(out.words, "./\tlocal chart", "/\tlocal chart")
	default:
		if paths, err := filepath.Glob(q.last + "*"); err == nil {
			out.words = append(out.words, paths...)
		}
	}
	return out
}

func (q completionRequest) plugins() []string {
	var out []string
	for _, p := range q.e.callablePlugins(nil) {
		out = append(out, p.Name+"\t"+p.Usage)
	}
	return out
}

func (q completionRequest) repositories() []string {
	entries, _ := q.e.repositoryList().List() // of a list that can't be read nothing is offered
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
	rules.ExplicitPath = q.e.kube.Kubeconfig
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
	list, err := cluster.Metadata().Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).List(q.ctx, opts)
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
