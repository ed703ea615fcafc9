package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Resource returns the client for objects of a kind in a namespace. For a kind
// of cluster scope the namespace is ignored. Errors are those of Mapping.
func (c *Cluster) Resource(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := c.Mapping(ctx, gvk, false)
	if err != nil {
		return nil, err
	}
	return c.ResourceAt(mapping, namespace)
}

// ResourceAt is Resource for a mapping already known.
func (c *Cluster) ResourceAt(m Mapping, namespace string) (dynamic.ResourceInterface, error) {
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
	if _, ok := err.(*NoKindError); ok {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	client, err := c.ResourceAt(mapping, id.Namespace)
	if err != nil {
		return nil, err
	}
	obj, err := client.Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", id, err)
	}
	return obj, nil
}
