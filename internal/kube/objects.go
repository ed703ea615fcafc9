package kube

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// ResourceClient returns the client for objects of a kind in a namespace, which is
// ignored for a kind of cluster scope.
func (c *Cluster) ResourceClient(m Mapping, namespace string) (dynamic.ResourceInterface, error) {
	client, err := c.Dynamic()
	if err != nil {
		return nil, err
	}
	if !m.Namespaced {
		return client.Resource(m.Resource), nil
	}
	return client.Resource(m.Resource).Namespace(namespace), nil
}

// Get reads an object in its preferred version. It returns nil, nil for an
// object that isn't there, also when its kind certainly isn't served. Every
// other reason for not having it is an error.
func (c *Cluster) Get(ctx context.Context, id ID) (*unstructured.Unstructured, error) {
	mapping, err := c.Mapping(ctx, id.GroupKind().WithVersion(""), true)
	if _, ok := err.(*NoKindMatchError); ok {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	client, err := c.ResourceClient(mapping, id.Namespace)
	if err != nil {
		return nil, err
	}
	obj, err := client.Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		obj, err = nil, c.ConfirmAbsent(ctx, mapping, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", id, err)
	}
	return obj, nil
}

// lifetimes are the fields of spec that say how long an object stays after it has finished; of any kind, where none is
// named.
var lifetimes = []struct {
	kind string
	path []string
}{
	// https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/, and JobSet and Volcano's Job
	{path: []string{"spec", "ttlSecondsAfterFinished"}},
	// https://github.com/kubeflow/trainer/blob/release-1.9/pkg/apis/kubeflow.org/v1/common_types.go: PyTorchJob and others
	{path: []string{"spec", "runPolicy", "ttlSecondsAfterFinished"}},
	// https://argo-workflows.readthedocs.io/en/latest/fields/#ttlstrategy; a WorkflowTemplate has it for its workflows
	{kind: "Workflow", path: []string{"spec", "ttlStrategy"}},
	// https://github.com/kubeflow/spark-operator/blob/master/docs/api-docs.md
	{kind: "SparkApplication", path: []string{"spec", "timeToLiveSeconds"}},
}

// IsDeletedWhenFinished reports whether the cluster deletes an object some time after it has finished.
func IsDeletedWhenFinished(obj *unstructured.Unstructured) bool {
	for _, l := range lifetimes {
		if value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, l.path...); value != nil && (l.kind == "" || l.kind == obj.GetKind()) {
			return true
		}
	}
	return false
}

// ShallowCopy copies an object so that its fields and those of its metadata can be replaced. What
// they contain is shared.
func ShallowCopy(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := maps.Clone(obj.Object)
	if meta, ok := out["metadata"].(map[string]any); ok {
		out["metadata"] = maps.Clone(meta)
	}
	return &unstructured.Unstructured{Object: out}
}

// Items returns the items of a list in an object that are maps, such as containers; they are part of the object. It is empty where
// no list is at the path.
func Items(in map[string]any, path ...string) []map[string]any {
	at, _, _ := unstructured.NestedFieldNoCopy(in, path...)
	list, _ := at.([]any)
	out := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
