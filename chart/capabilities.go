package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/chart/internal/yamltext"
)

// The versions that the release binary of Helm 3.22.0 reports. Helm's Makefile sets them
// when linking; the library alone reports v3.22 and Kubernetes v1.20.0. The Kubernetes
// version is that of its client-go, v0.37.0.
const (
	// HelmVersion is the Helm release that this program is compatible with. Charts see it as
	// .Capabilities.HelmVersion.
	HelmVersion       = "v3.22.0"
	offlineKubernetes = "v1.37.0"
)

// OfflineServerInfo returns the capabilities for rendering without a cluster: those of Helm's release
// binary, with another Kubernetes version (--kube-version; empty keeps Helm's) and more API
// versions (--api-versions).
func OfflineServerInfo(kubernetes string, more ...string) (ServerInfo, error) {
	server := ServerInfo{Version: offlineKubernetes, APIVersions: slices.Clone([]string(chartutil.DefaultVersionSet))}
	if kubernetes != "" {
		version, err := chartutil.ParseKubeVersion(kubernetes)
		if err != nil {
			return ServerInfo{}, fmt.Errorf("invalid kube version '%s': %w", kubernetes, err) // Helm's words
		}
		server.Version = version.Version
	}
	server.APIVersions = append(server.APIVersions, more...)
	return server, nil
}

func capabilitiesOf(server ServerInfo) (*chartutil.Capabilities, error) {
	if server.Version == "" {
		server, _ = OfflineServerInfo("", server.APIVersions...) // only another version can be wrong
	}
	version, err := chartutil.ParseKubeVersion(server.Version)
	if err != nil {
		return nil, fmt.Errorf("the cluster says its version is %q: %w", server.Version, err)
	}
	out := chartutil.DefaultCapabilities.Copy()
	out.KubeVersion = chartutil.KubeVersion{Version: server.Version, Major: cmp.Or(server.Major, version.Major), Minor: cmp.Or(server.Minor, version.Minor)}
	out.APIVersions = slices.Clone(server.APIVersions) // as in Helm, without those whose API service doesn't answer
	out.HelmVersion.Version = HelmVersion
	out.HelmVersion.GitTreeState = "clean"
	out.HelmVersion.GoVersion = runtime.Version()
	return out, nil
}

// ReplaceAPIVersions replaces API versions in a manifest and keeps all other bytes. newer
// returns an object's new API version; empty keeps the old one. changes has a line for each
// replaced version.
func ReplaceAPIVersions(manifest string, newer func(*unstructured.Unstructured) string) (out string, changes []string) {
	out = yamltext.RewriteDocuments(manifest, func(text string) string {
		text, replaced := replaceAPIVersions(text, newer)
		changes = append(changes, replaced...)
		return text
	})
	return out, changes
}

func replaceAPIVersions(text string, newer func(*unstructured.Unstructured) string) (out string, changes []string) {
	var root yaml.Node
	objects, err := objectsOf(yamltext.Document{Text: text})
	if err != nil || yaml.Unmarshal([]byte(text), &root) != nil || len(root.Content) != 1 {
		return text, nil // planning says what is wrong with it
	}
	nodes := apiVersionNodes(root.Content[0], nil)
	if len(nodes) != len(objects) {
		return text, nil
	}
	for i := len(nodes) - 1; i >= 0; i-- { // from the end, so that earlier offsets stay valid
		obj := objects[i]
		next := newer(obj)
		at := scalarOffset(text, nodes[i])
		if next == "" || at < 0 {
			continue
		}
		old := obj.GetAPIVersion()
		text = text[:at] + next + text[at+len(old):]
		changes = append([]string{fmt.Sprintf("%s/%s: %s is not served any more, sent as %s", obj.GetKind(), obj.GetName(), old, next)}, changes...)
	}
	return text, changes
}

// apiVersionNodes appends the apiVersion nodes of the objects in n, in the order of decode;
// nil for an object that inherits it from its list.
func apiVersionNodes(n *yaml.Node, out []*yaml.Node) []*yaml.Node {
	kind, items := yamltext.NodeAt(n, "kind"), yamltext.NodeAt(n, "items")
	if kind == nil || !strings.HasSuffix(kind.Value, "List") || items == nil || items.Kind != yaml.SequenceNode {
		return append(out, yamltext.NodeAt(n, "apiVersion"))
	}
	for _, item := range items.Content {
		out = apiVersionNodes(item, out)
	}
	return out
}

// scalarOffset returns the offset of a plain or quoted scalar, without the quote; -1 when
// the text there isn't the scalar's value.
func scalarOffset(text string, n *yaml.Node) int {
	if n == nil || n.Kind != yaml.ScalarNode {
		return -1
	}
	at, ok := yamltext.NodeOffset(text, n)
	at += len(text[at:]) - len(strings.TrimLeft(text[at:], `"'`))
	if !ok || !strings.HasPrefix(text[at:], n.Value) {
		return -1
	}
	return at
}

// clusterFunctions are the words in templates that read the cluster's capabilities or
// objects.
// https://helm.sh/docs/chart_template_guide/builtin_objects/
var clusterFunctions = []string{"Capabilities", "lookup"}

// mayUseCluster reports whether the output of a chart may depend on the cluster: a template
// of the chart or a subchart contains Capabilities or lookup, or it uses tpl and a value or
// file does. If in doubt, it returns true.
func mayUseCluster(c *helmchart.Chart, user map[string]any) bool {
	charts := allCharts(c)
	inTemplates := func(words ...string) bool {
		return slices.ContainsFunc(charts, func(c *helmchart.Chart) bool {
			return slices.ContainsFunc(c.Templates, func(f *helmchart.File) bool { return containsAny(f.Data, words...) })
		})
	}
	if inTemplates(clusterFunctions...) {
		return true
	}
	if !inTemplates("tpl") {
		return false
	}
	usesFiles := inTemplates("Files")
	return usedInValue(user) || slices.ContainsFunc(charts, func(c *helmchart.Chart) bool {
		return usedInValue(c.Values) || usesFiles && slices.ContainsFunc(c.Files, func(f *helmchart.File) bool {
			return containsAny(f.Data, "{{") && containsAny(f.Data, clusterFunctions...)
		})
	})
}

// allCharts are a chart and its subcharts at any depth, each before its own.
func allCharts(c *helmchart.Chart) []*helmchart.Chart {
	out := []*helmchart.Chart{c}
	for _, child := range c.Dependencies() {
		out = append(out, allCharts(child)...)
	}
	return out
}

// usedInValue reports whether a value, or a key or value in it, has a word of clusterFunctions.
func usedInValue(value map[string]any) bool {
	return containsAny([]byte(fmt.Sprint(value)), clusterFunctions...)
}

func containsAny(text []byte, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}
