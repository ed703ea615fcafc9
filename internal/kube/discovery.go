package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// ServerInfo is what a chart may ask about the cluster, and whether we saw all of it.
type ServerInfo struct {
	Version      string   // "v1.37.2"
	Major, Minor string   // as the API server states them; some have a minor version "36+". Empty: those in Version
	APIVersions  []string // "apps/v1" and "apps/v1/Deployment", sorted; as Helm's .Capabilities.APIVersions
	Unavailable  []string // group versions whose discovery failed, sorted; empty when it was complete
}

// A Mapping says where objects of a kind are served.
type Mapping struct {
	GVK        schema.GroupVersionKind
	Resource   schema.GroupVersionResource
	Namespaced bool
	HasStatus  bool // it has a status subresource
	HasScale   bool // it has a scale subresource
}

// NoKindMatchError says that the cluster doesn't serve a kind, by a complete discovery.
type NoKindMatchError struct {
	GVK    schema.GroupVersionKind
	Served schema.GroupVersion // where it serves a kind of that name instead; empty if nowhere
}

func (e *NoKindMatchError) Error() string {
	return fmt.Sprintf("the cluster has no kind %s in %s", e.GVK.Kind, e.GVK.GroupVersion())
}

// Hint says what to do about it.
func (e *NoKindMatchError) Hint() string {
	if next := replacementAPI(e.GVK); next != "" {
		return fmt.Sprintf("%s replaces it: use that in the template, or --map-removed-apis", next)
	}
	if !e.Served.Empty() {
		return fmt.Sprintf("the cluster serves it in %s: use that version in the template", e.Served)
	}
	return "install the CustomResourceDefinition that brings it, or use an apiVersion the cluster serves (kubectl api-resources)"
}

// UnknownKindsError says that discovery of a group version failed, mostly because the server
// of an aggregated API is down.
type UnknownKindsError struct {
	GV  schema.GroupVersion
	Err error
}

func (e *UnknownKindsError) Error() string {
	return fmt.Sprintf("asking the cluster for the kinds of %s: %s", e.GV, e.Err)
}

// Unwrap gives the server's error.
func (e *UnknownKindsError) Unwrap() error { return e.Err }

// Hint says where to look.
func (e *UnknownKindsError) Hint() string {
	return fmt.Sprintf("the server of this API doesn't answer: kubectl describe apiservice %s.%s", e.GV.Version, e.GV.Group)
}

type discoveredKinds struct {
	server    ServerInfo
	kinds     map[schema.GroupVersionKind]Mapping
	preferred map[schema.GroupKind]schema.GroupVersionKind
	byWord    map[string][]schema.GroupKind // by kind, plural, singular and short names, in lower case
	failed    map[schema.GroupVersion]error
}

// ServerInfo asks the cluster for its version and API resources, once.
func (c *Cluster) ServerInfo(ctx context.Context) (ServerInfo, error) {
	d, err := c.discover(ctx)
	if err != nil {
		return ServerInfo{}, err
	}
	return d.server, nil
}

// Mapping finds where a kind is served. An empty version, or one the cluster
// no longer serves when anyVersion is set, finds the preferred version.
// The error is a *NoKindMatchError when the kind is certainly not served.
func (c *Cluster) Mapping(ctx context.Context, gvk schema.GroupVersionKind, anyVersion bool) (Mapping, error) {
	d, err := c.discover(ctx)
	if err != nil {
		return Mapping{}, err
	}
	if m, ok := d.kinds[gvk]; ok {
		return m, nil
	}
	if gvk.Version == "" || anyVersion {
		if m, ok := d.kinds[d.preferred[Canonical(gvk.GroupKind())]]; ok {
			return m, nil
		}
	}
	for gv, err := range d.failed {
		if gv.Group == gvk.Group && (gv.Version == gvk.Version || gvk.Version == "" || anyVersion) {
			return Mapping{}, &UnknownKindsError{GV: gv, Err: err}
		}
	}
	return Mapping{}, &NoKindMatchError{GVK: gvk, Served: d.preferred[Canonical(gvk.GroupKind())].GroupVersion()}
}

