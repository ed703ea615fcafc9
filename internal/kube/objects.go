package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
)

// ResourceClient returns the client for objects of a kind in a namespace, which is
// ignored for a kind of cluster scope.
func (c *Cluster) ResourceClient(m Mapping, namespace string) dynamic.ResourceInterface {
	client := c.Dynamic().Resource(m.Resource)
	if !m.Namespaced {
		return client
	}
	return client.Namespace(namespace)
}

// Get reads an object in its preferred version. It returns nil, nil for an
// object that isn't there, also when its kind certainly isn't served. Every
// other reason for not having it is an error.
func (c *Cluster) Get(ctx context.Context, id ID) (*unstructured.Unstructured, error) {
	mapping, err := c.Mapping(ctx, id.GroupKind().WithVersion(""), true)
	if _, ok := err.(*NoKindMatchError); ok {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	obj, err := c.ResourceClient(mapping, id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		obj, err = nil, c.ConfirmAbsent(ctx, mapping, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", id, err)
	}
	return obj, nil
}

// lifetimes are the fields of spec that say how long an object stays after it has finished; of any kind, where none is
// named.
var lifetimes = []struct {
	kind string
	path []string
}{
	// https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/, and JobSet and Volcano's Job
	{path: []string{"spec", "ttlSecondsAfterFinished"}},
	// https://github.com/kubeflow/trainer/blob/release-1.9/pkg/apis/kubeflow.org/v1/common_types.go: PyTorchJob and others
	{path: []string{"spec", "runPolicy", "ttlSecondsAfterFinished"}},
	// https://argo-workflows.readthedocs.io/en/latest/fields/#ttlstrategy; a WorkflowTemplate has it for its workflows
	{kind: "Workflow", path: []string{"spec", "ttlStrategy"}},
	// https://github.com/kubeflow/spark-operator/blob/master/docs/api-docs.md
	{kind: "SparkApplication", path: []string{"spec", "timeToLiveSeconds"}},
}

// IsDeletedWhenFinished reports whether the cluster deletes an object some time after it has finished.
func IsDeletedWhenFinished(obj *unstructured.Unstructured) bool {
	for _, l := range lifetimes {
		if value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, l.path...); value != nil && (l.kind == "" || l.kind == obj.GetKind()) {
			return true
		}
	}
	return false
}

// ShallowCopy copies an object so that its fields and those of its metadata can be replaced. What
// they contain is shared.
func ShallowCopy(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := maps.Clone(obj.Object)
	if meta, ok := out["metadata"].(map[string]any); ok {
		out["metadata"] = maps.Clone(meta)
	}
	return &unstructured.Unstructured{Object: out}
}

// Items returns the items of a list in an object that are maps, such as containers; they are part of the object. It is empty where
// no list is at the path.
func Items(in map[string]any, path ...string) []map[string]any {
	at, _, _ := unstructured.NestedFieldNoCopy(in, path...)
	list, _ := at.([]any)
	out := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// Selector reads a label selector of an object. One that states nothing selects everything.
func Selector(stated map[string]any) (labels.Selector, error) {
	var parsed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stated, &parsed); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&parsed)
}

// The ownership metadata that Helm writes on each object of a release.
// helm.sh/helm/v3/pkg/action/validate.go
const (
	ManagedByLabel             = "app.kubernetes.io/managed-by"
	ManagedByHelm              = "Helm" // the value of ManagedByLabel
	ReleaseNameAnnotation      = "meta.helm.sh/release-name"
	ReleaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
)

// serverMetadata are the fields of metadata that only the API server writes. It
// refuses an apply with managedFields, and takes uid and resourceVersion as
// preconditions.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
var serverMetadata = []string{
	"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp",
	"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds",
}

// RestartedAtAnnotation is what kubectl rollout restart sets.
// k8s.io/kubectl/pkg/polymorphichelpers/objectrestarter.go
const RestartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

// LastAppliedAnnotation is where kubectl apply keeps what it has applied.
const LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// bookkeepingAnnotations belong to kubectl and to controllers.
var bookkeepingAnnotations = []string{
	LastAppliedAnnotation, "deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation",
}

