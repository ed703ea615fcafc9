package apply

import (
	"fmt"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

// Keys of lists whose items the API server tells apart by more than their keys. Two
// items with different keys, one of them the chart's and one somebody else's, are
// merged side by side by an apply, and refused by the server's validation.
//
// The table was made from all keyed lists of k8s.io/client-go/applyconfigurations
// (x-kubernetes-list-map-keys) and the validation of their items. Lists that aren't
// here have no such rule (env, volumes, webhooks, hostAliases, imagePullSecrets,
// topologySpreadConstraints, ...), or are replaced as a whole (Ingress rules,
// EndpointSlice ports, volumeClaimTemplates, ...).
var uniqueRules = []uniqueRule{
	// k8s.io/kubernetes/pkg/apis/core/validation, validateServicePort
	{in: serviceSpec, lists: []string{"ports"}, field: "name", clash: sameServicePortName},
	// …, ValidateService: "Check for duplicate NodePorts"
	{in: serviceSpec, lists: []string{"ports"}, field: "nodePort", clash: sameNodePort},
	// …, validateContainerPorts
	{in: container, lists: []string{"ports"}, field: "name", clash: sameName},
	// …, validateInitContainers and checkHostPortConflicts: within one container
	{in: container, lists: []string{"ports"}, field: "hostPort", clash: sameHostPort},
	// …, validateContainers and checkHostPortConflicts: between containers
	{in: podSpec, lists: []string{"containers.ports"}, field: "hostPort", clash: sameHostPort},
	// …, validateInitContainers: "Names must be unique within regular and init containers"
	{in: podSpec, lists: []string{"containers", "initContainers"}, across: true, clash: sameName},
	// …, ValidateVolumeDevices
	{in: container, lists: []string{"volumeDevices"}, clash: sameName},
	// …, ValidateVolumeMounts and ValidateVolumeDevices: "must not already exist in"
	{in: container, lists: []string{"volumeMounts", "volumeDevices"}, across: true, clash: sameName},
	{in: container, lists: []string{"volumeMounts", "volumeDevices"}, across: true, clash: samePath},
	// k8s.io/apimachinery/pkg/api/validation, ValidateOwnerReferences
	{in: objectMeta, lists: []string{"ownerReferences"}, field: "controller", clash: bothControl},
}

// Types of the API, by the names that schemas give them.
const (
	serviceSpec = "io.k8s.api.core.v1.ServiceSpec"
	podSpec     = "io.k8s.api.core.v1.PodSpec"
	container   = "io.k8s.api.core.v1.Container"
	objectMeta  = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// A uniqueRule says that items of keyed lists must differ in more than their keys.
type uniqueRule struct {
	in     string   // the type that has the lists
	lists  []string // its fields; "containers.ports" are the ports of each container
	across bool     // holds between items of different lists only
	field  string   // what may go of an item without the item; empty when nothing may
	clash  clash
}

// A clash says why two items can't be together, as a predicate of the first: "has
// the same name as". It is empty when they can.
type clash func(theirs, ours map[string]any) string

func sameName(theirs, ours map[string]any) string {
	name, _ := ours["name"].(string)
	if name == "" || theirs["name"] != name {
		return ""
	}
	return fmt.Sprintf("has the name %q, as", name)
}

// sameServicePortName: the only port of a Service needs no name, one of several does.
func sameServicePortName(theirs, ours map[string]any) string {
	a, _ := theirs["name"].(string)
	b, _ := ours["name"].(string)
	if a == "" || b == "" {
		return "needs a name, as all of several ports do, beside"
	}
	return sameName(theirs, ours)
}

func sameNodePort(theirs, ours map[string]any) string {
	port := ours["nodePort"]
	if isUnset(port) || !fields.Equal(theirs["nodePort"], port) || protocolOf(theirs) != protocolOf(ours) {
		return ""
	}
	return fmt.Sprintf("has the nodePort %v, as", port)
}

func sameHostPort(theirs, ours map[string]any) string {
	port := ours["hostPort"]
	if isUnset(port) || !fields.Equal(theirs["hostPort"], port) || protocolOf(theirs) != protocolOf(ours) || textOf(theirs["hostIP"]) != textOf(ours["hostIP"]) {
		return ""
	}
	return fmt.Sprintf("has the hostPort %v, as", port)
}

func samePath(theirs, ours map[string]any) string {
	path := mountedAt(ours)
	if path == "" || mountedAt(theirs) != path {
		return ""
	}
	return fmt.Sprintf("has the path %q, as", path)
}

func bothControl(theirs, ours map[string]any) string {
	if theirs["controller"] != true || ours["controller"] != true {
		return ""
	}
	return "is the controller, as"
}

func mountedAt(item map[string]any) string {
	return textOf(item["mountPath"]) + textOf(item["devicePath"])
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

// protocolOf is the protocol of a port.
func protocolOf(item map[string]any) string {
	if p := textOf(item["protocol"]); p != "" {
		return p
	}
	return kube.KeyDefault("protocol")
}

func isUnset(port any) bool { return port == nil || fields.Equal(port, 0) }
