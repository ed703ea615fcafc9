package chart

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"helm.sh/helm/v3/pkg/chartutil"
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
