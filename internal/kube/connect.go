package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

// Options say which cluster to talk to, and as whom. Every zero value means
// what kubectl would do: KUBECONFIG, ~/.kube/config, or the pod's own account.
type Options struct {
	clientcmd.ConfigOverrides // what counts in place of the kubeconfig's

	Kubeconfig    string  // path; empty means KUBECONFIG or the default file
	ExpectContext string  // any other context is refused; empty expects none
	QPS           float32 // requests a second; 0 leaves pacing to the API server's priority and fairness
	Burst         int
	UserAgent     string
	Warn          func(text string) // called for each Warning header of the API server; nil drops them
}

// Cluster is a connection made on first use. It is safe for concurrent use.
type Cluster struct {
	config    *rest.Config
	context   string
	namespace string
	requests  *requestLimit
	clients   func() clients

	mu        sync.Mutex
	version   *version.Info // of the API server; nil before it is asked
	discovery *discoveredKinds
	schemas   *schemas
}

type clients struct {
	http     *http.Client
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

// Connect reads the configuration of a cluster; it makes no requests. The errors are *UnreachableError.
func Connect(opts Options) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = opts.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &opts.ConfigOverrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, &UnreachableError{fmt.Errorf("there is no configuration in %s", strings.Join(rules.GetLoadingPrecedence(), ", "))}
	}
	if err != nil {
		return nil, &UnreachableError{err}
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, &UnreachableError{err}
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, &UnreachableError{err}
	}
	name := cmp.Or(opts.CurrentContext, raw.CurrentContext)
	if opts.ExpectContext != "" && name != opts.ExpectContext {
		return nil, &ContextError{Name: name, Expected: opts.ExpectContext, Server: config.Host}
	}
	if _, _, err := rest.DefaultServerUrlFor(config); err != nil {
		return nil, cannotConnect(config, err)
	}
	config.UserAgent = opts.UserAgent
	config.QPS, config.Burst = opts.QPS, opts.Burst
	config.WarningHandlerWithContext = warnings{opts.Warn}
	cluster := New(config, namespace)
	cluster.context = name
	return cluster, nil
}

// A ContextError refuses a context that isn't the expected one, before any request is made.
type ContextError struct{ Name, Expected, Server string }

func (e *ContextError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("no kubeconfig context is in use (the API server is %s), but %q is expected", e.Server, e.Expected)
	}
	return fmt.Sprintf("the context is %q (%s), but %q is expected", e.Name, e.Server, e.Expected)
}

// Hint says how to choose the expected context.
func (e *ContextError) Hint() string {
	return "nothing was sent to it; choose the cluster with --kube-context " + e.Expected + ", or change --expect-context"
}

// Context is the name of the kubeconfig context that is in use; empty without one, as in a pod.
func (c *Cluster) Context() string { return c.context }

// New returns a connection by an existing configuration. A QPS of 0 in config
// means no pacing on our side.
func New(config *rest.Config, namespace string) *Cluster {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1
	}
	if config.QPS > 0 && config.RateLimiter == nil { // one for all clients, or each would have a pace of its own
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, cmp.Or(config.Burst, rest.DefaultBurst))
	}
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandlerWithContext = warnings{} // client-go's own writes to standard error
	}
	requests := newRequestLimit()
	sendBy(config, limitAnswer)
	sendBy(config, wrapUnreachable)
	sendBy(config, callWriteHook)
	sendBy(config, requests.send) // around the hook: a run makes sure of its lock when it has a slot
	return &Cluster{
		config:    config,
		requests:  requests,
		namespace: namespace,
		clients:   sync.OnceValue(func() clients { return newClients(config) }),
	}
}

// sendBy makes clients of a configuration send requests by a function, which passes them on to next. That
// is the function of the call before, and at last the configuration's own transport.
func sendBy(config *rest.Config, send sendFunc) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{next, send} })
}

type sendFunc func(next http.RoundTripper, request *http.Request) (*http.Response, error)

type transport struct {
	next http.RoundTripper
	send sendFunc
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.send(t.next, r) }

// newClients returns clients of which each request fails if the configuration can't be used.
func newClients(config *rest.Config) clients {
	made, err := usableClients(config)
	if err != nil {
		failure := cannotConnect(config, err)
		failing := &rest.Config{} // without an address: nothing is sent
		sendBy(failing, func(http.RoundTripper, *http.Request) (*http.Response, error) { return nil, failure })
		made, _ = usableClients(failing) // it has nothing that can't be used
	}
	return made
}

func cannotConnect(config *rest.Config, err error) *UnreachableError {
	return &UnreachableError{fmt.Errorf("connecting to %s: %w", config.Host, err)}
}

func usableClients(config *rest.Config) (clients, error) {
	// One HTTP client means one HTTP/2 connection for everything we ask.
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return clients{}, err
	}
	reviews, err := authorizationclient.NewForConfigAndClient(config, &http.Client{Transport: client.Transport})
	if err != nil {
		return clients{}, err
	}
	client.Transport = &shortFaults{next: client.Transport, review: func(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
		return reviews.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	}}
	inProtobuf := rest.CopyConfig(config)
	inProtobuf.ContentType = "application/vnd.kubernetes.protobuf"
	inProtobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed, ofTyped := kubernetes.NewForConfigAndClient(inProtobuf, client)
	dyn, ofDynamic := dynamic.NewForConfigAndClient(dynamic.ConfigFor(config), client)
	meta, ofMetadata := metadata.NewForConfigAndClient(metadata.ConfigFor(config), client)
	return clients{http: client, typed: typed, dynamic: dyn, metadata: meta}, cmp.Or(ofTyped, ofDynamic, ofMetadata)
}

// Namespace is the one that commands work in when none is named.
func (c *Cluster) Namespace() string { return c.namespace }

// Host is the address of the API server.
func (c *Cluster) Host() string { return c.config.Host }

// Config returns a configuration for other clients, which use the connection and the credentials of this one.
func (c *Cluster) Config() *rest.Config {
	base, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return rest.CopyConfig(c.config) // other clients get the same error
	}
	return &rest.Config{
		Host: base.String(), Transport: c.clients().http.Transport, Timeout: c.config.Timeout, UserAgent: c.config.UserAgent,
		QPS: c.config.QPS, RateLimiter: c.config.RateLimiter,
		WarningHandler: c.config.WarningHandler, WarningHandlerWithContext: c.config.WarningHandlerWithContext,
	}
}

// Typed returns the client for built-in kinds. It speaks protobuf.
func (c *Cluster) Typed() kubernetes.Interface { return c.clients().typed }

// Dynamic returns the client for objects of any kind.
func (c *Cluster) Dynamic() dynamic.Interface { return c.clients().dynamic }

// Metadata returns the client that reads the metadata of objects and nothing else.
func (c *Cluster) Metadata() metadata.Interface { return c.clients().metadata }

// warnings hands the API server's Warning headers on.
// https://kubernetes.io/blog/2020/09/03/warnings/
type warnings struct{ warn func(string) }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext. The
// context is that of the request.
func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code != 299 || text == "" {
		return
	}
	if handle, ok := ctx.Value(warningHandlerKey{}).(func(string) bool); ok && handle(text) {
		return
	}
	if w.warn != nil {
		w.warn(text)
	}
}

// warningHandlerKey is the context key of the warning handler.
type warningHandlerKey struct{}

// WithWarnings returns a context whose requests pass their warnings to handle first. Warnings
// for which it returns false go to Options.Warn.
func WithWarnings(ctx context.Context, handle func(text string) bool) context.Context {
	return context.WithValue(ctx, warningHandlerKey{}, handle)
}
