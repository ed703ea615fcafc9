package decide

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/lazyregexp"
)

// A Shortage is what an object of the release can't have at the moment, in the words of the API server or the scheduler. Without
// words it may be any traffic: nobody says what a policy for networks cuts off.
type Shortage struct {
	Namespace string // of the object
	Message   string
}

// IsOfNodes reports whether nodes lack resources: a new one may be on its way.
func (s Shortage) IsOfNodes() bool { return strings.Contains(s.Message, "Insufficient ") }

// MayEndWithout reports whether it may be over when another object is gone, because that has what is short, or its pods have.
func (s Shortage) MayEndWithout(obj *unstructured.Unstructured) bool {
	if obj == nil || s.Message == "" {
		return obj != nil && filtersTraffic[obj.GroupVersionKind().GroupKind()]
	}
	if requested := requestedOfQuota().FindStringSubmatch(s.Message); requested != nil {
		return obj.GetNamespace() == s.Namespace && slices.ContainsFunc(strings.Split(requested[1], ","), func(entry string) bool {
			resource, _, _ := strings.Cut(entry, "=")
			return isCounted(obj, resource)
		})
	}
	pod := podSpec(obj)
	return pod != nil && slices.ContainsFunc(shortages, func(r shortageOfPods) bool {
		return r.pattern().MatchString(s.Message) && (r.has == nil || r.has(obj, pod))
	})
}

// filtersTraffic are the kinds that may cut pods off from what they need to be ready.
var filtersTraffic = map[schema.GroupKind]bool{
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:          true,
	{Group: "cilium.io", Kind: "CiliumNetworkPolicy"}:            true,
	{Group: "cilium.io", Kind: "CiliumClusterwideNetworkPolicy"}: true,
	{Group: "crd.projectcalico.org", Kind: "NetworkPolicy"}:      true,
	{Group: "security.istio.io", Kind: "AuthorizationPolicy"}:    true,
}

// requestedOfQuota has the resources that a ResourceQuota has no room for.
// k8s.io/apiserver/pkg/admission/plugin/resourcequota
var requestedOfQuota = lazyregexp.New(`exceeded quota: [^,]+, requested: ([^ ]+), used: `)

// isCounted reports whether a ResourceQuota counts an object, or its pods, for a resource.
// https://kubernetes.io/docs/concepts/policy/resource-quotas/
func isCounted(obj *unstructured.Unstructured, resource string) bool {
	plural, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	own := plural.GroupResource().String()
	counted, byCount := strings.CutPrefix(resource, "count/")
	family, _, _ := strings.Cut(resource, ".")
	switch {
	case byCount:
		return counted == own || podSpec(obj) != nil && slices.Contains([]string{"pods", "replicasets.apps", "jobs.batch"}, counted)
	case strings.HasSuffix(resource, "requests.storage"), strings.HasSuffix(resource, ".storageclass.storage.k8s.io/persistentvolumeclaims"):
		return own == "persistentvolumeclaims"
	case slices.Contains([]string{"services", "configmaps", "secrets", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas"}, family):
		return own == family
	}
	return podSpec(obj) != nil
}

// A shortageOfPods is what a pod can't have while pods of others have it.
type shortageOfPods struct {
	pattern lazyregexp.Regexp
	has     func(obj *unstructured.Unstructured, pod map[string]any) bool // nil: all pods may have it
}

// shortages are the scheduler's words, and those of the controller that attaches volumes.
// k8s.io/kubernetes/pkg/scheduler/framework/plugins, k8s.io/kubernetes/pkg/controller/volume/attachdetach
var shortages = []shortageOfPods{
	{lazyregexp.New(`free ports`), func(_ *unstructured.Unstructured, pod map[string]any) bool { return len(hostPorts(pod)) > 0 }},
	{lazyregexp.New(`Insufficient |Too many pods|anti-affinity|topology spread|cannot allocate all claims`), nil},
	{lazyregexp.New(`Multi-Attach|ReadWriteOncePod|max volume count`), func(obj *unstructured.Unstructured, pod map[string]any) bool { return len(claims(obj, pod)) > 0 }},
}
