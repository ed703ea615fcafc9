package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"deployer/internal/kube"
)

// A lookupProvider provides the clients of the template function lookup. It uses the
// cluster's cached discovery, and its requests end with ctx.
type lookupProvider struct {
	ctx     context.Context // of the one rendering it was made for
	cluster *kube.Cluster   // nil: lookup finds nothing
	cache   *LookupCache
	onRead  func(*unstructured.Unstructured) // called for each object that is read; may be nil
	tracker *templateTracker                 // told of the lookups that are marks
	keys    *keySupply                       // what lookups of newKeyKind find; nil when templates have none
}

// A LookupCache caches the results of lookups, so that several renderings see the same
// state of the cluster. The zero value is ready to use; nil caches nothing. It is safe for
// concurrent use.
type LookupCache struct {
	mu      sync.Mutex
	answers map[lookupKey]any // *unstructured.Unstructured, *unstructured.UnstructuredList or error
	asking  map[lookupKey]*sync.Mutex
}

type lookupKey struct{ apiVersion, kind, namespace, name string }

// lock makes renderings that look up the same at the same time ask one after the other: the second gets
// the first one's answer.
func (c *LookupCache) lock(q lookupKey) (unlock func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	if c.asking == nil {
		c.asking = map[lookupKey]*sync.Mutex{}
	}
	asking := c.asking[q]
	if asking == nil {
		asking = &sync.Mutex{}
		c.asking[q] = asking
	}
	c.mu.Unlock()
	asking.Lock()
	return asking.Unlock
}

// get returns a copy of a cached answer, because templates may change it; nil when there is none.
func (c *LookupCache) get(q lookupKey) any {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch answer := c.answers[q].(type) {
	case runtime.Object:
		return answer.DeepCopyObject()
	default:
		return answer
	}
}

// store caches an answer or a not-found error. Other errors aren't cached.
func (c *LookupCache) store(q lookupKey, answer runtime.Object, err error) {
	if c == nil || err != nil && !apierrors.IsNotFound(err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil {
		c.answers = map[lookupKey]any{}
	}
	if c.answers[q] = answer.DeepCopyObject(); err != nil {
		c.answers[q] = err
	}
}

// GetClientFor implements engine.ClientProvider. For a kind that isn't served lookup finds
// nothing, so that a plan can be made before a chart's CRDs exist. (Helm fails when the
// group isn't served.)
func (p *lookupProvider) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	client := &lookupClient{lookupProvider: p, apiVersion: apiVersion, kind: kind}
	if p.cluster == nil || client.isMark() || client.isKey() {
		return client, false, nil
	}
	mapping, err := p.cluster.Mapping(p.ctx, schema.FromAPIVersionAndKind(apiVersion, kind), false)
	if errors.As(err, new(*kube.NoKindMatchError)) {
		return client, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	requests, err := p.cluster.Dynamic()
	if err != nil {
		return nil, false, err
	}
	client.resources = requests.Resource(mapping.Resource)
	client.ResourceInterface = client.resources
	return client, mapping.Namespaced, nil
}

// A lookupClient reads with our context, because the engine passes none. Its resources are
// nil for a kind that isn't served, without a cluster, and for what isn't in the cluster: marks and new keys.
type lookupClient struct {
	dynamic.ResourceInterface
	*lookupProvider
	resources                   dynamic.NamespaceableResourceInterface
	apiVersion, kind, namespace string
}

// isMark reports whether a lookup is the mark of a template.
func (c *lookupClient) isMark() bool { return c.apiVersion == "" && c.kind == templateMarkKind }

// isKey reports whether a lookup is that of a new key.
func (c *lookupClient) isKey() bool {
	return c.keys != nil && c.apiVersion == "" && c.kind == newKeyKind
}

// Namespace returns the client for one namespace.
func (c *lookupClient) Namespace(namespace string) dynamic.ResourceInterface {
	if c.resources == nil {
		return c
	}
	in := *c
	in.namespace, in.ResourceInterface = namespace, c.resources.Namespace(namespace)
	return &in
}

// Get reads one object. That of a mark has the number of its template as name.
func (c *lookupClient) Get(_ context.Context, name string, opts metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	if c.isMark() {
		c.tracker.recordStart(name)
	}
	if c.isKey() {
		key, err := c.keys.next()
		return &unstructured.Unstructured{Object: map[string]any{"key": key}}, err
	}
	if c.ResourceInterface == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: c.kind}, name)
	}
	q := lookupKey{c.apiVersion, c.kind, c.namespace, name}
	defer c.cache.lock(q)()
	switch answer := c.cache.get(q).(type) {
	case *unstructured.Unstructured:
		return answer, nil
	case error:
		return nil, answer
	}
	obj, err := c.ResourceInterface.Get(c.ctx, name, opts, sub...)
	c.cache.store(q, obj, err)
	if err != nil {
		id := kube.ID{Kind: c.kind, Namespace: c.namespace, Name: name}
		return nil, fmt.Errorf("reading %s from the cluster: %w", id, err)
	}
	if c.onRead != nil {
		c.onRead(obj)
	}
	return obj, nil
}

// List reads all objects of the kind.
func (c *lookupClient) List(_ context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if c.ResourceInterface == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: c.kind}, "")
	}
	q := lookupKey{apiVersion: c.apiVersion, kind: c.kind, namespace: c.namespace}
	defer c.cache.lock(q)()
	switch answer := c.cache.get(q).(type) {
	case *unstructured.UnstructuredList:
		return answer, nil
	case error:
		return nil, answer
	}
	list, err := c.ResourceInterface.List(c.ctx, opts)
	c.cache.store(q, list, err)
	if err != nil {
		return nil, fmt.Errorf("listing %s in the cluster: %w", c.kind, err)
	}
	for i := range list.Items {
		if c.onRead != nil {
			c.onRead(&list.Items[i])
		}
	}
	return list, nil
}

// contextConfig returns the cluster's configuration with requests that end with ctx. onRead is
// called for every object that is read; may be nil.
func contextConfig(ctx context.Context, cluster *kube.Cluster, onRead func(*unstructured.Unstructured)) *rest.Config {
	config := cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return contextTransport{ctx, next, onRead} })
	return config
}

type contextTransport struct {
	ctx    context.Context
	next   http.RoundTripper
	onRead func(*unstructured.Unstructured)
}

func (t contextTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request.WithContext(t.ctx))
	if err != nil || t.onRead == nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	data, err := io.ReadAll(response.Body)
	if cerr := response.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	t.reportObjects(data)
	return response, nil
}

// reportObjects finds the objects in an answer. What can't be read here fails where it is used.
func (t contextTransport) reportObjects(data []byte) {
	content, err := runtime.Decode(unstructured.UnstructuredJSONScheme, data)
	if err != nil {
		return
	}
	switch content := content.(type) {
	case *unstructured.Unstructured:
		t.onRead(content)
	case *unstructured.UnstructuredList:
		for i := range content.Items {
			t.onRead(&content.Items[i])
		}
	}
}
