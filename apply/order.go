package apply

import (
	"cmp"
	"strings"

	"deployer/internal/kube"
)

// installOrder is Helm's, by wave: kinds of one line need no order among
// themselves. Kinds that aren't listed come in the wave "others".
// helm.sh/helm/v3/pkg/releaseutil/kind_sorter.go
var installOrder = []string{
	"PriorityClass Namespace",
	"CustomResourceDefinition",
	"NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget ServiceAccount Secret SecretList ConfigMap" +
		" StorageClass PersistentVolume PersistentVolumeClaim ClusterRole ClusterRoleList Role RoleList RuntimeClass IngressClass",
	"ClusterRoleBinding ClusterRoleBindingList RoleBinding RoleBindingList Service",
	"DaemonSet Pod ReplicationController ReplicaSet Deployment StatefulSet Job CronJob",
	"HorizontalPodAutoscaler Ingress",
	others,
	"MutatingWebhookConfiguration ValidatingWebhookConfiguration APIService" +
		" ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
}

const others = "*"

// lastEarly is the last wave of what all else may need: kinds and namespaces.
const lastEarly = 1

// uninstallOrder is Helm's: what admits requests goes first, then what is
// reached from outside, then workloads, then what they use. Custom resources
// come before the workloads that may hold their finalizers.
var uninstallOrder = []string{
	"APIService MutatingWebhookConfiguration ValidatingWebhookConfiguration" +
		" ValidatingAdmissionPolicyBinding MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy MutatingAdmissionPolicy",
	others,
	"Ingress Service HorizontalPodAutoscaler",
	"CronJob Job StatefulSet Deployment ReplicaSet ReplicationController Pod DaemonSet",
	"RoleBindingList RoleBinding ClusterRoleBindingList ClusterRoleBinding",
	"RoleList Role ClusterRoleList ClusterRole",
	"PersistentVolumeClaim PersistentVolume StorageClass ConfigMap SecretList Secret ServiceAccount PodDisruptionBudget" +
		" PodSecurityPolicy LimitRange ResourceQuota NetworkPolicy IngressClass RuntimeClass",
	"CustomResourceDefinition",
	"Namespace PriorityClass",
}

// ranks gives the wave of each kind of an order, and its place in it. The place
// of kinds that aren't listed is at "*".
func ranks(order []string) map[string]rank {
	out := map[string]rank{}
	for i, line := range order {
		for j, kind := range strings.Fields(line) {
			out[kind] = rank{i, j}
		}
	}
	return out
}

type rank struct{ wave, place int }

// rankOf finds the rank of an object: a kind of somebody's own API group that
// happens to be called Service or Job is one of the others.
func rankOf(ranks map[string]rank, id kube.ID) rank {
	if r, ok := ranks[id.Kind]; ok && builtinGroup(id.Group) {
		return r
	}
	return ranks[others]
}

func builtinGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// inOrder compares objects of one wave: Helm's order of kinds, then by name.
func inOrder(ranks map[string]rank, a, b kube.ID) bool {
	x, y := rankOf(ranks, a), rankOf(ranks, b)
	return cmp.Or(cmp.Compare(x.wave, y.wave), cmp.Compare(x.place, y.place),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}
