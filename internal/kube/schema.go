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
)

// schemas holds what was made of the OpenAPI v3 documents that were asked for.
type schemas struct {
	paths      map[string]openapi.GroupVersionWithContext // index: where each document is
	converters map[schema.GroupVersion]managedfields.TypeConverter
}

// TypeConverter returns what turns objects of a group version into typed
// values, by the API server's own schema. It is nil when the server has none.
func (c *Cluster) TypeConverter(ctx context.Context, gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.indexSchemas(ctx); err != nil {
		return nil, err
	}
	if converter, ok := c.schemas.converters[gv]; ok {
		return converter, nil
	}
	converter, err := c.readSchema(ctx, gv)
	if err == nil {
		c.schemas.converters[gv] = converter
	}
	return converter, err
}

// readSchema asks for the schema of a group version; nil when there is none.
func (c *Cluster) readSchema(ctx context.Context, gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	path := "apis/" + gv.String()
	if gv.Group == "" {
		path = "api/" + gv.Version
	}
	document, ok := c.schemas.paths[path]
	if !ok {
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
	if parsed.Components == nil || parsed.Components.Schemas == nil {
		return nil, nil
	}
	converter, err := managedfields.NewTypeConverter(parsed.Components.Schemas, false)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", gv, err)
	}
	return converter, nil
}

func (c *Cluster) indexSchemas(ctx context.Context) error {
	if c.schemas != nil {
		return nil
	}
	paths, err := c.Typed().Discovery().OpenAPIV3WithContext(ctx).PathsWithContext(ctx)
	if err != nil {
		return fmt.Errorf("asking the cluster for its schemas: %w", err)
	}
	c.schemas = &schemas{paths: paths, converters: map[schema.GroupVersion]managedfields.TypeConverter{}}
	return nil
}