// MappingsFor returns the kinds that a word names: Deployment, deployment, deployments or
// deploy, in the API server's preferred version. It is empty when discovery found none.
func (c *Cluster) MappingsFor(ctx context.Context, word string) ([]Mapping, error) {
	d, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	var out []Mapping
	for _, gk := range d.byWord[strings.ToLower(word)] {
		out = append(out, d.kinds[d.preferred[gk]])
	}
	return out, nil
}

// Kinds returns all kinds that the API server serves, each in its preferred version, in no order.
func (c *Cluster) Kinds(ctx context.Context) ([]Mapping, error) {
	d, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Mapping, 0, len(d.preferred))
	for _, gvk := range d.preferred {
		out = append(out, d.kinds[gvk])
	}
	return out, nil
}

// ForgetKinds drops the cached discovery and schemas. Call it after a
// CustomResourceDefinition has changed.
func (c *Cluster) ForgetKinds() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.discovery, c.schemas = nil, nil
}

// forgetKinds is ForgetKinds unless the kinds have been read again since old.
func (c *Cluster) forgetKinds(old *discoveredKinds) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.discovery == old {
		c.discovery, c.schemas = nil, nil
	}
}

func (c *Cluster) discover(ctx context.Context) (*discoveredKinds, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.discovery != nil {
		return c.discovery, nil
	}
	lists, failed, err := c.readKinds(ctx)
	if err != nil {
		return nil, err
	}
	c.discovery = newDiscoveredKinds(c.version, lists, failed)
	return c.discovery, nil
}

func newDiscoveredKinds(version *version.Info, lists []*metav1.APIResourceList, failed map[schema.GroupVersion]error) *discoveredKinds {
	d := &discoveredKinds{
		kinds:     map[schema.GroupVersionKind]Mapping{},
		preferred: map[schema.GroupKind]schema.GroupVersionKind{},
		byWord:    map[string][]schema.GroupKind{},
		failed:    failed,
	}
	for _, list := range lists {
		d.add(list)
	}
	d.server = ServerInfo{Version: version.GitVersion, Major: version.Major, Minor: version.Minor, APIVersions: apiVersions(lists)}
	for gv := range failed {
		d.server.Unavailable = append(d.server.Unavailable, gv.String())
	}
	slices.Sort(d.server.Unavailable)
	return d
}

// add adds the kinds of one group version. Lists come in the server's order of preference, so the first
// version that has a kind is its preferred one.
func (d *discoveredKinds) add(list *metav1.APIResourceList) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return // the API server wouldn't serve such a list
	}
	subresources := map[string]bool{}
	for _, r := range list.APIResources {
		subresources[r.Name] = true
	}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		gvk := gv.WithKind(r.Kind)
		if _, known := d.kinds[gvk]; known {
			continue
		}
		d.kinds[gvk] = Mapping{
			GVK:        gvk,
			Resource:   gv.WithResource(r.Name),
			Namespaced: r.Namespaced,
			HasStatus:  subresources[r.Name+"/status"],
			HasScale:   subresources[r.Name+"/scale"],
		}
		if gk := gvk.GroupKind(); d.preferred[gk].Empty() {
			d.preferred[gk] = gvk
			d.addWords(gk, append([]string{r.Kind, r.Name, r.SingularName}, r.ShortNames...))
		}
	}
}

// addWords adds the names of a kind. Of a kind that is served in an old and a new group, only
// the new one counts.
func (d *discoveredKinds) addWords(gk schema.GroupKind, words []string) {
	if Canonical(gk) != gk {
		return
	}
	for _, word := range words {
		word = strings.ToLower(word)
		if word != "" && !slices.Contains(d.byWord[word], gk) {
			d.byWord[word] = append(d.byWord[word], gk)
		}
	}
}

