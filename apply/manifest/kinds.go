package manifest

import (
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

// normaliseByKind applies the rules for single kinds.
func (n *normaliser) normaliseByKind(obj *unstructured.Unstructured) {
	rules := map[schema.GroupKind]func(*normaliser, *unstructured.Unstructured){
		{Kind: "Secret"}:         (*normaliser).normaliseSecret,
		{Kind: "ConfigMap"}:      (*normaliser).normaliseConfigMap,
		{Kind: "Service"}:        (*normaliser).normaliseService,
		{Kind: "ServiceAccount"}: (*normaliser).normaliseServiceAccount,
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: (*normaliser).normaliseNetworkPolicy,
		kube.ClusterRoleKind: (*normaliser).normaliseClusterRole,
	}
	kind := obj.GroupVersionKind().GroupKind()
	if rule, ok := rules[kind]; ok {
		rule(n, obj)
	}
	if parents, ok := caBundleParents[kind]; ok {
		dropPlaceholderCABundles(obj.Object, parents, requestsInjection(obj))
	}
}

// normaliseSecret writes stringData as data: an apply owns the field that it names, so a
// key removed from stringData would stay in data for ever (kubernetes#108008).
func (n *normaliser) normaliseSecret(obj *unstructured.Unstructured) {
	n.normaliseStrings(obj.Object, "", "data")
	n.normaliseStrings(obj.Object, "", "stringData")
	plain := obj.Object["stringData"]
	delete(obj.Object, "stringData")
	values, isMap := plain.(map[string]any)
	if plain != nil && !isMap {
		n.addProblem("stringData", "is not a map")
	}
	if len(values) == 0 {
		return
	}
	data, _ := obj.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for key, v := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(fields.AsString(v)))
	}
	obj.Object["data"] = data
}

func (n *normaliser) normaliseConfigMap(obj *unstructured.Unstructured) {
	n.normaliseStrings(obj.Object, "", "data")
	n.normaliseStrings(obj.Object, "", "binaryData")
}

// normaliseStrings checks a map in parent whose values must be strings, and gives keys without a
// value the empty string that a POST would give them.
func (n *normaliser) normaliseStrings(parent map[string]any, path, field string) {
	values, ok := parent[field].(map[string]any)
	if !ok {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := fields.Join(fields.Join(path, field), key)
		switch v := values[key].(type) {
		case string:
		case nil:
			values[key] = ""
			n.addNote(at, "has no value: sent as an empty string")
		default:
			n.addProblem(at, "is a %s, should be a string: quote it in the template", plain(typeName(v)))
			values[key] = ""
		}
	}
}

// normaliseService drops empty values that mean "choose for me". If they were applied, they would
// claim fields that the API server fills.
// (https://kubernetes.io/docs/concepts/services-networking/service/)
func (n *normaliser) normaliseService(obj *unstructured.Unstructured) {
	spec, _ := obj.Object["spec"].(map[string]any)
	for _, field := range []string{"clusterIP", "loadBalancerIP", "externalName", "healthCheckNodePort", "clusterIPs"} {
		dropEmpty(spec, field)
	}
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if port, ok := p.(map[string]any); ok {
			dropEmpty(port, "nodePort")
		}
	}
}

// normaliseServiceAccount drops empty lists: others add to them.
func (n *normaliser) normaliseServiceAccount(obj *unstructured.Unstructured) {
	dropEmpty(obj.Object, "secrets")
	dropEmpty(obj.Object, "imagePullSecrets")
}

// normaliseNetworkPolicy sets the policyTypes. The API server defaults them only at creation, so
// egress rules that are added later would have no effect.
func (n *normaliser) normaliseNetworkPolicy(obj *unstructured.Unstructured) {
	spec, _ := obj.Object["spec"].(map[string]any)
	if types, _ := spec["policyTypes"].([]any); spec == nil || len(types) > 0 {
		return
	}
	types := []any{"Ingress"}
	if egress, _ := spec["egress"].([]any); len(egress) > 0 {
		types = append(types, "Egress")
	}
	spec["policyTypes"] = types
}

// setBothServiceAccountNames sets both names of a pod's service account. The API server copies one to the
// other. When the chart drops the stated one, the server would restore it from the copy,
// and pods would keep an account that the release deletes.
func setBothServiceAccountNames(spec map[string]any) {
	account := cmp.Or(fields.AsString(spec["serviceAccountName"]), fields.AsString(spec["serviceAccount"]))
	if account != "" {
		spec["serviceAccountName"], spec["serviceAccount"] = account, account
	}
}

// normaliseClusterRole drops the rules of an aggregated role, which a controller computes:
// applying them would empty them for a moment (kubernetes#118648).
func (n *normaliser) normaliseClusterRole(obj *unstructured.Unstructured) {
	if !kube.IsAggregated(obj) {
		return
	}
	if rules, _ := obj.Object["rules"].([]any); len(rules) > 0 {
		n.addNote("rules", "are computed by the cluster for a role with aggregationRule: not sent")
	}
	delete(obj.Object, "rules")
}

// caBundleParents are the kinds with caBundles, which controllers fill in, and the fields that lead to what has one.
var caBundleParents = map[schema.GroupKind][]string{
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {"webhooks", "clientConfig"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {"webhooks", "clientConfig"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               {"spec", "conversion", "webhook", "clientConfig"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           {"spec"},
}

// HasCABundle says that controllers fill in the caBundles of a kind.
func HasCABundle(kind schema.GroupKind) bool { return caBundleParents[kind] != nil }

// dropPlaceholderCABundles drops caBundles that are placeholders for what a controller fills in. parents lead to
// what has them, through all items of lists.
func dropPlaceholderCABundles(v any, parents []string, injected bool) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			dropPlaceholderCABundles(item, parents, injected)
		}
	case map[string]any:
		if len(parents) > 0 {
			dropPlaceholderCABundles(v[parents[0]], parents[1:], injected)
		} else if injected || !isPEM(fields.AsString(v["caBundle"])) {
			delete(v, "caBundle")
		}
	}
}

func isPEM(encoded string) bool {
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return false
	}
	block, _ := pem.Decode(data)
	return block != nil
}

// requestsInjection says that the object asks a controller for its caBundle.
// https://cert-manager.io/docs/concepts/ca-injector/
func requestsInjection(obj *unstructured.Unstructured) bool {
	for key := range obj.GetAnnotations() {
		if strings.HasPrefix(key, "cert-manager.io/inject-") || key == "service.beta.openshift.io/inject-cabundle" {
			return true
		}
	}
	return false
}

func dropEmpty(m map[string]any, field string) {
	v := m[field]
	if list, isList := v.([]any); v == nil || v == "" || isList && len(list) == 0 || fmt.Sprint(v) == "0" {
		delete(m, field)
	}
}
