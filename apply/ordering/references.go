package ordering

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// Matches reports whether an annotation refers to an object. kinds are those that the
// annotation's kind may mean, and namespace is its default namespace.
func Matches(d annotation.Dependency, id kube.ID, gvk schema.GroupVersionKind, kinds []kube.Mapping, namespace string) bool {
	switch {
	case d.Kind != "" && !slices.ContainsFunc(kinds, func(m kube.Mapping) bool { return m.GVK.GroupKind() == id.GroupKind() }):
		return false
	case d.HasGroup && d.Group != id.Group, d.Version != "" && d.Version != gvk.Version:
		return false
	case d.Name != id.Name && !(d.IsPattern && d.Name == ""):
		return false
	case d.Namespace != "":
		return d.Namespace == id.Namespace
	}
	return d.IsPattern || id.Namespace == "" || id.Namespace == namespace
}
