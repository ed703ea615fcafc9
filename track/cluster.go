package track

import (
	"k8s.io/client-go/rest"

	"deployer/internal/kube"
)

// What programs outside of this module need to name of package kube, which is internal.
type (
	// A Cluster is a connection to a cluster. One serves all packages of this module.
	Cluster = kube.Cluster
	// An ID names an object: group, kind, namespace and name, but no version.
	ID = kube.ID
)

// Connect returns a connection to the cluster of an existing configuration; it makes no requests. Objects and
// releases that name no namespace are in the given one. A QPS of 0 in config means no pacing on our side.
func Connect(config *rest.Config, namespace string) *Cluster { return kube.New(config, namespace) }
