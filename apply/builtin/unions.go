package builtin

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// A Union is a group of fields of one type of the API of which an object may have one only, or only those that its
// discriminator allows. An apply doesn't know that: it removes what the chart has dropped from the old member, and leaves
// what nobody or somebody else owns there, and validation refuses the two members together.
type Union struct {
	members []string // nil if all fields but others are members
	others  []string

	// List is the list whose items have the members; empty if the value itself has them.
	List string
	// Discriminator is the field whose value says which members may be there; empty if there may be one.
	Discriminator string
	allowed       map[string][]string // by value of the discriminator
	otherwise     string              // its value by default; empty if it has none

	// Pruned says that the API server removes what others have left of the members that may not be there.
	Pruned bool

	// Default is the member that the API server sets if there is none; empty if it sets none.
	Default string
}

// unions are the unions of the types that objects have in lists with keys and in structures, by API group and type, of all
// versions. Unions of items of lists without keys, such as metrics of autoscalers, peers of network policies or projected
// sources, need no rule: an apply replaces such lists.
var unions = map[string][]Union{
	"core.AppArmorProfile":  {{Discriminator: "type", members: []string{"localhostProfile"}, allowed: map[string][]string{"Localhost": {"localhostProfile"}}}},
	"core.EnvVar":           {{members: []string{"value", "valueFrom"}}},
	"core.EnvVarSource":     {{}},
	"core.LifecycleHandler": {{}},
	"core.PersistentVolumeSpec": {{others: []string{"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
		"storageClassName", "volumeAttributesClassName", "volumeMode"}}},
	"core.PodResourceClaim": {{members: []string{"resourceClaimName", "resourceClaimTemplateName"}}},
	"core.Probe":            {{members: []string{"exec", "grpc", "httpGet", "tcpSocket"}}},
	"core.SeccompProfile":   {{Discriminator: "type", members: []string{"localhostProfile"}, allowed: map[string][]string{"Localhost": {"localhostProfile"}}}},
	"core.ServiceSpec": {
		{Discriminator: "sessionAffinity", members: []string{"sessionAffinityConfig"}, allowed: map[string][]string{"ClientIP": {"sessionAffinityConfig"}}, otherwise: "None"},
		{Discriminator: "type", members: []string{"loadBalancerSourceRanges"}, allowed: map[string][]string{"LoadBalancer": {"loadBalancerSourceRanges"}}, otherwise: "ClusterIP"},
		// dropTypeDependentFields of k8s.io/kubernetes/pkg/registry/core/service/strategy.go
		{Discriminator: "type", members: []string{"allocateLoadBalancerNodePorts", "externalTrafficPolicy", "healthCheckNodePort", "loadBalancerClass"}, Pruned: true, otherwise: "ClusterIP",
			allowed: map[string][]string{"LoadBalancer": {"allocateLoadBalancerNodePorts", "externalTrafficPolicy", "healthCheckNodePort", "loadBalancerClass"}, "NodePort": {"externalTrafficPolicy"}}},
		{Discriminator: "type", List: "ports", members: []string{"nodePort"}, Pruned: true, otherwise: "ClusterIP",
			allowed: map[string][]string{"LoadBalancer": {"nodePort"}, "NodePort": {"nodePort"}}},
	},
	"core.Volume":      {{others: []string{"name"}, Default: "emptyDir"}},
	"core.VolumeMount": {{members: []string{"subPath", "subPathExpr"}}},

	"apps.DaemonSetUpdateStrategy":   {rollingUpdate},
	"apps.DeploymentStrategy":        {rollingUpdate},
	"apps.StatefulSetUpdateStrategy": {rollingUpdate},

	"networking.IngressBackend":      {{}},
	"networking.ServiceBackendPort":  {{}}, // whole since Kubernetes 1.31
	"policy.PodDisruptionBudgetSpec": {{members: []string{"maxUnavailable", "minAvailable"}}},

	"admissionregistration.WebhookClientConfig": {webhook},
	"apiextensions.WebhookClientConfig":         {webhook},
	"apiextensions.CustomResourceConversion":    {{Discriminator: "strategy", members: []string{"webhook"}, allowed: map[string][]string{"Webhook": {"webhook"}}, otherwise: "None"}},
	"apiregistration.APIServiceSpec":            {{Discriminator: "insecureSkipTLSVerify", members: []string{"caBundle"}, allowed: map[string][]string{"false": {"caBundle"}}, otherwise: "false"}},

	"flowcontrol.LimitResponse": {{Discriminator: "type", members: []string{"queuing"}, allowed: map[string][]string{"Queue": {"queuing"}}}},
	"flowcontrol.PriorityLevelConfigurationSpec": {{Discriminator: "type", members: []string{"exempt", "limited"},
		allowed: map[string][]string{"Exempt": {"exempt"}, "Limited": {"limited"}}}},
}

var (
	rollingUpdate = Union{Discriminator: "type", members: []string{"rollingUpdate"}, allowed: map[string][]string{"RollingUpdate": {"rollingUpdate"}}, otherwise: "RollingUpdate"}
	webhook       = Union{members: []string{"service", "url"}}
)

// UnionsOf returns the unions of a type.
func UnionsOf(ref schema.TypeRef) []Union {
	if ref.NamedType == nil {
		return nil
	}
	parts := strings.Split(*ref.NamedType, ".") // io.k8s.api.core.v1.Volume
	if n := len(parts); n > 3 && parts[0] == "io" && parts[1] == "k8s" {
		return unions[parts[n-3]+"."+parts[n-1]]
	}
	return nil
}

// MembersOf returns the members that a value of the type has, in alphabetical order.
func (u Union) MembersOf(value map[string]any) []string {
	var out []string
	for field, v := range value {
		isMember := slices.Contains(u.members, field) || u.members == nil && !slices.Contains(u.others, field)
		if v != nil && isMember {
			out = append(out, field)
		}
	}
	slices.Sort(out)
	return out
}

// Allows reports whether a member may be there with a value of the discriminator; nil is none.
func (u Union) Allows(member string, discriminator any) bool {
	value := u.otherwise
	if discriminator != nil {
		value = fmt.Sprint(discriminator)
	}
	return value == "" || slices.Contains(u.allowed[value], member)
}
