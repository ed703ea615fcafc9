package kubetest

import (
	"cmp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"
)

// Event is what a controller or kubelet would say about an object.
type Event struct {
	Type    string // Warning by default
	Reason  string
	Message string
	Count   int    // how often it has happened; 1 by default
	Source  string // who says so; kubelet by default
}

// PostEvent creates a Kubernetes Event about an object that is stored in the
// cluster. Kubernetes tells controllers' words by Events, which simulated nodes
// don't write.
func (c *Cluster) PostEvent(t testing.TB, about runtime.Object, event Event) {
	t.Helper()
	ref, err := reference.GetReference(scheme.Scheme, about)
	if err != nil {
		t.Fatalf("an event about %T: %v", about, err)
	}
	namespace := ref.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where Events about Nodes and the like are
	}
	now := metav1.Now()
	_, err = c.client.CoreV1().Events(namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{GenerateName: ref.Name + ".", Namespace: namespace},
		InvolvedObject:      *ref,
		Type:                cmp.Or(event.Type, corev1.EventTypeWarning),
		Reason:              event.Reason,
		Message:             event.Message,
		Count:               int32(max(event.Count, 1)), //nolint:gosec // a small number
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Source:              corev1.EventSource{Component: cmp.Or(event.Source, "kubelet")},
		ReportingController: cmp.Or(event.Source, "kubelet"),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating an Event about %s/%s/%s: %v", ref.Kind, ref.Namespace, ref.Name, err)
	}
}
