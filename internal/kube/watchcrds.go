package kube

import (
	"context"
	"fmt"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// WatchCRDs watches all CustomResourceDefinitions from a resource version on. Events have
// them as *apiextensions.CustomResourceDefinition. They come as protobuf, because
// definitions are large.
func (c *Cluster) WatchCRDs(ctx context.Context, from string) (watch.Interface, error) {
	clients, err := c.clients()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := apiextensions.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config := c.Config()
	config.GroupVersion, config.APIPath = &apiextensions.SchemeGroupVersion, "/apis"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, clients.http)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return client.Get().Resource("customresourcedefinitions").Param("watch", "true").Param("resourceVersion", from).Watch(ctx)
}
