package predict

import (
	"cmp"
	"fmt"

	"deployer/apply/builtin"
	"deployer/apply/fields"
	"deployer/internal/kube"
)

// uniqueRules are lists whose items must be unique by more than their keys. An apply
// merges an item of the chart with another manager's item of a different key, and the
// server's validation then rejects the two.
//
// The table was made from all keyed lists of k8s.io/client-go/applyconfigurations
// (x-kubernetes-list-map-keys) and the validation of their items. Lists that aren't
// here have no such rule (env, volumes, webhooks, hostAliases, imagePullSecrets,
// topologySpreadConstraints, ...), or are replaced as a whole (Ingress rules,
// EndpointSlice ports, volumeClaimTemplates, ...).
var uniqueRules = []uniqueRule{
	// k8s.io/kubernetes/pkg/apis/core/validation, validateServicePort
	{in: builtin.ServiceSpec, lists: []string{"ports"}, field: "name", clash: sameServicePortName},
	// …, ValidateService: "Check for duplicate NodePorts"
	{in: builtin.ServiceSpec, lists: []string{"ports"}, field: "nodePort", clash: samePort("nodePort")},
	// …, validateContainerPorts
	{in: builtin.Container, lists: []string{"ports"}, field: "name", clash: sameName},
	// …, validateInitContainers and checkHostPortConflicts: within one container
	{in: builtin.Container, lists: []string{"ports"}, field: "hostPort", clash: samePort("hostPort")},
	// …, validateContainers and checkHostPortConflicts: between containers
	{in: builtin.PodSpec, lists: []string{"containers.ports"}, field: "hostPort", clash: samePort("hostPort")},
	// …, validateInitContainers: "Names must be unique within regular and init containers"
	{in: builtin.PodSpec, lists: []string{"containers", "initContainers"}, across: true, clash: sameName},
	// …, ValidateVolumeDevices
	{in: builtin.Container, lists: []string{"volumeDevices"}, clash: sameName},
	// …, ValidateVolumeMounts and ValidateVolumeDevices: "must not already exist in"
	{in: builtin.Container, lists: []string{"volumeMounts", "volumeDevices"}, across: true, clash: sameName},
	{in: builtin.Container, lists: []string{"volumeMounts", "volumeDevices"}, across: true, clash: samePath},
	// k8s.io/apimachinery/pkg/api/validation, ValidateOwnerReferences
	{in: builtin.ObjectMeta, lists: []string{"ownerReferences"}, field: "controller", clash: bothControl},
}

// A uniqueRule says that items of keyed lists must differ in more than their keys.
type uniqueRule struct {
	in     string   // the type that has the lists
	lists  []string // its fields; "containers.ports" are the ports of each container
	across bool     // holds between items of different lists only
	field  string   // the colliding field if it can be removed alone; empty when only the whole item can
	clash  clash
}

// A clash says why two items can't coexist, as a predicate of the first: "has the same
// name as". Empty when they can.
type clash func(theirs, ours map[string]any) string

func sameName(theirs, ours map[string]any) string {
	name := fields.ItemName(ours)
	if name == "" || theirs["name"] != name {
		return ""
	}
	return fmt.Sprintf("has the name %q, as", name)
}

// sameServicePortName: a single port of a Service needs no name, each of several ports
// does.
func sameServicePortName(theirs, ours map[string]any) string {
	if fields.ItemName(theirs) == "" || fields.ItemName(ours) == "" {
		return "needs a name, as all of several ports do, beside"
	}
	return sameName(theirs, ours)
}

// samePort is the clash of ports of one protocol with the same nodePort, or with the same hostPort at the
// same hostIP, which only the ports of containers have.
func samePort(field string) clash {
	return func(theirs, ours map[string]any) string {
		port := ours[field]
		if port == nil || fields.Equal(port, 0) || !fields.Equal(theirs[field], port) || protocolOf(theirs) != protocolOf(ours) ||
			fields.AsString(theirs["hostIP"]) != fields.AsString(ours["hostIP"]) {
			return ""
		}
		return fmt.Sprintf("has the %s %v, as", field, port)
	}
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
	return fields.AsString(item["mountPath"]) + fields.AsString(item["devicePath"])
}

// protocolOf is the protocol of a port.
func protocolOf(item map[string]any) string {
	return cmp.Or(fields.AsString(item["protocol"]), kube.KeyDefault("protocol"))
}

// CollisionRuleCount is the number of rules: each can make an item collide anew when another one is left out.
func CollisionRuleCount() int { return len(uniqueRules) }
