package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// schemas holds the OpenAPI v3 documents that were asked for, by group version.
type schemas struct {
	paths      map[string]openapi.GroupVersionWithContext // index: where each document is
	converters map[schema.GroupVersion]managedfields.TypeConverter
	specs      map[schema.GroupVersion]map[string]*spec.Schema
}

// Schema returns the definitions of a group version as the API server
// publishes them, by definition name. It is nil when the server has none.
func (c *Cluster) Schema(ctx context.Context, gv schema.GroupVersion) (map[string]*spec.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.schema(ctx, gv)
}

// TypeConverter returns what turns objects of a group version into typed
// values, by the API server's own schema. It is nil when the server has none.
func (c *Cluster) TypeConverter(ctx context.Context, gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	definitions, err := c.schema(ctx, gv)
	if err != nil || definitions == nil {
		return nil, err
	}
	if converter, ok := c.schemas.converters[gv]; ok {
		return converter, nil
	}
	converter, err := managedfields.NewTypeConverter(definitions, false)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", gv, err)
	}
	c.schemas.converters[gv] = converter
	return converter, nil
}

func (c *Cluster) schema(ctx context.Context, gv schema.GroupVersion) (map[string]*spec.Schema, error) {
	if err := c.indexSchemas(ctx); err != nil {
		return nil, err
	}
	if definitions, ok := c.schemas.specs[gv]; ok {
		return definitions, nil
	}
	path := "apis/" + gv.String()
	if gv.Group == "" {
		path = "api/" + gv.Version
	}
	document, ok := c.schemas.paths[path]
	if !ok {
		c.schemas.specs[gv] = nil
		return nil, nil
	}
	data, err := document.SchemaWithContext(ctx, runtime.ContentTypeJSON)
	if err != nil {
		return nil, fmt.Errorf("asking the cluster for the schema of %s: %w", gv, err)
	}
	var parsed spec3.OpenAPI
	if err := json.Unmarshal(data, &parsed); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", gv, err)
	}
	if parsed.Components != nil {
		c.schemas.specs[gv] = parsed.Components.Schemas
	}
	return c.schemas.specs[gv], nil
}

func (c *Cluster) indexSchemas(ctx context.Context) error {
	if c.schemas != nil {
		return nil
	}
	typed, err := c.Typed()
	if err != nil {
		return err
	}
	paths, err := typed.Discovery().OpenAPIV3WithContext(ctx).PathsWithContext(ctx)
	if err != nil {
		return fmt.Errorf("asking the cluster for its schemas: %w", err)
	}
	c.schemas = &schemas{
		paths:      paths,
		converters: map[schema.GroupVersion]managedfields.TypeConverter{},
		specs:      map[schema.GroupVersion]map[string]*spec.Schema{},
	}
	return nil
}
