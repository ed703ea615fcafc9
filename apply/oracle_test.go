package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

// TestAsIfNew is the oracle: whatever happened before, a release that succeeds
// leaves its objects as a first one would, and nothing else. What happened is
// drawn by lot: revisions of deployer and Helm 3, of which some end in the
// middle, some never begin, and some are earlier ones again, and what people do
// to objects. Others have objects in the same namespace, which some runs adopt and
// fail: these have them as before. DEPLOYER_TEST_SEEDS says how many stories to try, and
// kubetest.SeedVariable which; one of them is repeated by its name.
func TestAsIfNew(t *testing.T) {
	t.Parallel()
	seeds, _ := strconv.Atoi(os.Getenv("DEPLOYER_TEST_SEEDS"))
	which := kubetest.Seed(t)
	for seed := range max(seeds, 6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, fresh := begin(t), newStory(t)
			l := &lot{rand.New(rand.NewPCG(uint64(seed), which))}
			others := s.surround()
			told := s.live(l, others)
			chart := l.chart()
			s.deploy(chart)
			s.expect(s.deploy(chart))
			others.asBefore()
			fresh.deploy(chart)
			got, want := s.world(), fresh.world()
			for id := range want {
				if got[id] != want[id] {
					t.Errorf("%s is\n%s\nwant\n%s", id, got[id], want[id])
				}
				delete(got, id)
			}
			for id, obj := range got {
				t.Errorf("%s is left over: %s", id, obj)
			}
			if t.Failed() {
				t.Logf("%s\nthen\n%s", strings.Join(told, "\n"), chart)
			}
		})
	}
}

// live draws a life of the release, and tells it.
func (s *story) live(l *lot, others *neighbours) []string {
	s.t.Helper()
	var told []string
	var before []string // the charts so far, the last one is what the release is
	for i := range 2 + l.IntN(3) {
		chart := l.chart()
		if i > 1 && l.IntN(4) == 0 {
			chart = before[l.IntN(i)] // rolled back
		}
		switch {
		case i == 0 && l.IntN(2) == 0:
			told = append(told, "Helm 3 installs")
			s.helm3Install(chart)
			s.record("deployed", chart)
		case i > 0 && len(s.past) == 1 && patchable(before[i-1]) && patchable(chart) && l.IntN(3) == 0:
			status := l.of("failed", "deployed")
			told = append(told, "Helm 3 upgrades: "+status)
			s.helm3Upgrade(before[i-1], chart)
			if status == "deployed" {
				s.helm3Prune(before[i-1], chart)
			}
			s.record(status, chart)
		case l.IntN(3) == 0:
			told = append(told, "deployed")
			s.deploy(chart)
			others.lent = false
		case i > 0 && l.IntN(3) == 0:
			told = append(told, "adopted in vain: "+others.adoptInVain(chart, l))
		default:
			told = append(told, "interrupted: "+s.interrupted(chart, l))
		}
		before = append(before, chart)
		if l.IntN(3) == 0 {
			others.deployOther()
		}
		switch l.IntN(4) {
		case 0:
			told = append(told, "refused")
			s.refused(l.chart())
		case 1:
			told = append(told, "by hand: "+s.editedByHand(l))
		}
	}
	return told
}

// helm3Prune deletes what an upgrade that succeeds drops.
func (s *story) helm3Prune(from, to string) {
	s.t.Helper()
	kept := map[kube.ID]bool{}
	for _, m := range s.manifests(to) {
		kept[kube.IDOf(m.Object)] = true
	}
	for _, m := range s.manifests(from) {
		if obj := m.Object; !kept[kube.IDOf(obj)] {
			err := s.client(obj.GetAPIVersion(), obj.GetKind()).Delete(s.t.Context(), obj.GetName(), deleteNow)
			if err != nil && !apierrors.IsNotFound(err) {
				s.t.Fatal(err)
			}
		}
	}
}

// refused plans a chart of which one object is wrong: nothing changes.
func (s *story) refused(chart string) {
	s.t.Helper()
	from := len(s.c.Audit(s.t, s.agent))
	s.refuse(chart + "\n---\n" + config("Bad_Name"))
	if w := kubetest.Writes(s.c.Audit(s.t, s.agent)[from:]); len(w) > 0 {
		s.t.Errorf("although it was refused, it wrote: %v", w)
	}
}

