package chart

import "deployer/internal/kube"

// What this package shares with those that read and apply what it renders.
type (
	// A Cluster is a connection to a cluster. One serves all packages of this module.
	Cluster = kube.Cluster
	// ServerInfo is what templates see as .Capabilities: the version of the cluster, and what it serves.
	ServerInfo = kube.ServerInfo
	// A Manifest is an object, and where it comes from.
	Manifest = kube.Manifest
)
