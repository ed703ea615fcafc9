package apply

import (
	"sort"
	"strings"
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

// rankOf finds the rank of a change: a kind of somebody's own API group that
// happens to be called Service or Job is one of the others.
func rankOf(ranks map[string]rank, c Change) rank {
	if r, ok := ranks[c.ID.Kind]; ok && builtinGroup(c.ID.Group) {
		return r
	}
	return ranks[others]
}

func builtinGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// waves sorts changes into lists of which each needs the earlier ones.
func waves(changes []Change) [][]Change {
	sortBy(installOrder, changes)
	return split(installOrder, changes)
}

func sortBy(order []string, changes []Change) {
	known := ranks(order)
	sort.SliceStable(changes, func(i, j int) bool {
		a, b := rankOf(known, changes[i]), rankOf(known, changes[j])
		switch {
		case a.wave != b.wave:
			return a.wave < b.wave
		case a.place != b.place:
			return a.place < b.place
		case changes[i].ID.Kind != changes[j].ID.Kind:
			return changes[i].ID.Kind < changes[j].ID.Kind
		case changes[i].ID.Namespace != changes[j].ID.Namespace:
			return changes[i].ID.Namespace < changes[j].ID.Namespace
		}
		return changes[i].ID.Name < changes[j].ID.Name
	})
}

// split cuts sorted changes where the wave changes.
func split(order []string, changes []Change) [][]Change {
	var out [][]Change
	known, last := ranks(order), -1
	for _, c := range changes {
		w := rankOf(known, c).wave
		if w != last {
			out = append(out, nil)
			last = w
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}
