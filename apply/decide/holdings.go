package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

// A Holding is something that only one object can have at a time.
type Holding struct {
	What  string         // "hostPort 80/TCP"
	key   string         // the same for all that can't have it together
	nodes map[string]any // the labels of the nodes on which it is held; of no importance when empty
}

// An Exclusive reports whether only one node or pod can use a volume claim at a time.
type Exclusive func(namespace, claim string) bool

// HoldingsOf lists what an object has for itself. A nil object has nothing.
func HoldingsOf(obj *unstructured.Unstructured, exclusive Exclusive) []Holding {
	if obj == nil {
		return nil
	}
	if list, ok := holdings[kube.IDOf(obj).GroupKind()]; ok {
		return list(obj)
	}
	if pod := podSpec(obj); pod != nil {
		return podHoldings(obj, pod, exclusive)
	}
	return nil
}

// holdings has what objects without pods hold, by their kind.
var holdings = map[schema.GroupKind]func(obj *unstructured.Unstructured) []Holding{
	kube.ServiceKind: func(obj *unstructured.Unstructured) []Holding {
		var out []Holding
		for _, port := range kube.Items(obj.Object, "spec", "ports") {
			out = append(out, portHolding("nodePort", port, "nodePort")...)
		}
		spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
		out = append(out, portHolding("nodePort", spec, "healthCheckNodePort")...)
		if address := fields.AsString(spec["loadBalancerIP"]); address != "" {
			out = append(out, held("loadBalancerIP "+address))
		}
		addresses, _, _ := unstructured.NestedStringSlice(spec, "clusterIPs")
		for _, address := range append(addresses, fields.AsString(spec["clusterIP"])) {
			if address != "" && address != "None" {
				out = append(out, held("clusterIP "+address))
			}
		}
		return out
	},
	{Group: "networking.k8s.io", Kind: "Ingress"}: func(obj *unstructured.Unstructured) []Holding {
		var out []Holding
		class, _, _ := unstructured.NestedString(obj.Object, "spec", "ingressClassName")
		class = cmp.Or(class, obj.GetAnnotations()["kubernetes.io/ingress.class"])
		for _, rule := range kube.Items(obj.Object, "spec", "rules") {
			h := held("host " + cmp.Or(fields.AsString(rule["host"]), "*"))
			h.key += " of " + class
			out = append(out, h)
		}
		return out
	},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: func(obj *unstructured.Unstructured) []Holding {
		if global, _ := obj.Object["globalDefault"].(bool); global {
			return []Holding{held("the place of the default PriorityClass")}
		}
		return nil
	},
}

func held(what string) Holding { return Holding{What: what, key: what} }

// portHolding is the port of that field, if it has one.
func portHolding(what string, port map[string]any, field string) []Holding {
	if n := fields.Scalar(port[field]); port[field] != nil && n != "0" {
		return []Holding{held(fmt.Sprintf("%s %s/%s", what, n, cmp.Or(fields.AsString(port["protocol"]), "TCP")))}
	}
	return nil
}

// podSpec is the spec of the pods of a workload, or of a pod; nil for other objects.
func podSpec(obj *unstructured.Unstructured) map[string]any {
	for _, path := range [][]string{{"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}, {"spec"}} {
		spec, _, _ := unstructured.NestedMap(obj.Object, path...)
		if _, ok := spec["containers"].([]any); ok {
			return spec
		}
	}
	return nil
}

func podHoldings(obj *unstructured.Unstructured, pod map[string]any, exclusive Exclusive) []Holding {
	var out []Holding
	nodes, _ := pod["nodeSelector"].(map[string]any)
	onHost, _ := pod["hostNetwork"].(bool)
	for _, list := range []string{"containers", "initContainers"} {
		for _, container := range kube.Items(pod, list) {
			for _, port := range kube.Items(container, "ports") {
				found := portHolding("hostPort", port, "hostPort")
				if onHost && len(found) == 0 {
					found = portHolding("hostPort", port, "containerPort")
				}
				for _, h := range found {
					h.nodes = nodes
					out = append(out, h)
				}
			}
		}
	}
	claims := slices.Collect(claimsOf(obj, pod))
	for _, claim := range claims {
		if exclusive(obj.GetNamespace(), claim) {
			out = append(out, Holding{What: "claim " + claim, key: "claim " + obj.GetNamespace() + "/" + claim})
		}
	}
	return out
}

// claimsOf yields the names of the volume claims that the pods use.
func claimsOf(obj *unstructured.Unstructured, pod map[string]any) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, volume := range kube.Items(pod, "volumes") {
			if name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); name != "" && !yield(name) {
				return
			}
		}
		replicas, stated, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
		if !stated {
			replicas = 1
		}
		for _, template := range kube.Items(obj.Object, "spec", "volumeClaimTemplates") {
			name, _, _ := unstructured.NestedString(template, "metadata", "name")
			for i := range min(replicas, 100) {
				if !yield(fmt.Sprintf("%s-%s-%d", name, obj.GetName(), i)) {
					return
				}
			}
		}
	}
}

// SharedHolding returns what both have, and can't have together.
func SharedHolding(old, next []Holding) (Holding, bool) {
	for _, a := range old {
		for _, b := range next {
			if a.key == b.key && !onOtherNodes(a.nodes, b.nodes) {
				return a, true
			}
		}
	}
	return Holding{}, false
}

func onOtherNodes(a, b map[string]any) bool {
	for label, value := range a {
		if other, ok := b[label]; ok && other != value {
			return true
		}
	}
	return false
}

// WithoutHoldings returns what is in list, and not in others.
func WithoutHoldings(list, others []Holding) []Holding {
	return slices.DeleteFunc(slices.Clone(list), func(h Holding) bool {
		return slices.ContainsFunc(others, func(o Holding) bool { return o.key == h.key })
	})
}

// IsRenamed reports whether a workload whose pods must not run beside those of another version is the
// same as one that the chart brings under another name: pods of both would work on the same data or lock.
func IsRenamed(old, next *unstructured.Unstructured, sameTemplate bool) bool {
	if old == nil || next == nil || old.GetNamespace() != next.GetNamespace() || kube.IDOf(old).GroupKind() != kube.IDOf(next).GroupKind() {
		return false
	}
	strategy, _, _ := unstructured.NestedString(old.Object, "spec", "strategy", "type")
	alone := kube.IDOf(old).GroupKind() == kube.StatefulSetKind || kube.IDOf(old).GroupKind() == kube.DeploymentKind && strategy == "Recreate"
	return alone && (sameTemplate || programOf(old) != "" && programOf(old) == programOf(next))
}

// programOf is the image of a workload's first container, without its tag and digest.
func programOf(obj *unstructured.Unstructured) string {
	containers := kube.Items(podSpec(obj), "containers")
	if len(containers) == 0 {
		return ""
	}
	image, _, _ := strings.Cut(fields.AsString(containers[0]["image"]), "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		image = image[:i]
	}
	return image
}
