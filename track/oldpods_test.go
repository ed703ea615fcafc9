package track_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/track"
	"deployer/track/class"
)

// TestOldPodThatAFinalizerHolds: it is found, and named with what holds it, though no watch shows pods of earlier revisions; the
// rollout goes on as soon as it has gone.
func TestOldPodThatAFinalizerHolds(t *testing.T) {
	w := newWorld(t)
	manifest := workload("StatefulSet", "web", 1, nil, "")
	w.wait(track.Options{}, time.Minute, w.apply(manifest)).ready(30 * time.Second)
	hold := func(finalizers string) {
		patch := fmt.Sprintf(`{"metadata":{"finalizers":%s}}`, finalizers)
		if _, err := w.c.Client().CoreV1().Pods(w.ns).Patch(t.Context(), "web-0", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	hold(`["example.com/hold"]`)
	said := ""
	o := w.waitWith(track.Options{}, 5*time.Minute, func(e track.Event) {
		if f := e.Status.Finding; said == "" && f != nil && f.Class == class.OldPodStays {
			said = f.Message
			hold("null")
		}
	}, w.apply(strings.Replace(manifest, "r/x:1", "r/x:2", 1)))
	if o.ready(4 * time.Minute); said != "it is being deleted: waiting for finalizer example.com/hold" {
		t.Errorf("it said %q; it saw %s", said, o.story())
	}
}
