package kube

// The ownership metadata that Helm writes on each object of a release.
// helm.sh/helm/v3/pkg/action/validate.go
const (
	ManagedByLabel             = "app.kubernetes.io/managed-by"
	ManagedByHelm              = "Helm" // the value of ManagedByLabel
	ReleaseNameAnnotation      = "meta.helm.sh/release-name"
	ReleaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
)
