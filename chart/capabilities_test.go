package chart

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"deployer/internal/kube"
)

const capabilitiesTemplate = `
kind: Capabilities
helm: {{ toYaml .Capabilities.HelmVersion | nindent 2 }}
kube: {{ toYaml .Capabilities.KubeVersion | nindent 2 }}
gitVersion: {{ .Capabilities.KubeVersion.GitVersion }}
apis: {{ toYaml .Capabilities.APIVersions | nindent 2 }}
has: {{ .Capabilities.APIVersions.Has "example.com/v1" }} {{ .Capabilities.APIVersions.Has "apps/v1" }}
chart: {{ toYaml .Chart | nindent 2 }}
root: {{ .Chart.IsRoot }}
release: {{ toYaml .Release | nindent 2 }}
template: {{ toYaml .Template | nindent 2 }}
files: {{ .Files.Get "notes.md" }} {{ range $name, $_ := .Files.Glob "*.md" }}{{ $name }}{{ end }}
lookup: {{ lookup "v1" "Secret" "a" "b" | toYaml }}
dns: {{ getHostByName "localhost" | quote }}
`

func TestOfflineCapabilitiesAreThoseOfTheHelmRelease(t *testing.T) {
	chart := chartDir(t, map[string]string{"templates/c.yaml": capabilitiesTemplate, "notes.md": "read"})
	compiler := regexp.MustCompile(`go_version: go\S+`) // of whoever built the binary
	evenOut := func(text string) string { return compiler.ReplaceAllString(text, "go_version: go1") }
	for _, r := range []run{
		{},
		{upgrade: true},
		{kube: "1.29"},
		{kube: "v1.30.2-eks-1552ad0", apis: []string{"example.com/v1", "example.com/v1/Widget"}},
	} {
		r.chart = chart
		r.compare(t, evenOut)
	}
}

func TestKubeVersionOfChartIsChecked(t *testing.T) {
	chart := chartDir(t, map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: probe\nversion: 1.0.0\nkubeVersion: '>=1.30.0-0'\n",
		"templates/c.yaml": "kind: A\nversion: {{ .Capabilities.KubeVersion }}\n",
	})
	run{chart: chart, kube: "1.30.2"}.compare(t, nil)
	old := run{chart: chart, kube: "1.29.9"}
	if _, err := old.helm(t); err == nil {
		t.Error("helm takes 1.29.9")
	}
	_, _, err := old.ours(t)
	var version *VersionError
	if !errors.As(err, &version) || version.Have != "v1.29.9" || version.Hint() == "" {
		t.Errorf("with 1.29.9: %v", err)
	}
}

func TestServerSaysWhatChartsAreTold(t *testing.T) {
	c, err := Load(context.Background(), chartDir(t, map[string]string{
		"templates/c.yaml": `kind: {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.Major }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions }}`,
	}), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := kube.ServerInfo{Version: "v1.36.3-gke.100", APIVersions: []string{"v1", "v1/Pod"}}
	r, err := c.Render(context.Background(), Input{Release: "a", Server: server})
	if err != nil {
		t.Fatal(err)
	}
	want := "---\n# Source: probe/templates/c.yaml\nkind: v1.36.3-gke.100 1 36 [v1 v1/Pod]\n"
	if r.Manifest != want {
		t.Errorf("manifest is %q, want %q", r.Manifest, want)
	}
	server.Unavailable = []string{"metrics.k8s.io/v1beta1"}
	r, err = c.Render(context.Background(), Input{Release: "a", Server: server})
	if err != nil || strings.Contains(r.Manifest, "metrics.k8s.io") {
		t.Errorf("a group whose API service doesn't answer counts as served: %q, %v", r.Manifest, err)
	}
	if _, err := c.Render(context.Background(), Input{Release: "a", Server: kube.ServerInfo{Version: "what"}}); err == nil {
		t.Error("a version that is none is taken")
	}
}
