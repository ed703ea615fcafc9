// Package definition reads CustomResourceDefinitions: the kinds that they define, what is lost
// when one replaces another, and which parts a release has contributed. It makes no requests.
package definition

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

// Mapping is the mapping of CustomResourceDefinitions, the same on every server.
var Mapping = kube.Mapping{
	GVK:       kube.CRDKind.WithVersion("v1"),
	Resource:  schema.GroupVersionResource{Group: kube.CRDKind.Group, Version: "v1", Resource: "customresourcedefinitions"},
	HasStatus: true,
}

// ID returns the identity of the CustomResourceDefinition of a resource.
func ID(gr schema.GroupResource) kube.ID {
	return kube.ID{Group: kube.CRDKind.Group, Kind: kube.CRDKind.Kind, Name: gr.String()}
}

// Kind returns the kind that a CustomResourceDefinition defines.
func Kind(crd *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// Versions returns the versions of a CustomResourceDefinition. They are part of it:
// don't change them.
func Versions(crd *unstructured.Unstructured) []map[string]any {
	return kube.Items(crd.Object, "spec", "versions")
}

// ConversionService returns the Service of the webhook that converts a kind between its
// versions, without a name when there is none, and the storage version.
func ConversionService(crd *unstructured.Unstructured) (service kube.ID, stored string) {
	service.Kind = "Service"
	service.Namespace, _, _ = unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "namespace")
	service.Name, _, _ = unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "name")
	for _, version := range Versions(crd) {
		if version["storage"] == true {
			stored = fields.AsString(version["name"])
		}
	}
	return service, stored
}

// Version returns the entry of a version in spec.versions; nil when there is none.
func Version(crd *unstructured.Unstructured, name string) map[string]any {
	for _, version := range Versions(crd) {
		if version["name"] == name {
			return version
		}
	}
	return nil
}

// Kinds returns the kinds that CustomResourceDefinitions serve, in all their versions.
func Kinds(crds ...*unstructured.Unstructured) map[schema.GroupVersionKind]kube.Mapping {
	out := map[schema.GroupVersionKind]kube.Mapping{}
	for _, crd := range crds {
		gk := Kind(crd)
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
		for _, version := range Versions(crd) {
			if version["served"] == false {
				continue
			}
			gvk := gk.WithVersion(fields.AsString(version["name"]))
			_, status, _ := unstructured.NestedMap(version, "subresources", "status")
			_, scale, _ := unstructured.NestedMap(version, "subresources", "scale")
			out[gvk] = kube.Mapping{
				GVK:        gvk,
				Resource:   gvk.GroupVersion().WithResource(strings.ToLower(plural)),
				Namespaced: scope != "Cluster",
				HasStatus:  status,
				HasScale:   scale,
			}
		}
	}
	return out
}

// TypeConverter returns the types of one entry of spec.versions; nil when its schema is missing
// or unusable. The API server adds the fields of every object to what it publishes, so they are
// added here.
func TypeConverter(gvk schema.GroupVersionKind, version map[string]any) managedfields.TypeConverter {
	node, ok, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	if !ok || err != nil {
		return nil
	}
	properties, _ := node["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	text := map[string]any{"type": "string"}
	properties["apiVersion"], properties["kind"], properties["metadata"] = text, text, metadata
	node["properties"] = properties
	node["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}}
	data, err := json.Marshal(node)
	if err != nil {
		return nil
	}
	var parsed spec.Schema
	if err := json.Unmarshal(data, &parsed); err != nil {
		return nil
	}
	conv, err := managedfields.NewTypeConverter(map[string]*spec.Schema{"object": &parsed}, preservesUnknownFields(node))
	if err != nil {
		return nil
	}
	return conv
}

// metadata is the schema of ObjectMeta as far as a manifest may state it.
var metadata = json.RawMessage(`{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
	"labels": {"type": "object", "additionalProperties": {"type": "string"}},
	"annotations": {"type": "object", "additionalProperties": {"type": "string"}},
	"finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
	"ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
		"items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"uid": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": true}}
}}`)
