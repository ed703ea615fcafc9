package decide

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

// A Holding is something that only one object can have at a time.
type Holding struct {
	What    string         // "hostPort 80/TCP"
	Claim   kube.ID        // the volume claim that it is: only some can be used by one node or pod at a time. Zero otherwise
	key     string         // the same for all that can't have it together
	address string         // of the nodes, on which a port is held; empty: on all
	nodes   map[string]any // the labels of the nodes on which it is held; of no importance when empty
}

// HoldingsOf lists what an object has for itself. A nil object has nothing.
func HoldingsOf(obj *unstructured.Unstructured) []Holding {
	if obj == nil {
		return nil
	}
	if list, ok := holdings[kube.IDOf(obj).GroupKind()]; ok {
		return list(obj)
	}
	if pod := podSpec(obj); pod != nil {
		return append(hostPorts(pod), claims(obj, pod)...)
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

// hostPorts are the ports of nodes that a pod has.
func hostPorts(pod map[string]any) []Holding {
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
					h.nodes, h.address = nodes, strings.TrimPrefix(fields.AsString(port["hostIP"]), "0.0.0.0")
					out = append(out, h)
				}
			}
		}
	}
	return out
}

// claims are the volume claims that the pods of a workload use.
func claims(obj *unstructured.Unstructured, pod map[string]any) []Holding {
	var out []Holding
	add := func(name string) {
		claim := kube.ID{Kind: kube.PersistentVolumeClaimKind.Kind, Namespace: obj.GetNamespace(), Name: name}
		out = append(out, Holding{What: "claim " + name, Claim: claim, key: claim.String()})
	}
	for _, volume := range kube.Items(pod, "volumes") {
		if name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); name != "" {
			add(name)
		}
	}
	replicas, stated, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	if !stated {
		replicas = 1
	}
	for _, template := range kube.Items(obj.Object, "spec", "volumeClaimTemplates") {
		name, _, _ := unstructured.NestedString(template, "metadata", "name")
		for i := range min(replicas, 100) {
			add(fmt.Sprintf("%s-%s-%d", name, obj.GetName(), i))
		}
	}
	return out
}

// SharedHoldings returns what both have, and can't have together.
func SharedHoldings(old, next []Holding) []Holding {
	var out []Holding
	for _, a := range old {
		if slices.ContainsFunc(next, a.excludes) {
			out = append(out, a)
		}
	}
	return out
}

func (h Holding) excludes(other Holding) bool {
	onOtherAddress := h.address != other.address && h.address != "" && other.address != ""
	return h.key == other.key && !onOtherAddress && !onOtherNodes(h.nodes, other.nodes)
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
// same as one that the chart brings under another name: pods of both would work on the same data or lock. A template
// can have many workloads, so it is only a sign that the image has moved to another registry.
func IsRenamed(old, next *unstructured.Unstructured, sameTemplate bool) bool {
	if old == nil || next == nil || old.GetNamespace() != next.GetNamespace() || kube.IDOf(old).GroupKind() != kube.IDOf(next).GroupKind() {
		return false
	}
	strategy, _, _ := unstructured.NestedString(old.Object, "spec", "strategy", "type")
	alone := kube.IDOf(old).GroupKind() == kube.StatefulSetKind || kube.IDOf(old).GroupKind() == kube.DeploymentKind && strategy == "Recreate"
	was, is := programOf(old), programOf(next)
	return alone && was != "" && (was == is || sameTemplate && path.Base(was) == path.Base(is))
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
