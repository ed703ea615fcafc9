package apply

import (
	"context"
	"sync"

	"deployer/apply/definition"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// schemas finds the schema of a kind in the cheapest source: client-go's built-in
// definitions (a few ms, once), the CRDs of the release, the server's OpenAPI documents,
// the CRDs in the cluster. Otherwise a kind has no schema.
type schemas struct {
	p            *planning
	released     map[schema.GroupVersionKind]func() managedfields.TypeConverter // from the CRDs of this release, made when they are needed
	fromLiveCRDs memo[schema.GroupVersionKind, managedfields.TypeConverter]     // from CRDs that the server hasn't published yet

	mu         sync.Mutex
	distrusted map[schema.GroupVersion]bool // built-in definitions that differ from the server's
}

// distrust replaces the built-in schemas of a group version by the server's own, because
// they are those of another Kubernetes version.
func (s *schemas) distrust(gv schema.GroupVersion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.distrusted[gv] = true
}

func (s *schemas) isBuiltin(gvk schema.GroupVersionKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return scheme.Scheme.Recognizes(gvk) && !s.distrusted[gvk.GroupVersion()]
}

// of returns the type converter of a kind and its schema; the zero type when none is
// known. It asks the server only about kinds that aren't built in.
func (s *schemas) of(ctx context.Context, gvk schema.GroupVersionKind) (managedfields.TypeConverter, typed.ParseableType, error) {
	ofServer := func(ctx context.Context, gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
		return s.p.a.cluster.TypeConverter(ctx, gvk.GroupVersion())
	}
	sources := []func(context.Context, schema.GroupVersionKind) (managedfields.TypeConverter, error){s.ofBuiltin, s.ofReleaseCRD, ofServer, s.ofDefinition}
	if s.p.isAgain() { // what has changed a moment ago isn't published yet
		sources = []func(context.Context, schema.GroupVersionKind) (managedfields.TypeConverter, error){s.ofBuiltin, s.ofReleaseCRD, s.ofDefinition, ofServer}
	}
	for _, schemaOf := range sources {
		conv, err := schemaOf(ctx, gvk)
		if err != nil {
			return nil, typed.ParseableType{}, err
		}
		if t, ok := typeFrom(conv, gvk); ok {
			return conv, t, nil
		}
	}
	return managedfields.NewDeducedTypeConverter(), typed.ParseableType{}, nil
}

// ofBuiltin returns the schemas of built-in kinds; nil for other kinds.
func (s *schemas) ofBuiltin(_ context.Context, gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	if !s.isBuiltin(gvk) {
		return nil, nil
	}
	return s.p.a.builtin()
}

// ofReleaseCRD returns the schema of a custom resource from the CRD of this release; nil when there is
// none, or no usable schema in it.
func (s *schemas) ofReleaseCRD(_ context.Context, gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	if converter, ok := s.released[gvk]; ok {
		return converter(), nil
	}
	return nil, nil
}

// ofDefinition returns the schema of a custom resource from the CRD in the cluster, since
// the server publishes its schema some time after it serves the kind. It is nil when
// there is no CRD, or when it may not be read.
func (s *schemas) ofDefinition(ctx context.Context, gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	mapping, err := s.p.a.cluster.Mapping(ctx, gvk, false)
	if err != nil {
		return nil, nil // whoever needs the kind will say so
	}
	return s.fromLiveCRDs.get(gvk, func() (managedfields.TypeConverter, error) {
		crd, err := s.p.definitions.inCluster(ctx, definition.ID(mapping.Resource.GroupResource()))
		if err != nil || crd == nil {
			return nil, err
		}
		return definition.TypeConverter(gvk, definition.Version(crd, gvk.Version)), nil
	})
}

// typeFrom returns the type of a kind; false when conv doesn't have it or is nil.
func typeFrom(conv managedfields.TypeConverter, gvk schema.GroupVersionKind) (typed.ParseableType, bool) {
	if conv == nil {
		return typed.ParseableType{}, false
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(gvk)
	v, err := conv.ObjectToTyped(empty)
	if err != nil {
		return typed.ParseableType{}, false
	}
	return typed.ParseableType{TypeRef: v.TypeRef(), Schema: v.Schema()}, true
}

// addReleased notes the CRDs of the release: the server doesn't have their schemas yet. They are read when
// an object of the kind has to be compared. A CRD without a usable schema has no effect.
func (s *schemas) addReleased(crds []*unstructured.Unstructured) {
	for _, crd := range crds {
		for _, version := range definition.Versions(crd) {
			name, _ := version["name"].(string)
			gvk := definition.Kind(crd).WithVersion(name)
			s.released[gvk] = sync.OnceValue(func() managedfields.TypeConverter { return definition.TypeConverter(gvk, version) })
		}
	}
}
