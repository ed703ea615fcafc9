package apply

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"deployer/internal/kube"
)

// aggregator fills ClusterRoles that are aggregated from others. It does so by
// server-side apply, whenever one of the others changes or goes: an aggregated
// role that was deleted a moment ago may be made anew by it.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
// k8s.io/kubernetes/pkg/controller/clusterroleaggregation
const aggregator = "clusterrole-aggregation-controller"

func isClusterRole(id kube.ID) bool {
	return id.Group == "rbac.authorization.k8s.io" && id.Kind == "ClusterRole"
}

// selectorsOf are the labels of the roles that obj is aggregated from; none when
// it isn't an aggregated ClusterRole.
func selectorsOf(obj *unstructured.Unstructured) []labels.Selector {
	if obj == nil || !isClusterRole(kube.IDOf(obj)) {
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

// aggregatedFirst lets aggregated ClusterRoles be deleted before those they are
// made of.
func aggregatedFirst(list []candidate, changes []Change, nodes []node) {
	for i, whole := range list {
		selectors := selectorsOf(whole.last.obj)
		for j, part := range list {
			if i == j || !isClusterRole(part.id) || !slices.ContainsFunc(selectors, part.selected(changes[j].Live)) {
				continue
			}
			nodes[j].edges = append(nodes[j].edges, edge{to: i, state: Present})
		}
	}
}

// selected tells whether a selector finds a candidate as it was stated, or as it is.
func (c candidate) selected(live *unstructured.Unstructured) func(labels.Selector) bool {
	return func(s labels.Selector) bool {
		for _, obj := range []*unstructured.Unstructured{c.last.obj, live} {
			if obj != nil && s.Matches(labels.Set(obj.GetLabels())) {
				return true
			}
		}
		return false
	}
}

// remade tells whether what is there of an aggregated ClusterRole is nothing but
// what its controller has made of it after it was deleted.
func remade(cand candidate, meta *metav1.PartialObjectMetadata) bool {
	return selectorsOf(cand.last.obj) != nil && len(meta.ManagedFields) > 0 &&
		!slices.ContainsFunc(meta.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager != aggregator })
}
