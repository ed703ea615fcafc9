package ordering

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"deployer/internal/kube"
)

// IsAggregated reports whether an object is a ClusterRole that a controller fills from
// others. The controller may recreate a role that was just deleted, when one of the
// others changes or is deleted.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
func IsAggregated(obj *unstructured.Unstructured) bool { return len(roleSelectors(obj)) > 0 }

// Aggregates reports whether an aggregated ClusterRole is filled from another one. states
// are the known states of the other, declared and live; each may be nil.
func Aggregates(role *unstructured.Unstructured, states ...*unstructured.Unstructured) bool {
	return slices.ContainsFunc(roleSelectors(role), func(s labels.Selector) bool {
		return slices.ContainsFunc(states, func(part *unstructured.Unstructured) bool {
			return part != nil && isClusterRole(part) && s.Matches(labels.Set(part.GetLabels()))
		})
	})
}

func isClusterRole(obj *unstructured.Unstructured) bool {
	id := kube.IDOf(obj)
	return id.Group == "rbac.authorization.k8s.io" && id.Kind == "ClusterRole"
}

// roleSelectors are the labels of the roles that obj is aggregated from; none when
// it isn't an aggregated ClusterRole.
func roleSelectors(obj *unstructured.Unstructured) []labels.Selector {
	if obj == nil || !isClusterRole(obj) {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(obj.Object, "aggregationRule", "clusterRoleSelectors")
	var out []labels.Selector
	for _, item := range list {
		fields, _ := item.(map[string]any)
		var parsed metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &parsed); err != nil {
			continue // the API server has not accepted it either
		}
		if selector, err := metav1.LabelSelectorAsSelector(&parsed); err == nil {
			out = append(out, selector)
		}
	}
	return out
}
