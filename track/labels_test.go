package track_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kubetest"
	"deployer/track"
)

// relisting is a transport on which watches by labels last for two seconds and
// then have to begin with what is there.
type relisting struct{ base http.RoundTripper }

func (l relisting) RoundTrip(r *http.Request) (*http.Response, error) {
	if query := r.URL.Query(); query.Get("watch") != "" && query.Get("labelSelector") != "" {
		r = r.Clone(r.Context())
		query.Set("timeoutSeconds", "2")
		if query.Get("resourceVersion") != "" {
			query.Set("resourceVersion", "1")
		}
		r.URL.RawQuery = query.Encode()
	}
	return l.base.RoundTrip(r)
}

// An object that has lost the labels by which it is watched is watched by its
// name, and by one watch, however often the others are listed again.
func TestAnObjectWithoutItsLabelsIsWatchedOnce(t *testing.T) {
	w := newWorld(t)
	if !w.streamsLists() {
		t.Skip("the API server takes no watch of a version that it has forgotten")
	}
	var targets []track.Target
	for i := range 4 {
		targets = append(targets, w.apply(workload("Deployment", fmt.Sprintf("web-%d", i), 1, kubetest.ReadyAfter(12*time.Second), "")))
	}
	config := w.c.Config()
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return relisting{rt} })
	w.cluster = w.connect(config)
	stripped := false
	o := w.waitWith(track.Options{}, 60*time.Second, func(track.Event) {
		if stripped {
			return
		}
		stripped = true
		patch := []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`)
		if _, err := w.client(targets[0].GVK).Patch(t.Context(), "web-0", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}, targets...).ready(40 * time.Second)
	if got := o.state(targets[0].ID); got.State != track.Ready {
		t.Errorf("the object without its labels is %+v", got)
	}
	byLabels, byName := 0, 0
	for _, e := range w.c.Audit(w, w.agent) {
		switch {
		case e.Verb != "watch" || e.Object.Resource != "deployments":
		case strings.Contains(e.URI, "labelSelector="):
			byLabels++
		case strings.Contains(e.URI, "web-0"):
			byName++
		}
	}
	if byLabels < 4 || byName != 1 {
		t.Errorf("%d watches by labels and %d by the name, want several and one", byLabels, byName)
	}
}