// apiVersions gives what Helm's GetVersionSet gives: group versions, and group
// versions with each kind. (helm.sh/helm/v3/pkg/action/action.go)
func apiVersions(lists []*metav1.APIResourceList) []string {
	seen := map[string]bool{}
	for _, list := range lists {
		seen[list.GroupVersion] = true
		for _, r := range list.APIResources {
			seen[list.GroupVersion+"/"+r.Kind] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// aggregated asks for all groups, versions and resources in one document. Servers older than
// 1.30 know it as v2beta1, with the same fields; those older than 1.27 answer with the groups alone.
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery
const aggregated = "as=APIGroupDiscoveryList"

// readKinds reads which kinds the cluster serves, in its order of preference, and its version if
// that isn't known. All of this is asked at once, because answers of a distant cluster take long.
// failed are the group versions that don't answer.
func (c *Cluster) readKinds(ctx context.Context) (lists []*metav1.APIResourceList, failed map[schema.GroupVersion]error, err error) {
	client := c.Typed().Discovery()
	var asking errgroup.Group
	if c.version == nil {
		asking.Go(func() error {
			version, err := client.ServerVersionWithContext(ctx)
			if err != nil {
				return fmt.Errorf("asking the cluster at %s for its version: %w", c.config.Host, err)
			}
			c.version = version
			return nil
		})
	}
	paths := []string{"/api", "/apis"}
	documents := make([]*apidiscovery.APIGroupDiscoveryList, len(paths))
	errs := make([]error, len(paths))
	for i, path := range paths {
		asking.Go(func() error {
			documents[i], errs[i] = readDiscovery(ctx, client, path)
			return nil // another way may be left
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, nil, err
	}
	err = errors.Join(errs...)
	switch {
	case err == nil && documents[0] != nil && documents[1] != nil:
		lists, failed = resourcesIn(documents)
		return lists, failed, nil
	case err == nil || errors.As(err, new(apierrors.APIStatus)):
		_, lists, err = client.ServerGroupsAndResourcesWithContext(ctx)
	}
	if partial := new(discovery.ErrGroupDiscoveryFailed); errors.As(err, &partial) {
		return lists, withoutUnserved(partial.Groups), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("asking the cluster at %s for its API resources: %w", c.config.Host, err)
	}
	return lists, nil, nil
}

// withoutUnserved removes the group versions that the server says it doesn't have. Their group
// listed them, because its list is a moment behind when a CustomResourceDefinition drops a
// version. A server that doesn't know all of its paths yet, or can't reach the server of an
// aggregated API, answers 503, not 404.
// (k8s.io/apiserver/pkg/util/notfoundhandler, k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go)
func withoutUnserved(failed map[schema.GroupVersion]error) map[schema.GroupVersion]error {
	maps.DeleteFunc(failed, func(_ schema.GroupVersion, err error) bool { return apierrors.IsNotFound(err) })
	return failed
}

// readDiscovery reads one document of aggregated discovery; nil when the server has none.
func readDiscovery(ctx context.Context, client discovery.DiscoveryInterface, path string) (*apidiscovery.APIGroupDiscoveryList, error) {
	accept := "application/json;g=apidiscovery.k8s.io;v=v2;" + aggregated + ",application/json;g=apidiscovery.k8s.io;v=v2beta1;" + aggregated + ",application/json"
	var contentType string
	data, err := client.RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).ContentType(&contentType).Raw()
	if err != nil || !strings.Contains(contentType, aggregated) {
		return nil, err
	}
	out := &apidiscovery.APIGroupDiscoveryList{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return out, nil
}

// resourcesIn gives the resources of each group version in the documents' order, which is the
// server's order of preference.
func resourcesIn(documents []*apidiscovery.APIGroupDiscoveryList) (lists []*metav1.APIResourceList, failed map[schema.GroupVersion]error) {
	failed = map[schema.GroupVersion]error{}
	for _, document := range documents {
		groups, resources, stale := discovery.SplitGroupsAndResources(*document)
		maps.Copy(failed, stale)
		for _, group := range groups.Groups {
			for _, version := range group.Versions {
				gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
				if list := resources[gv]; list != nil {
					lists = append(lists, list)
				}
			}
		}
	}
	return lists, failed
}

// WatchCRDs watches all CustomResourceDefinitions from a resource version on. Events have
// them as *apiextensions.CustomResourceDefinition. They come as protobuf, because
// definitions are large.
func (c *Cluster) WatchCRDs(ctx context.Context, from string) (watch.Interface, error) {
	scheme := runtime.NewScheme()
	if err := apiextensions.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config := c.Config()
	config.GroupVersion, config.APIPath = &apiextensions.SchemeGroupVersion, "/apis"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, c.clients().http)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return client.Get().Resource("customresourcedefinitions").Param("watch", "true").Param("resourceVersion", from).Watch(ctx)
}
