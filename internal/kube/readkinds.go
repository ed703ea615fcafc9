package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"golang.org/x/sync/errgroup"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// aggregated asks for all groups, versions and resources in one document. Servers older than
// 1.30 know it as v2beta1, with the same fields; those older than 1.27 answer with the groups alone.
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery
const aggregated = "as=APIGroupDiscoveryList"

// readKinds reads which kinds the cluster serves, in its order of preference, and its version if
// that isn't known. All of this is asked at once, because answers of a distant cluster take long.
// failed are the group versions that don't answer.
func (c *Cluster) readKinds(ctx context.Context) (lists []*metav1.APIResourceList, failed map[schema.GroupVersion]error, err error) {
	typed, err := c.Typed()
	if err != nil {
		return nil, nil, err
	}
	client := typed.Discovery()
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
