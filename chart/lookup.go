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

// Lookup says what the template function lookup reads.
type Lookup struct {
	Cluster *Cluster                         // nil renders offline: lookup finds nothing
	Cache   *LookupCache                     // shared by several renderings so that lookup returns the same; nil reads each time
	OnRead  func(*unstructured.Unstructured) // called for each object that is read; may be nil
}

// A lookupProvider provides the clients of the template function lookup. It uses the
// cluster's cached discovery, and its requests end with ctx.
type lookupProvider struct {
	Lookup
	ctx context.Context // of the one rendering it was made for
}

// A LookupCache caches the results of lookups, so that several renderings see the same
// state of the cluster. The zero value is ready to use; nil caches nothing. It is safe for
// concurrent use.
type LookupCache struct {
	answers sync.Map // a *lookupAnswer for each lookupKey
}

type lookupKey struct{ apiVersion, kind, namespace, name string }

// A lookupAnswer is an object, a list or a not-found error; none of them before it is known.
type lookupAnswer struct {
	mu     sync.Mutex // held while asking: others who look up the same wait for the answer
	object runtime.Object
	err    error
}

// answer returns the cached answer, or calls ask and caches what it returns. Other errors than not-found
// errors aren't cached. Each caller gets a copy of its own, because templates may change it.
func (c *LookupCache) answer(q lookupKey, ask func() (runtime.Object, error)) (runtime.Object, error) {
	if c == nil {
		return ask()
	}
	entry, _ := c.answers.LoadOrStore(q, &lookupAnswer{})
	known := entry.(*lookupAnswer)
	known.mu.Lock()
	defer known.mu.Unlock()
	switch {
	case known.err != nil:
		return nil, known.err
	case known.object != nil:
		return known.object.DeepCopyObject(), nil
	}
	object, err := ask()
	if err == nil {
		known.object = object.DeepCopyObject()
	} else if apierrors.IsNotFound(err) {
		known.err = err
	}
	return object, err
}

// GetClientFor implements engine.ClientProvider. For a kind that isn't served lookup finds
// nothing, so that a plan can be made before a chart's CRDs exist. (Helm fails when the
// group isn't served.)
func (p *lookupProvider) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	client := &lookupClient{lookupProvider: p, apiVersion: apiVersion, kind: kind}
	if p.Cluster == nil {
		return client, false, nil
	}
	mapping, err := p.Cluster.Mapping(p.ctx, schema.FromAPIVersionAndKind(apiVersion, kind), false)
	if errors.As(err, new(*kube.NoKindMatchError)) {
		return client, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	client.resources = p.Cluster.Dynamic().Resource(mapping.Resource)
	client.ResourceInterface = client.resources
	return client, mapping.Namespaced, nil
}

// A lookupClient reads with our context, because the engine passes none. Its resources are
// nil for a kind that isn't served and without a cluster.
type lookupClient struct {
	dynamic.ResourceInterface
	*lookupProvider
	resources                   dynamic.NamespaceableResourceInterface
	apiVersion, kind, namespace string
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

// Get reads one object.
func (c *lookupClient) Get(_ context.Context, name string, opts metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	id := kube.ID{Kind: c.kind, Namespace: c.namespace, Name: name}
	found, err := c.read(name, fmt.Sprintf("reading %s from the cluster", id), func() (runtime.Object, error) {
		return c.ResourceInterface.Get(c.ctx, name, opts, sub...)
	})
	obj, _ := found.(*unstructured.Unstructured)
	return obj, err
}

// List reads all objects of the kind.
func (c *lookupClient) List(_ context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	found, err := c.read("", fmt.Sprintf("listing %s in the cluster", c.kind), func() (runtime.Object, error) {
		return c.ResourceInterface.List(c.ctx, opts)
	})
	list, _ := found.(*unstructured.UnstructuredList)
	return list, err
}

// read returns the cached answer, or what ask reads. An empty name is that of a list.
func (c *lookupClient) read(name, doing string, ask func() (runtime.Object, error)) (runtime.Object, error) {
	if c.ResourceInterface == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: c.kind}, name)
	}
	return c.Cache.answer(lookupKey{c.apiVersion, c.kind, c.namespace, name}, func() (runtime.Object, error) {
		object, err := ask()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
		c.report(object)
		return object, nil
	})
}

// report calls OnRead for an object, or for each object of a list.
func (l Lookup) report(read runtime.Object) {
	if l.OnRead == nil {
		return
	}
	switch read := read.(type) {
	case *unstructured.Unstructured:
		l.OnRead(read)
	case *unstructured.UnstructuredList:
		for i := range read.Items {
			l.OnRead(&read.Items[i])
		}
	}
}

// contextConfig returns the cluster's configuration, with requests that end with ctx and objects that are reported.
func (l Lookup) contextConfig(ctx context.Context) *rest.Config {
	config := l.Cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return contextTransport{l, ctx, next} })
	return config
}

type contextTransport struct {
	lookup Lookup
	ctx    context.Context
	next   http.RoundTripper
}

func (t contextTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request.WithContext(t.ctx))
	if err != nil || t.lookup.OnRead == nil || response.StatusCode != http.StatusOK {
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
	if content, err := runtime.Decode(unstructured.UnstructuredJSONScheme, data); err == nil { // otherwise it fails where it is used
		t.lookup.report(content)
	}
	return response, nil
}