// ServerMetadata lists the fields of metadata that only the API server writes.
func ServerMetadata() []string { return slices.Clone(serverMetadata) }

// IsServerMetadata reports whether only the API server writes a field of metadata.
func IsServerMetadata(name string) bool { return slices.Contains(serverMetadata, name) }

// IsBookkeeping reports whether a field is maintained by the API server, controllers or
// kubectl: status, metadata that only the server writes, and some annotations.
func IsBookkeeping(names []string) bool {
	switch {
	case len(names) > 0 && names[0] == "status":
		return true
	case len(names) < 2 || names[0] != "metadata":
		return false
	case names[1] == "annotations":
		return len(names) > 2 && slices.Contains(bookkeepingAnnotations, names[2])
	}
	return IsServerMetadata(names[1])
}

// KeyDefault is the value that the API server gives to a key field of a list's
// item that doesn't state it; empty when it gives none. The protocol of ports is
// the only such field of the built-in kinds.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#ports
func KeyDefault(field string) string {
	if field == "protocol" {
		return "TCP"
	}
	return ""
}

// An UnservedError says that an API server doesn't serve a kind that it lists, so that nobody knows whether
// an object of that kind exists. One of several API servers may not know a new definition yet, and the
// server of an aggregated API, or a proxy, may answer like that when something else is wrong.
type UnservedError struct {
	Mapping Mapping // where the cluster lists the kind
	Answer  string  // of the API server
}

func (e *UnservedError) Error() string {
	return fmt.Sprintf("the API server answers as if it didn't serve the kind, but lists %s in %s, so it is unknown whether the object exists: %s",
		e.Mapping.GVK.Kind, e.Mapping.GVK.GroupVersion(), e.Answer)
}

// Hint says what to do about it.
func (e *UnservedError) Hint() string {
	return "try again in a moment. If that doesn't help, ask the cluster itself: kubectl get " + e.Mapping.Resource.GroupResource().String()
}

// NamesMissingObject reports whether an answer says that an object, or its namespace, doesn't exist. A 404 for a kind that
// isn't served has no name in its details, or, if no API server wrote it, a cause that client-go adds.
// k8s.io/apimachinery/pkg/api/errors, NewNotFound and NewGenericServerResponse
func NamesMissingObject(err error) bool {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsNotFound(err) || IsDenial(err) {
		return false
	}
	details := answer.ErrStatus.Details
	return details != nil && details.Name != "" && len(details.Causes) == 0
}

// ConfirmAbsent returns nil if a NotFound answer means that the object certainly isn't there: the answer names it, or the
// cluster, asked again, doesn't serve its kind. Otherwise the error is an *UnservedError, or why the kinds are unknown.
func (c *Cluster) ConfirmAbsent(ctx context.Context, m Mapping, answer error) error {
	if NamesMissingObject(answer) {
		return nil
	}
	gk := m.GVK.GroupKind().WithVersion("")
	known, err := c.discover(ctx)
	if err != nil {
		return err
	}
	if _, served := known.preferred[Canonical(gk.GroupKind())]; served {
		c.forgetKinds(known)
	}
	switch served, err := c.Mapping(ctx, gk, true); {
	case err == nil:
		return &UnservedError{Mapping: served, Answer: answer.Error()}
	case !errors.As(err, new(*NoKindMatchError)):
		return err
	}
	return nil
}

// OldestVersion returns the oldest of some resource versions: a watch from there misses no
// change of their objects. It is empty if one of them is empty or can't be compared, and if
// there are none. A watch from an empty version begins with what is there.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
func OldestVersion(versions []string) string {
	oldest := ""
	for i, version := range versions {
		if version == "" {
			return ""
		}
		if i == 0 {
			oldest = version
			continue
		}
		order, err := resourceversion.CompareResourceVersion(version, oldest)
		if err != nil {
			return ""
		}
		if order < 0 {
			oldest = version
		}
	}
	return oldest
}
