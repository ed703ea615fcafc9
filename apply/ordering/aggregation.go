package ordering

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"deployer/internal/kube"
)

// Aggregates reports whether an aggregated ClusterRole is filled from another one. states
// are the known states of the other, declared and live; each may be nil.
func Aggregates(role *unstructured.Unstructured, states ...*unstructured.Unstructured) bool {
	if !kube.IsAggregated(role) {
		return false
	}
	return slices.ContainsFunc(kube.Items(role.Object, "aggregationRule", "clusterRoleSelectors"), func(stated map[string]any) bool {
		selector, err := kube.Selector(stated) // the API server has not accepted a wrong one either
		return err == nil && slices.ContainsFunc(states, func(part *unstructured.Unstructured) bool {
			return part != nil && kube.IDOf(part).GroupKind() == kube.ClusterRoleKind && selector.Matches(labels.Set(part.GetLabels()))
		})
	})
}
