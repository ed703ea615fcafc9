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

// provider gives the template function lookup its clients. Kinds come from the
// cluster's one discovery, and every request ends with ctx.
type provider struct {
	ctx     context.Context // of the one rendering it was made for
	cluster *kube.Cluster
	answers *Answers
	seen    func(*unstructured.Unstructured) // nil: nobody asks
}

// Answers are what the cluster has answered to lookups: renderings that share them
// see the cluster at one time. The zero value is ready, nil asks each time. It is
// for concurrent use.
type Answers struct {
	mu    sync.Mutex
	known map[question]any // *unstructured.Unstructured, *unstructured.UnstructuredList or error
}

type question struct{ apiVersion, kind, namespace, name string }

// to gives a copy of a known answer: templates may change theirs.
func (a *Answers) to(q question) (any, bool) {
	if a == nil {
		return nil, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok := a.known[q]
	switch answer := answer.(type) {
	case *unstructured.Unstructured:
		return answer.DeepCopy(), ok
	case *unstructured.UnstructuredList:
		return answer.DeepCopy(), ok
	}
	return answer, ok
}

// remember keeps an answer, or that there is no such object. Other failures are
// asked about again.
func (a *Answers) remember(q question, answer runtime.Object, err error) {
	if a == nil || err != nil && !apierrors.IsNotFound(err) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[question]any{}
	}
	if a.known[q] = answer.DeepCopyObject(); err != nil {
		a.known[q] = err
	}
}

// GetClientFor implements engine.ClientProvider. A kind that is certainly not
// served has no objects: that is an answer, and lets a plan be made before a
// chart's CRDs exist. (Helm fails when not even the group is served.)
func (p *provider) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := p.cluster.Mapping(p.ctx, gvk, false)
	var none *kube.NoKindError
	if errors.As(err, &none) {
		return &found{ctx: p.ctx, kind: kind}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	client, err := p.cluster.Dynamic()
	if err != nil {
		return nil, false, err
	}
	resources := client.Resource(mapping.Resource)
	return &found{ctx: p.ctx, version: apiVersion, kind: kind, answers: p.answers, seen: p.seen, all: resources, ResourceInterface: resources}, mapping.Namespaced, nil
}

// found is a client that reads with a context of our own: the engine has none.
// Nil resources are those of a kind that isn't served.
type found struct {
	dynamic.ResourceInterface
	ctx       context.Context
	all       dynamic.NamespaceableResourceInterface
	version   string
	kind      string
	namespace string
	seen      func(*unstructured.Unstructured)
	answers   *Answers
}

// Namespace returns the client for one namespace.
func (f *found) Namespace(namespace string) dynamic.ResourceInterface {
	if f.all == nil {
		return f
	}
	return &found{
		ctx: f.ctx, version: f.version, kind: f.kind, namespace: namespace, answers: f.answers, seen: f.seen,
		ResourceInterface: f.all.Namespace(namespace),
	}
}

// Get reads one object.
func (f *found) Get(_ context.Context, name string, opts metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	if f.ResourceInterface == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: f.kind}, name)
	}
	q := question{f.version, f.kind, f.namespace, name}
	switch answer, _ := f.answers.to(q); answer := answer.(type) {
	case *unstructured.Unstructured:
		return answer, nil
	case error:
		return nil, answer
	}
	obj, err := f.ResourceInterface.Get(f.ctx, name, opts, sub...)
	f.answers.remember(q, obj, err)
	if err != nil {
		id := kube.ID{Kind: f.kind, Namespace: f.namespace, Name: name}
		return nil, fmt.Errorf("reading %s from the cluster: %w", id, err)
	}
	if f.seen != nil {
		f.seen(obj)
	}
	return obj, nil
}

// List reads all objects of the kind.
func (f *found) List(_ context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if f.ResourceInterface == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: f.kind}, "")
	}
	q := question{apiVersion: f.version, kind: f.kind, namespace: f.namespace}
	switch answer, _ := f.answers.to(q); answer := answer.(type) {
	case *unstructured.UnstructuredList:
		return answer, nil
	case error:
		return nil, answer
	}
	list, err := f.ResourceInterface.List(f.ctx, opts)
	f.answers.remember(q, list, err)
	if err != nil {
		return nil, fmt.Errorf("listing %s in the cluster: %w", f.kind, err)
	}
	for i := range list.Items {
		if f.seen != nil {
			f.seen(&list.Items[i])
		}
	}
	return list, nil
}

// boundConfig is the cluster's configuration with every request ending with ctx,
// and seen told of every object that is read.
func boundConfig(ctx context.Context, cluster *kube.Cluster, seen func(*unstructured.Unstructured)) *rest.Config {
	config := cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bound{ctx, next, seen} })
	return config
}

type bound struct {
	ctx  context.Context
	next http.RoundTripper
	seen func(*unstructured.Unstructured)
}

func (b bound) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request.WithContext(b.ctx))
	if err != nil || b.seen == nil || response.StatusCode != http.StatusOK {
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
	b.tell(data)
	return response, nil
}

// tell finds the objects in an answer. What can't be read here fails where it is used.
func (b bound) tell(data []byte) {
	content, err := runtime.Decode(unstructured.UnstructuredJSONScheme, data)
	if err != nil {
		return
	}
	switch content := content.(type) {
	case *unstructured.Unstructured:
		b.seen(content)
	case *unstructured.UnstructuredList:
		for i := range content.Items {
			b.seen(&content.Items[i])
		}
	}
}
