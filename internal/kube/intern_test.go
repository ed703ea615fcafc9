package kube

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Interning doesn't change objects, and makes them share equal parts.
func TestSharing(t *testing.T) {
	object := func(name string, replicas int64, port any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "Deployment",
			"metadata": map[string]any{
				"name":   name,
				"labels": map[string]any{"app": "web"},
				"managedFields": []any{
					map[string]any{"manager": "helm", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}}},
				},
			},
			"spec":   map[string]any{"replicas": replicas, "ports": []any{map[string]any{"port": port}}},
			"status": map[string]any{},
			"items":  []any{},
		}}
	}
	s := NewInterner()
	var shared []*unstructured.Unstructured
	for _, obj := range []*unstructured.Unstructured{
		object("a", 1, int64(80)), object("b", 1, int64(80)), object("c", 2, "80"), object("c", 2, float64(80)), object("c", 2, nil),
	} {
		want := obj.DeepCopy()
		shared = append(shared, s.Intern(obj))
		if !reflect.DeepEqual(obj, want) {
			t.Errorf("%v has become %v", want, obj)
		}
	}
	if s.Intern(nil) != nil {
		t.Error("nothing has become something")
	}

	same := func(i, j int, path ...string) bool {
		pointer := func(i int) uintptr {
			part, _, _ := unstructured.NestedFieldNoCopy(shared[i].Object, path...)
			return reflect.ValueOf(part).Pointer()
		}
		return pointer(i) == pointer(j)
	}
	for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "managedFields"}, {"spec"}} {
		if !same(0, 1, path...) {
			t.Errorf("%v isn't shared by equal objects", path)
		}
	}
	if !same(0, 2, "metadata", "labels") || same(0, 2, "spec") || same(2, 3, "spec", "ports") || same(3, 4, "spec", "ports") {
		t.Error("what is equal in different objects isn't shared, or what differs is")
	}
}