// editedByHand changes what charts state of one object, or deletes it. What no
// chart states would stay.
func (s *story) editedByHand(l *lot) string {
	s.t.Helper()
	objects := s.objects()
	if len(objects) == 0 {
		return "nothing"
	}
	obj := objects[l.IntN(len(objects))]
	id := kube.IDOf(obj).String()
	if l.IntN(4) == 0 {
		if err := s.client(obj.GetAPIVersion(), obj.GetKind()).Delete(s.t.Context(), obj.GetName(), deleteNow); err != nil {
			s.t.Fatal(err)
		}
		return "deleted " + id
	}
	meta, patch := map[string]any{}, map[string]any{}
	if len(obj.GetLabels()) > 1 {
		meta["labels"] = edited(obj.GetLabels(), "app.kubernetes.io/managed-by")
	}
	if obj.GetAnnotations()["note"] != "" {
		meta["annotations"] = map[string]any{"note": nil}
	}
	if data, ok, _ := unstructured.NestedStringMap(obj.Object, "data"); ok {
		patch["data"] = edited(data, "")
	}
	if containers, ok, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers"); ok {
		containers[0].(map[string]any)["image"] = "edited"
		patch["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}
	}
	patch["metadata"] = meta
	text, err := json.Marshal(patch)
	if err != nil {
		s.t.Fatal(err)
	}
	s.patch(obj.GetAPIVersion(), obj.GetKind(), obj.GetName(), merge, string(text), "kubectl-edit")
	return id
}

// edited gives other values to the keys of a map, except one.
func edited(in map[string]string, except string) map[string]any {
	out := map[string]any{}
	for key := range in {
		if key != except {
			out[key] = "ZWRpdGVk" // which a Secret can have too
		}
	}
	return out
}

// patchable says that Helm 3 can make patches of a chart.
func patchable(chart string) bool {
	return !strings.Contains(chart, "metrics") && !strings.Contains(chart, "$(A)") && !strings.Contains(chart, "{name: B, value: x}, {name: A")
}

// interrupted carries out some of a release and records that it failed.
func (s *story) interrupted(chart string, l *lot) string {
	s.t.Helper()
	p := s.plan(chart)
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	all := len(slices.Collect(p.Changes()))
	left := l.IntN(all + 1)
	planned := slices.Collect(p.Changes())
	var done []apply.Change
	if left > 0 {
		_ = s.carryOut(ctx, p, func(c *apply.Change) {
			done = append(done, *c)
			if left--; left == 0 {
				cancel()
			}
		})
	}
	s.marks = fingerprintsOf(done)
	s.noteProvenance(planned, done, false)
	s.record("failed", chart)
	return fmt.Sprintf("%d of %d changes", len(done), all)
}

// world is everything of the release in the namespace, without what the server
// and its controllers write.
func (s *story) world() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, obj := range s.objects() {
		o := obj.DeepCopy()
		meta := o.Object["metadata"].(map[string]any)
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "namespace"} {
			delete(meta, field)
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
		unstructured.RemoveNestedField(o.Object, "status")
		unstructured.RemoveNestedField(o.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
		data, err := json.MarshalIndent(o.Object, "", " ")
		if err != nil {
			s.t.Fatal(err)
		}
		// What is written whole is never applied.
		m := strings.TrimSuffix(managers(obj), " kube-controller-manager/Update")
		if m != "helm/Apply" && patchable(string(data)) {
			s.t.Errorf("%s %s has managers %s", o.GetKind(), o.GetName(), m)
		}
		out[o.GetKind()+"/"+o.GetName()] = strings.ReplaceAll(string(data), s.ns, "NS")
	}
	return out
}

// objects are those in the namespace that carry Helm's label, in order.
func (s *story) objects() []*unstructured.Unstructured {
	s.t.Helper()
	var out []*unstructured.Unstructured
	for _, kind := range [][2]string{{"v1", "ConfigMap"}, {"v1", "Secret"}, {"v1", "Service"}, {"apps/v1", "Deployment"}, {"batch/v1", "CronJob"}, {"rbac.authorization.k8s.io/v1", "Role"}} {
		list, err := s.client(kind[0], kind[1]).List(s.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=Helm"})
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range list.Items {
			if !isForeign(list.Items[i].GetName()) {
				out = append(out, &list.Items[i])
			}
		}
	}
	return out
}
