package track_test

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/track"
)

// What older API servers can't do, which tests expect of newer ones (make test-skew).

// streamsLists reports whether the API server gives a list as the beginning of a watch, so
// that who may watch need not be permitted to list.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists
func (w *world) streamsLists() bool {
	w.Helper()
	yes, second := true, int64(1)
	watch, err := w.c.Client().CoreV1().ConfigMaps(w.ns).Watch(w.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true, TimeoutSeconds: &second,
	})
	switch {
	case apierrors.IsInvalid(err):
		return false
	case err != nil:
		w.Fatal(err)
	}
	watch.Stop()
	return true
}

// countsTerminatingPods reports whether Deployments say how many of their pods are
// terminating, as this one does then.
func (w *world) countsTerminatingPods(target track.Target) bool {
	w.Helper()
	live, err := w.client(target.GVK).Get(w.Context(), target.ID.Name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	_, found, _ := unstructured.NestedFieldNoCopy(live.Object, "status", "terminatingReplicas")
	return found
}

// serves reports whether the API server serves a kind.
func (w *world) serves(gvk schema.GroupVersionKind) bool {
	w.Helper()
	_, err := w.admin.Mapping(w.Context(), gvk, false)
	return err == nil
}
