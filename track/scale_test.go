package track_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kubetest"
	"deployer/track"
)

// longEnv lets tests run that take minutes.
const longEnv = "DEPLOYER_TEST_LONG"

// inOneStep lets all pods be replaced at once, and a control plane on a small machine
// take its time: left alone it calls thousands of pods late after ten minutes.
const inOneStep = "  strategy: {rollingUpdate: {maxSurge: 100%}}\n  progressDeadlineSeconds: 3600\n"

// TestScale tracks hundreds of workloads: new ones, a new image, and back again.
// It takes at most twenty requests each time, no line per pod, and little memory.
func TestScale(t *testing.T) {
	if os.Getenv(longEnv) == "" {
		t.Skip("it takes minutes; set " + longEnv)
	}
	for _, size := range []struct{ deployments, pods, others int }{{200, 5, 0}, {400, 25, 600}} {
		t.Run(fmt.Sprintf("%dx%d", size.deployments, size.pods), func(t *testing.T) {
			w := loneWorld(t)
			for i := range 10 {
				w.bigNode(fmt.Sprintf("big-%d-%s", i, w.ns), size.deployments*size.pods/4)
			}
			for _, image := range []string{"r/x:1", "r/x:2", "r/x:1"} {
				w.track(image, size.deployments, size.pods, size.others)
			}
		})
	}
}

func (w *world) track(image string, deployments, pods, others int) {
	w.Helper()
	before := len(w.requests(w.agent))
	var targets []track.Target
	for i := range deployments {
		manifest := workload("Deployment", fmt.Sprintf("web-%d", i), pods, kubetest.ReadyAfter(4*time.Second), inOneStep)
		manifest = strings.Replace(manifest, "      containers:", "      nodeSelector: {track-test: "+w.ns+"}\n      containers:", 1)
		targets = append(targets, w.apply(strings.ReplaceAll(manifest, "r/x:1", image)))
	}
	for i := range others {
		targets = append(targets, w.apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}, data: {a: %q}}", i, image)))
	}
	highest := uint64(0)
	o := w.waitWith(track.Options{}, 40*time.Minute, func(track.Event) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		highest = max(highest, m.HeapInuse)
	}, targets...).ready(40 * time.Minute)
	if got := w.requests(w.agent)[before:]; len(got) > 20 {
		w.Errorf("%s: tracking made %d requests, want 20 at most: %s", image, len(got), strings.Join(got, "\n"))
	}
	if most := 40*deployments + 2*others + 100; len(o.reports) > most {
		w.Errorf("%s: %d reports about %d objects with %d pods", image, len(o.reports), len(targets), deployments*pods)
	}
	if highest > 512<<20 {
		w.Errorf("%s: %d MiB of heap", image, highest>>20)
	}
	w.Logf("%s: %d objects, %d pods: %s, %d requests, %d reports, %d MiB", image, len(targets), deployments*pods,
		o.took.Round(time.Second), len(w.requests(w.agent))-before, len(o.reports), highest>>20)
}

// bigNode is a simulated node with room for many pods.
func (w *world) bigNode(name string, pods int) {
	w.Helper()
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("100Gi"),
		corev1.ResourcePods: *resource.NewQuantity(int64(pods), resource.DecimalSI)}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{"track-test": w.ns, corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	nodes := w.c.Client().CoreV1().Nodes()
	if _, err := nodes.Create(w.Context(), node, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = nodes.Delete(context.Background(), name, metav1.DeleteOptions{}) })
}
