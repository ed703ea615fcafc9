package ordering

import (
	"cmp"
	"strings"

	"deployer/internal/kube"
)

// A KindOrder is an order of kinds, in waves: kinds of one wave need no order
// among themselves.
type KindOrder map[string]rank

// A rank is the wave of a kind, counted from 0, and its place in it.
type rank struct{ wave, place int }

// otherKinds stands for all kinds that an order doesn't list.
const otherKinds = "*"

// InstallOrder is the order in which Helm creates objects.
// helm.sh/helm/v3/pkg/releaseutil/kind_sorter.go
var InstallOrder = newKindOrder(
	"PriorityClass Namespace",
	"CustomResourceDefinition",
	"NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget ServiceAccount Secret SecretList ConfigMap"+
		" StorageClass PersistentVolume PersistentVolumeClaim ClusterRole ClusterRoleList Role RoleList RuntimeClass IngressClass",
	"ClusterRoleBinding ClusterRoleBindingList RoleBinding RoleBindingList Service",
	"DaemonSet Pod ReplicationController ReplicaSet Deployment StatefulSet Job CronJob",
	"HorizontalPodAutoscaler Ingress",
	otherKinds,
	"MutatingWebhookConfiguration ValidatingWebhookConfiguration APIService"+
		" ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
)

// lastWaveBeforeWeights is the last wave of InstallOrder with kinds that all others may need:
// namespaces and CRDs.
const lastWaveBeforeWeights = 1

// UninstallOrder is the order in which Helm deletes objects: admission first, then what
// is reachable from outside, then workloads, then their dependencies. Custom resources
// come before the workloads that may hold their finalizers.
var UninstallOrder = newKindOrder(
	"APIService MutatingWebhookConfiguration ValidatingWebhookConfiguration"+
		" ValidatingAdmissionPolicyBinding MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy MutatingAdmissionPolicy",
	otherKinds,
	"Ingress Service HorizontalPodAutoscaler",
	"CronJob Job StatefulSet Deployment ReplicaSet ReplicationController Pod DaemonSet",
	"RoleBindingList RoleBinding ClusterRoleBindingList ClusterRoleBinding",
	"RoleList Role ClusterRoleList ClusterRole",
	"PersistentVolumeClaim PersistentVolume StorageClass ConfigMap SecretList Secret ServiceAccount PodDisruptionBudget"+
		" PodSecurityPolicy LimitRange ResourceQuota NetworkPolicy IngressClass RuntimeClass",
	"CustomResourceDefinition",
	"Namespace PriorityClass",
)

func newKindOrder(waves ...string) KindOrder {
	out := KindOrder{}
	for i, wave := range waves {
		for j, kind := range strings.Fields(wave) {
			out[kind] = rank{i, j}
		}
	}
	return out
}

// rank returns the rank of an object. A custom kind that happens to be named Service or
// Job is one of the other kinds.
func (o KindOrder) rank(id kube.ID) rank {
	if r, ok := o[id.Kind]; ok && kube.IsBuiltinGroup(id.Group) {
		return r
	}
	return o[otherKinds]
}

// compare compares objects of one wave: Helm's order of kinds, then by name.
func (o KindOrder) compare(a, b kube.ID) int {
	x, y := o.rank(a), o.rank(b)
	return cmp.Or(cmp.Compare(x.wave, y.wave), cmp.Compare(x.place, y.place),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// IsCustom reports whether an object is of none of the kinds that InstallOrder lists.
func IsCustom(id kube.ID) bool { return InstallOrder.rank(id) == InstallOrder[otherKinds] }
