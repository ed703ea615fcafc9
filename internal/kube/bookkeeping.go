package kube

import "slices"

// serverMetadata are the fields of metadata that only the API server writes. It
// refuses an apply with managedFields, and takes uid and resourceVersion as
// preconditions.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
var serverMetadata = []string{
	"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp",
	"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds",
}

// RestartedAtAnnotation is what kubectl rollout restart sets.
// k8s.io/kubectl/pkg/polymorphichelpers/objectrestarter.go
const RestartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

// LastAppliedAnnotation is where kubectl apply keeps what it has applied.
const LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// bookkeepingAnnotations belong to kubectl and to controllers.
var bookkeepingAnnotations = []string{
	LastAppliedAnnotation, "deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation",
}

// ServerMetadata lists the fields of metadata that only the API server writes.
func ServerMetadata() []string { return slices.Clone(serverMetadata) }

// IsServerMetadata reports whether only the API server writes a field of metadata.
func IsServerMetadata(name string) bool { return slices.Contains(serverMetadata, name) }

// IsBookkeeping reports whether a field is maintained by the API server, controllers or
// kubectl: status, metadata that only the server writes, and some annotations.
func IsBookkeeping(names []string) bool {
	switch {
	case len(names) > 0 && names[0] == "status":
		return true
	case len(names) < 2 || names[0] != "metadata":
		return false
	case names[1] == "annotations":
		return len(names) > 2 && slices.Contains(bookkeepingAnnotations, names[2])
	}
	return IsServerMetadata(names[1])
}
