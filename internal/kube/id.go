// Package kube is one connection to one cluster, and the names of things in it.
package kube

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// ID names one object for as long as it lives. It has no API version: to the
// API server apps/v1 and apps/v1beta1 Deployments of one name are one object.
// Namespace is empty for objects of cluster scope.
type ID struct{ Group, Kind, Namespace, Name string }

// IDOf returns the identity of obj. A group that was merely an older home of
// the same stored objects (extensions Ingress) is replaced by its present one.
func IDOf(obj *unstructured.Unstructured) ID {
	gk := Canonical(obj.GroupVersionKind().GroupKind())
	return ID{Group: gk.Group, Kind: gk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// GroupKind returns the group and kind of the named object.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// Kinds that several packages have rules for.
var (
	APIServiceKind            = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	ClusterRoleKind           = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	CRDKind                   = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	DaemonSetKind             = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	DeploymentKind            = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	JobKind                   = schema.GroupKind{Group: "batch", Kind: "Job"}
	NamespaceKind             = schema.GroupKind{Kind: "Namespace"}
	PersistentVolumeClaimKind = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	PodKind                   = schema.GroupKind{Kind: "Pod"}
	ReplicaSetKind            = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	ServiceKind               = schema.GroupKind{Kind: "Service"}
	StatefulSetKind           = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
)

// RunsToEnd reports whether objects of a kind run a program that comes to its end: Jobs and Pods.
func RunsToEnd(gk schema.GroupKind) bool { return gk == JobKind || gk == PodKind }

// IsAggregated reports whether an object is a ClusterRole that a controller fills from others. The controller may recreate a
// role that was just deleted, when one of the others changes or is deleted.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
func IsAggregated(obj *unstructured.Unstructured) bool {
	return obj != nil && obj.GroupVersionKind().GroupKind() == ClusterRoleKind && obj.Object["aggregationRule"] != nil
}

// IsCRD reports whether the object is a CustomResourceDefinition.
func (id ID) IsCRD() bool { return id.GroupKind() == CRDKind }

// IsNamespace reports whether the object is a Namespace.
func (id ID) IsNamespace() bool { return id.GroupKind() == NamespaceKind }

// String writes the object as people see it everywhere: Deployment/prod/web,
// or ClusterRole/web for an object of cluster scope.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind + "/" + id.Name
	}
	return id.Kind + "/" + id.Namespace + "/" + id.Name
}

// movedGroups maps kinds that were served from more than one API group over one
// storage to the group that serves them now.
// https://kubernetes.io/docs/reference/using-api/deprecation-guide/
var movedGroups = map[schema.GroupKind]string{
	{Group: "extensions", Kind: "Deployment"}:        "apps",
	{Group: "extensions", Kind: "DaemonSet"}:         "apps",
	{Group: "extensions", Kind: "ReplicaSet"}:        "apps",
	{Group: "extensions", Kind: "Ingress"}:           "networking.k8s.io",
	{Group: "extensions", Kind: "NetworkPolicy"}:     "networking.k8s.io",
	{Group: "extensions", Kind: "PodSecurityPolicy"}: "policy",
	{Group: "events.k8s.io", Kind: "Event"}:          "",
}

// Canonical returns gk in the group that serves it today.
func Canonical(gk schema.GroupKind) schema.GroupKind {
	if group, ok := movedGroups[gk]; ok {
		gk.Group = group
	}
	return gk
}

// A Manifest is one object as a chart wrote it; of a list, one of its members.
type Manifest struct {
	// Source is the template it came from, such as web/templates/deploy.yaml.
	// Empty when that is not known.
	Source string                     `json:"source,omitempty"`
	Object *unstructured.Unstructured `json:"object"` // never nil, nor a list
}

// IsBuiltinGroup reports whether an API group is one that the API server itself serves. Groups of projects around Kubernetes,
// such as gateway.networking.k8s.io, come with definitions.
func IsBuiltinGroup(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || slices.Contains(groupsBesideScheme, group)
}

// IsBuiltinKind reports whether a kind is one that the API server itself serves, as far as this program knows its kinds. A
// definition may bring another one in a group of the API server's.
func IsBuiltinKind(gvk schema.GroupVersionKind) bool {
	return scheme.Scheme.Recognizes(gvk) || slices.Contains(groupsBesideScheme, gvk.Group)
}

// groupsBesideScheme are served by the API server itself, though client-go's scheme lacks them.
var groupsBesideScheme = []string{"apiextensions.k8s.io", "apiregistration.k8s.io"}

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
