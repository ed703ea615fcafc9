package ordering

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// Matches tells whether an annotation names an object. kinds are those that its
// kind may mean; namespace is the one that it means when it states none.
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
