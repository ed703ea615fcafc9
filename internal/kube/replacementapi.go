package kube

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// replacementAPIs are API versions that replace others without any change of fields: the old
// version, the new one, and the kinds. Kinds whose fields changed, such as Ingress, aren't
// listed.
// https://kubernetes.io/docs/reference/using-api/deprecation-guide/
var replacementAPIs = [][3]string{
	{"admissionregistration.k8s.io/v1beta1", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"},
	{"apiregistration.k8s.io/v1beta1", "apiregistration.k8s.io/v1", "APIService"},
	{"apps/v1beta2", "apps/v1", "Deployment DaemonSet ReplicaSet StatefulSet"},
	{"autoscaling/v2beta2", "autoscaling/v2", "HorizontalPodAutoscaler"},
	{"batch/v1beta1", "batch/v1", "CronJob"},
	{"certificates.k8s.io/v1beta1", "certificates.k8s.io/v1", "ClusterTrustBundle"},
	{"coordination.k8s.io/v1beta1", "coordination.k8s.io/v1", "Lease"},
	{"extensions/v1beta1", "networking.k8s.io/v1", "NetworkPolicy"},
	{"flowcontrol.apiserver.k8s.io/v1beta1", "flowcontrol.apiserver.k8s.io/v1", "FlowSchema"},
	{"flowcontrol.apiserver.k8s.io/v1beta2", "flowcontrol.apiserver.k8s.io/v1", "FlowSchema"},
	{"flowcontrol.apiserver.k8s.io/v1beta3", "flowcontrol.apiserver.k8s.io/v1", "FlowSchema"},
	{"networking.k8s.io/v1beta1", "networking.k8s.io/v1", "IngressClass IPAddress ServiceCIDR"},
	{"node.k8s.io/v1beta1", "node.k8s.io/v1", "RuntimeClass"},
	{"policy/v1beta1", "policy/v1", "PodDisruptionBudget"},
	{"rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1", "Role RoleBinding ClusterRole ClusterRoleBinding"},
	{"scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1", "PriorityClass"},
	{"storage.k8s.io/v1beta1", "storage.k8s.io/v1", "StorageClass CSIDriver CSINode CSIStorageCapacity VolumeAttachment VolumeAttributesClass"},
	{"storagemigration.k8s.io/v1beta1", "storagemigration.k8s.io/v1", "StorageVersionMigration"},
}

// ReplacementAPI returns the API version that replaces an object's own with the same meaning;
// empty when there is none.
func ReplacementAPI(obj *unstructured.Unstructured) (apiVersion string) {
	selector, stated, _ := unstructured.NestedMap(obj.Object, "spec", "selector")
	if obj.GetKind() == "PodDisruptionBudget" && stated && len(selector) == 0 {
		return "" // an empty selector selects nothing in the old version, and everything in the new
	}
	return replacementAPI(obj.GroupVersionKind())
}

func replacementAPI(gvk schema.GroupVersionKind) (apiVersion string) {
	for _, s := range replacementAPIs {
		if s[0] == gvk.GroupVersion().String() && slices.Contains(strings.Fields(s[2]), gvk.Kind) {
			return s[1]
		}
	}
	return ""
}
