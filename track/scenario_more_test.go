package track_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
	"deployer/track"
	"deployer/track/class"
	"deployer/track/finding"
)

func TestUninstall(t *testing.T) {
	w := newWorld(t)
	plain := w.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}")
	held := w.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/wait]}}")
	anew := w.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: anew}}")
	maps := w.c.Client().CoreV1().ConfigMaps(w.ns)
	targets := []track.Target{plain, held, anew}
	for i := range targets {
		targets[i].Until = track.UntilGone
		if err := maps.Delete(t.Context(), targets[i].ID.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: anew}}")
	named := false
	o := w.waitWith(track.Options{}, 20*time.Second, func(r track.Event) {
		if len(r.Status.Finalizers) == 0 || named {
			return
		}
		named = strings.Contains(r.Status.Message, "example.com/wait")
		_, err := maps.Patch(t.Context(), "held", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
		}
	}, targets...)
	o.ready(5 * time.Second)
	if !named {
		t.Errorf("the finalizer was not named; it saw %s", o.story())
	}
	gone := track.Target{ID: kube.ID{Kind: "ConfigMap", Namespace: w.ns, Name: "never"}, Until: track.UntilGone}
	w.wait(track.Options{}, 20*time.Second, gone).ready(2 * time.Second)
}

// TestNamespaceHeldByAFinalizer fails if a namespace counts as empty because its conditions say "All content
// successfully deleted", as Kubernetes 1.37.2 writes while objects with finalizers remain: what holds it is named.
func TestNamespaceHeldByAFinalizer(t *testing.T) {
	w := newWorld(t)
	namespaces, name := w.c.Client().CoreV1().Namespaces(), w.ns+"-held"
	held := w.apply("{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}")
	held.Until = track.UntilGone
	maps := w.c.Client().CoreV1().ConfigMaps(name)
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/wait"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	release := func() error {
		_, err := maps.Patch(context.Background(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return err
	}
	t.Cleanup(func() { _ = release() }) // if the test fails before
	named := false
	o := w.waitWith(track.Options{}, 3*time.Minute, func(r track.Event) {
		if named || !strings.Contains(r.Status.Message, "configmaps. has 1 resource instances") || !strings.Contains(r.Status.Message, "example.com/wait in 1 resource instances") {
			return
		}
		named = true
		if live, err := namespaces.Get(t.Context(), name, metav1.GetOptions{}); err != nil || !strings.Contains(fmt.Sprint(live.Status), "All content successfully deleted") {
			t.Errorf("the namespace says %v (%v)", live.Status, err)
		}
		if err := release(); err != nil {
			t.Error(err)
		}
	}, held)
	o.ready(3 * time.Minute) // a busy controller takes its time
	if !named {
		t.Errorf("what holds it was not named; it saw %s", o.story())
	}
}

func TestDeletedWhileTracked(t *testing.T) {
	w := newWorld(t)
	web := w.apply(workload("Deployment", "web", 1, kubetest.NeverReady(), ""))
	if err := w.c.Client().AppsV1().Deployments(w.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.wait(track.Options{}, 20*time.Second, web).failed(class.Deleted, time.Second, 6*time.Second)
}

func TestClaims(t *testing.T) {
	t.Parallel()
	const claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data%s}, spec: {accessModes: [ReadWriteOnce], storageClassName: %s, resources: {requests: {storage: 1Gi}}}}"
	t.Run("for its first pod", func(t *testing.T) {
		w := newWorld(t)
		name := "wffc-" + w.ns
		_, err := w.c.Dynamic().Resource(schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}).
			Create(t.Context(), parse(t, "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: "+name+"}, provisioner: example.com/none, volumeBindingMode: WaitForFirstConsumer}"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = w.c.Client().StorageV1().StorageClasses().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
		data := w.apply(strings.NewReplacer("%s", "", "storageClassName: %s", "storageClassName: "+name).Replace(strings.Replace(claim, "data%s", "data", 1)))
		w.wait(track.Options{}, 30*time.Second, data).ready(8 * time.Second)
	})
	t.Run("of no class", func(t *testing.T) {
		w := newWorld(t)
		manifest := strings.Replace(strings.Replace(claim, "data%s", "data", 1), "storageClassName: %s", "storageClassName: nobody", 1)
		manifest = strings.Replace(manifest, "{name: data}", "{name: data, annotations: {deployer.io/no-progress-timeout: 5s}}", 1)
		w.wait(track.Options{}, 30*time.Second, w.apply(manifest)).failed(class.NoProgress, 4*time.Second, 8*time.Second)
	})
}

func TestLoadBalancerAddress(t *testing.T) {
	w := newWorld(t)
	edge := w.apply("{apiVersion: v1, kind: Service, metadata: {name: edge}, spec: {type: LoadBalancer, ports: [{port: 80}]}}")
	given := false
	w.waitWith(track.Options{}, 20*time.Second, func(r track.Event) {
		if given {
			return
		}
		given = true
		_, err := w.c.Client().CoreV1().Services(w.ns).Patch(t.Context(), "edge", "application/merge-patch+json",
			[]byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Error(err)
		}
	}, edge).ready(3 * time.Second)
}

func TestMountedObjectIsMissing(t *testing.T) {
	w := newWorld(t)
	script := kubetest.Script{{Phase: "Pending", State: kubetest.Waiting("ContainerCreating", "")}}
	web := w.apply(workload("StatefulSet", "web", 1, script, ""))
	var pod *corev1.Pod
	w.c.Eventually(t, time.Minute, "the pod", func(ctx context.Context) (err error) {
		pod, err = w.c.Client().CoreV1().Pods(w.ns).Get(ctx, "web-0", metav1.GetOptions{})
		return err
	})
	w.postEvent(pod, corev1.Event{Reason: "FailedMount", Message: `MountVolume.SetUp failed for volume "c" : configmap "app" not found`, Count: 2})
	o := w.wait(track.Options{}, 60*time.Second, web)
	cause := o.failed(class.MountedObjectMissing, 30*time.Second, 38*time.Second)
	if len(cause.Events) == 0 {
		t.Errorf("problem = %+v, want the event", cause)
	}
}

// define makes a kind, Thing, and waits until it is served. It gives the group.
func (w *world) define(more string) (group string) {
	w.Helper()
	group = strings.ReplaceAll(w.ns, "-", "") + ".example.com"
	crd := parse(w, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.`+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`+more)
	definitions := w.definitions()
	made, err := definitions.Apply(w.Context(), crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "deployer"})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = definitions.Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{}) })
	w.wait(track.Options{}, 30*time.Second, track.Target{ID: kube.IDOf(made), Baseline: made, Changed: true}).ready(15 * time.Second)
	w.admin.ForgetKinds()
	return group
}

func (w *world) definitions() dynamic.ResourceInterface {
	return w.c.Dynamic().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

const withStatus = "    subresources: {status: {}}\n"

// TestPodsOfAnArgoRollout: its new pods say why it doesn't get ready, long before its own deadline.
func TestPodsOfAnArgoRollout(t *testing.T) {
	w := newWorld(t)
	crd := parse(w, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.argoproj.io}
spec:
  group: argoproj.io
  scope: Namespaced
  names: {plural: rollouts, singular: rollout, kind: Rollout, listKind: RolloutList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`+withStatus)
	made, err := w.definitions().Apply(w.Context(), crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "deployer"})
	if err != nil {
		t.Fatal(err)
	}
	w.Cleanup(func() { _ = w.definitions().Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{}) })
	w.wait(track.Options{}, 30*time.Second, track.Target{ID: kube.IDOf(made), Baseline: made, Changed: true}).ready(15 * time.Second)
	w.admin.ForgetKinds()
	rollout := w.apply("{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {replicas: 1}}")
	pods := workload("ReplicaSet", "web-5c7", 1, kubetest.Script{{Phase: "Pending", State: kubetest.Waiting("InvalidImageName", "couldn't parse it")}}, "")
	w.apply(strings.ReplaceAll(pods, "app: web-5c7", "app: web, rollouts-pod-template-hash: 5c7"))
	status := `{"status":{"observedGeneration":"1","phase":"Progressing","currentPodHash":"5c7"}}`
	if _, err := w.client(rollout.GVK).Patch(t.Context(), "web", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	if p := w.wait(track.Options{}, 40*time.Second, rollout).failed(class.InvalidImageName, 0, 12*time.Second); len(p.Pods) != 1 {
		t.Errorf("problem = %+v, want the pod", p)
	}
}

func TestDefinitionAndItsObject(t *testing.T) {
	w := newWorld(t)
	group := w.define(withStatus)
	thing := w.apply("{apiVersion: " + group + "/v1, kind: Thing, metadata: {name: one, annotations: {deployer.io/no-progress-timeout: 30s}}, spec: {a: 1}}")
	client := w.client(thing.GVK)
	step := 0
	steps := []string{`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Creating","observedGeneration":1}]}}`,
		`{"status":{"observedGeneration":"1","conditions":[{"type":"Ready","status":"True","reason":"Made","observedGeneration":1}]}}`}
	w.waitWith(track.Options{}, 30*time.Second, func(r track.Event) {
		if step == len(steps) || r.Kind != track.StatusChanged {
			return
		}
		step++
		if _, err := client.Patch(t.Context(), "one", "application/merge-patch+json", []byte(steps[step-1]), metav1.PatchOptions{}, "status"); err != nil {
			t.Error(err)
		}
	}, thing).ready(5 * time.Second)
	if step != 2 {
		t.Errorf("it was called ready after %d of 2 steps", step)
	}
}

func TestObjectThatReportsAFailure(t *testing.T) {
	w := newWorld(t)
	thing := w.apply("{apiVersion: " + w.define(withStatus) + "/v1, kind: Thing, metadata: {name: one}, spec: {a: 1}}")
	status := `{"status":{"conditions":[{"type":"Stalled","status":"True","reason":"QuotaReached","message":"no more of them","observedGeneration":1}]}}`
	if _, err := w.client(thing.GVK).Patch(t.Context(), "one", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	cause := w.wait(track.Options{}, time.Minute, thing).failed(class.ConditionFailed, 9*time.Second, 30*time.Second)
	if !strings.Contains(cause.Message, "no more of them") {
		t.Errorf("problem = %+v, want what the object says", cause)
	}
}

// TestOldPodsStillHoldTheRoom: the new pod has no node until the old one has left,
// which is no failure.
func TestOldPodsStillHoldTheRoom(t *testing.T) {
	w := newWorld(t)
	room := w.roomForOne()
	manifest := workload("Deployment", "web", 1, nil, "  strategy: {rollingUpdate: {maxSurge: 100%, maxUnavailable: 100%}}\n")
	manifest = strings.Replace(manifest, "      containers: [{", "      containers: [{resources: {limits: {"+room+": 1}}, ", 1)
	manifest = strings.Replace(manifest, "labels: {app: web}\n      \n", "labels: {app: web}\n      annotations: {"+kubetest.DeleteAfterAnnotation+": 8s}\n", 1)
	manifest = strings.Replace(manifest, "GracePeriodSeconds: 0", "GracePeriodSeconds: 30", 1)
	web := w.apply(manifest)
	w.wait(track.Options{}, 40*time.Second, web).ready(30 * time.Second)
	if !w.countsTerminatingPods(web) {
		t.Skip("the API server doesn't say that old pods are still there")
	}
	o := w.wait(track.Options{}, time.Minute, w.apply(strings.Replace(manifest, "r/x:1", "r/x:2", 1))).ready(50 * time.Second)
	if !strings.Contains(o.story(), string(class.WaitingForRoom)) {
		t.Errorf("it wasn't said that old pods hold the room; it saw %s", o.story())
	}
}

// roomForOne makes a resource that one pod at a time can have. It is on a node
// that is there: a further one would be seen, and used, by the pods of other tests.
func (w *world) roomForOne() string {
	w.Helper()
	nodes := w.c.Client().CoreV1().Nodes()
	list, err := nodes.List(w.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) == 0 {
		w.Fatalf("there are no nodes: %v", err)
	}
	name, room := list.Items[0].Name, "track.test/"+w.ns
	offer := func(ctx context.Context, value string) error {
		patch := fmt.Sprintf(`{"status":{"capacity":{%q:%s},"allocatable":{%q:%s}}}`, room, value, room, value)
		_, err := nodes.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	}
	if err := offer(w.Context(), `"1"`); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = offer(context.Background(), "null") })
	return room
}

// TestRuleInTheDefinition: it holds for all objects of the kind, but those that
// have one of their own, and one that can't be read is told.
func TestRuleInTheDefinition(t *testing.T) {
	w := newWorld(t)
	group := w.define(withStatus)
	rule := func(annotations string) {
		t.Helper()
		patch := `{"metadata":{"annotations":{` + annotations + `}}}`
		if _, err := w.definitions().Patch(t.Context(), "things."+group, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	rule(`"deployer.io/instances-ready":"self.spec.a == 2","deployer.io/instances-failed":"self.spec.a == 3"`)
	thing := func(name, more string) track.Target {
		return w.apply("{apiVersion: " + group + "/v1, kind: Thing, metadata: {name: " + name + more)
	}
	w.wait(track.Options{}, 20*time.Second, thing("good", "}, spec: {a: 2}}"),
		thing("own", ", annotations: {deployer.io/ready: self.spec.a == 3}}, spec: {a: 3}}")).ready(10 * time.Second)
	w.wait(track.Options{}, 20*time.Second, thing("bad", "}, spec: {a: 3}}")).failed(class.RuleFailed, 0, 10*time.Second)
	// A status that is computed without a wait follows the rule, and so does a wait after it for
	// what nobody has changed.
	tracker := track.New(w.cluster, track.Options{})
	other := thing("other", "}, spec: {a: 1}}")
	if got := tracker.ComputeStatus(t.Context(), []*unstructured.Unstructured{other.Baseline})[0]; got.State != track.Progressing {
		t.Errorf("status = %+v, want it progressing by the rule", got)
	}
	other.Changed = false
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	var late *track.TimeoutError
	if err := tracker.Wait(ctx, []track.Target{other}, nil); !errors.As(err, &late) {
		t.Errorf("Wait = %v, want that it isn't ready by the rule", err)
	}
	rule(`"deployer.io/instances-ready":"slef.spec.a == 2"`)
	o := w.wait(track.Options{}, time.Second, thing("other", "}, spec: {a: 2}}"))
	if !o.warned("undeclared reference") {
		t.Errorf("the rule isn't told to be wrong; it saw %s", o.story())
	}
}

// TestRuleInTheDefinitionForAnObjectOfOthers: an object that this release didn't apply, and one that
// somebody creates during the wait, is ready by the rule, and not because it has no status.
func TestRuleInTheDefinitionForAnObjectOfOthers(t *testing.T) {
	t.Parallel()
	for name, existsBefore := range map[string]bool{"there": true, "appears": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			group := w.define(withStatus)
			patch := `{"metadata":{"annotations":{"deployer.io/instances-ready":"self.status.ok"}}}`
			if _, err := w.definitions().Patch(t.Context(), "things."+group, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"}
			id := kube.ID{Group: group, Kind: "Thing", Namespace: w.ns, Name: "one"}
			create := func() { w.apply("{apiVersion: " + group + "/v1, kind: Thing, metadata: {name: one}}") }
			if existsBefore {
				create()
			}
			said := ""
			w.waitWith(track.Options{}, 30*time.Second, func(r track.Event) {
				switch {
				case r.Kind != track.StatusChanged:
				case r.Status.State == track.Waiting && !existsBefore:
					create()
				case r.Status.State == track.Progressing && said == "":
					said = r.Status.Message
					if _, err := w.client(gvk).Patch(t.Context(), "one", types.MergePatchType, []byte(`{"status":{"ok":true}}`), metav1.PatchOptions{}, "status"); err != nil {
						t.Error(err)
					}
				}
			}, track.Target{ID: id, GVK: gvk, MayAppearLater: true}).ready(10 * time.Second)
			if !strings.Contains(said, "self.status.ok") {
				t.Errorf("before it had a status it was %q, want that it waits for self.status.ok", said)
			}
		})
	}
}

// TestKindWithoutStatus: nobody can ever tell whether its objects are ready, and
// nobody is asked.
func TestKindWithoutStatus(t *testing.T) {
	w := newWorld(t)
	thing := w.apply("{apiVersion: " + w.define("") + "/v1, kind: Thing, metadata: {name: one}}")
	before := len(w.requests(w.agent))
	o := w.wait(track.Options{}, 30*time.Second, thing).ready(2 * time.Second)
	if got := o.state(thing.ID); !got.Unverified {
		t.Errorf("status = %+v, want it unverified", got)
	}
	if got := w.requests(w.agent)[before:]; len(got) > 0 {
		t.Errorf("tracking made requests: %s", strings.Join(got, "\n"))
	}
}

// awaitUnserved waits until a kind whose definition was deleted isn't served any more.
func (w *world) awaitUnserved(gvk schema.GroupVersionKind) {
	w.Helper()
	client := w.client(gvk)
	w.c.Eventually(w.T, time.Minute, "the kind to go", func(ctx context.Context) error {
		_, err := client.Get(ctx, "one", metav1.GetOptions{})
		if !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
			return fmt.Errorf("it is still served: %v", err)
		}
		return nil
	})
}

// TestKindThatIsUnknown: an object whose kind nobody has defined isn't there.
func TestKindThatIsUnknown(t *testing.T) {
	w := newWorld(t)
	thing := track.Target{ID: kube.ID{Group: "unknown.example.com", Kind: "Thing", Namespace: w.ns, Name: "one"}}
	w.wait(track.Options{}, 20*time.Second, thing).failed(class.Deleted, 0, 10*time.Second)
	thing.MayAppearLater = true
	if o := w.wait(track.Options{}, 20*time.Second, thing); !errors.As(o.err, new(*kube.NoKindMatchError)) {
		t.Errorf("Wait = %v, want that the kind is unknown; it saw %s", o.err, o.story())
	}
}

// TestUninstallOfAKind: with its definition gone, an object is gone too, and no
// permission is missing.
func TestUninstallOfAKind(t *testing.T) {
	w := newWorld(t)
	group := w.define("")
	thing := w.apply("{apiVersion: " + group + "/v1, kind: Thing, metadata: {name: one}}")
	thing.Until = track.UntilGone
	if _, err := w.cluster.Mapping(t.Context(), thing.GVK, false); err != nil {
		t.Fatal(err) // or what follows shows nothing
	}
	if err := w.definitions().Delete(t.Context(), "things."+group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitUnserved(thing.GVK)
	o := w.wait(track.Options{}, 30*time.Second, thing).ready(5 * time.Second)
	if o.warned("") {
		t.Errorf("it warned: %s", o.story())
	}
}

// TestKindGoesWhileAwaited: objects that go with their definition are deleted, whichever
// way they are observed, and no permission is missing.
func TestKindGoesWhileAwaited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, verbs string
		objects     int
	}{
		{"watched by name", "get,list,watch", 1},
		{"watched by labels", "get,list,watch", 5},
		{"read from time to time", "get", 1},
		{"dry runs", "patch", 1},
		{"gone before", "get,list,watch", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			group := w.define(withStatus)
			u := w.c.User(t, w.ns)
			u.Allow(t, w.ns, kubetest.Rule(group, c.verbs, "things"))
			w.as(u)
			var things []track.Target
			for i := range c.objects {
				things = append(things, w.apply(fmt.Sprintf("{apiVersion: %s/v1, kind: Thing, metadata: {name: thing-%d, labels: {app.kubernetes.io/instance: web}}}", group, i)))
			}
			for _, thing := range things {
				status := `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Creating"}]}}`
				if _, err := w.client(thing.GVK).Patch(t.Context(), thing.ID.Name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
					t.Fatal(err)
				}
			}
			deleteKind := sync.OnceFunc(func() {
				if err := w.definitions().Delete(t.Context(), "things."+group, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
			if c.name == "gone before" {
				deleteKind()
				w.awaitUnserved(things[0].GVK)
				w.cluster.ForgetKinds()
			}
			o := w.waitWith(track.Options{}, 2*time.Minute, func(r track.Event) {
				if r.Status.State == track.Progressing {
					deleteKind()
				}
			}, things...)
			o.failed(class.Deleted, 0, time.Minute)
			if o.warned("no permission to watch or get") {
				t.Errorf("it calls a kind that is gone a missing permission: %s", o.story())
			}
		})
	}
}

// TestFewRights lacks each selection of verbs on each kind, in turn: what is broken
// fails by what can be seen of it, nothing else does, and what can't be seen is said
// once.
func TestFewRights(t *testing.T) {
	t.Parallel()
	selections := []string{"", "get", "list", "watch", "get,list", "get,watch", "list,watch", "get,list,watch"}
	rows := [][4]string{{"patch", "", "", ""}}
	for i := range selections {
		rows = append(rows, [4]string{selections[i], selections[(3*i+3)%8], selections[(5*i+2)%8], selections[(7*i+3)%8]})
	}
	for _, row := range rows {
		objects, pods, events := row[0], row[1], row[2]
		t.Run(strings.Join(row[:], "/"), func(t *testing.T) {
			w := newWorld(t)
			u := w.c.User(t, w.ns)
			for i, of := range [][2]string{{"apps", "deployments"}, {"", "pods"}, {"", "events"}, {"apps", "replicasets"}} {
				if row[i] != "" {
					u.Allow(t, w.ns, kubetest.Rule(of[0], row[i], of[1]))
				}
			}
			w.as(u)
			// What is seen of the pod isn't final in time, also where the controller is late.
			slow := kubetest.Script{{After: time.Second, Phase: "Pending", State: kubetest.Waiting("ErrImagePull", `failed to do request: Head "https://r/v2/x": dial tcp: i/o timeout`)}}
			web := w.apply(workload("Deployment", "web", 1, slow, "  progressDeadlineSeconds: 15\n"))
			good := w.apply(workload("Deployment", "good", 1, nil, ""))
			o := w.wait(track.Options{}, 90*time.Second, web, good)

			watched := strings.Contains(objects, "watch")
			seen := watched || strings.Contains(objects, "get") || objects == "patch"
			o.warnedOnce("from time to time", !watched)
			o.warnedOnce("no permission to watch or get", !seen)
			if !seen { // whether pods and events are asked for before that is known is chance
				if o.ready(20 * time.Second); !o.state(web.ID).Unverified || !o.state(good.ID).Unverified {
					t.Errorf("want both unverified; it saw %s", o.story())
				}
				return
			}
			seesPods := strings.Contains(pods, "watch") && (strings.Contains(pods, "list") || w.streamsLists())
			o.warnedOnce("pod details unavailable", !seesPods)
			o.warnedOnce("events unavailable", !strings.Contains(events, "list,watch"))
			cause := o.failed(class.ProgressDeadline, 14*time.Second, time.Minute)
			if shown := cause.PodCount > 0; shown != seesPods || len(cause.Objects) != 1 {
				t.Errorf("cause = %+v, want that of one object and of what can be seen of its pod", cause)
			}
		})
	}
}

// warnedOnce wants one warning with a text, or none.
func (o *outcome) warnedOnce(text string, want bool) {
	o.Helper()
	n := 0
	for _, r := range o.reports {
		if r.Kind == track.Warned && strings.Contains(r.Text, text) {
			n++
		}
	}
	if n > 1 || (n == 1) != want {
		o.Errorf("%d warnings have %q, wanted: %t; it saw %s", n, text, want, o.story())
	}
}

func TestFallbackWithoutPermissionToWatch(t *testing.T) {
	w := newWorld(t)
	u := w.c.User(t, w.ns)
	u.Allow(t, w.ns, kubetest.Rule("apps", "get", "deployments"))
	w.as(u)
	var targets []track.Target
	for i := range 5 {
		targets = append(targets, w.apply(workload("Deployment", fmt.Sprintf("web-%d", i), 1, kubetest.ReadyAfter(time.Second), "")))
	}
	o := w.wait(track.Options{}, 40*time.Second, targets...).ready(25 * time.Second)
	if !o.warned("one by one") || !o.warned("from time to time") {
		t.Errorf("want each step told; it saw %s", o.story())
	}
	warnings := 0
	for _, r := range o.reports {
		if r.Kind == track.Warned {
			warnings++
		}
	}
	if warnings > 4 {
		t.Errorf("%d warnings, want each said once; it saw %s", warnings, o.story())
	}
}

// cut is a transport that can be cut off, also in the middle of an answer.
type cut struct {
	base http.RoundTripper
	off  *atomic.Bool
}

func (c cut) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.off.Load() {
		return nil, errors.New("connection refused")
	}
	answer, err := c.base.RoundTrip(r)
	if err == nil {
		answer.Body = cutBody{answer.Body, c.off}
	}
	return answer, err
}

type cutBody struct {
	io.ReadCloser
	off *atomic.Bool
}

func (b cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.off.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestConnectionComesBack(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"after the start": true, "in between": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var off atomic.Bool
			config := w.c.Config()
			config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return cut{rt, &off} })
			w.cluster = w.connect(config)
			web := w.apply(workload("Deployment", "web", 1, kubetest.ReadyAfter(5*time.Second), ""))
			web.Baseline.SetResourceVersion("1") // long gone: the watch must find its own way
			off.Store(early)
			cutOnce := sync.OnceFunc(func() { off.Store(true) }) // a second time before the connection is back, nothing would end it
			o := w.waitWith(track.Options{}, 30*time.Second, func(r track.Event) {
				if r.Kind == track.APILost {
					time.AfterFunc(2*time.Second, func() { off.Store(false) })
				} else if r.Kind == track.StatusChanged && r.Status.Rollout != nil && r.Status.Rollout.Available == 0 {
					cutOnce()
				}
			}, web).ready(20 * time.Second)
			var kinds []string
			for _, r := range o.reports {
				kinds = append(kinds, string(r.Kind))
			}
			if all := strings.Join(kinds, " "); !strings.Contains(all, "api_lost") || !strings.Contains(all, "api_regained") {
				t.Errorf("reports = %s, want the loss of the connection and its end", all)
			}
		})
	}
}

func TestRefusedCredentials(t *testing.T) {
	w := newWorld(t)
	web := w.apply(workload("Deployment", "web", 1, kubetest.NeverReady(), ""))
	config := w.c.Config()
	var off atomic.Bool
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return expired{rt, &off} })
	w.cluster = w.connect(config)
	off.Store(true)
	o := w.wait(track.Options{}, 20*time.Second, web)
	if !apierrors.IsUnauthorized(o.err) || o.took > 5*time.Second+slack {
		t.Errorf("Wait = %v after %s, want that the credentials are refused", o.err, o.took)
	}
}

// expired is a transport whose token is refused after a while.
type expired struct {
	base http.RoundTripper
	on   *atomic.Bool
}

func (e expired) RoundTrip(r *http.Request) (*http.Response, error) {
	if e.on.Load() {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer expired")
	}
	return e.base.RoundTrip(r)
}

func TestNoNodeFits(t *testing.T) {
	w := newWorld(t)
	web := w.apply(strings.Replace(workload("Deployment", "web", 1, nil, ""), "      containers:", "      nodeSelector: {disk: none}\n      containers:", 1))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var seen *track.Finding
	err := track.New(w.cluster, track.Options{}).Wait(ctx, []track.Target{web}, func(r track.Event) {
		if r.Kind == track.ProblemSeen {
			seen = r.Status.Finding
			stop()
		}
	})
	var late *track.TimeoutError
	if !errors.As(err, &late) || !errors.Is(err, context.Canceled) {
		t.Fatalf("Wait = %v, want that it was cancelled", err)
	}
	if seen.Class != class.NoNodeFits || seen.FinalAt.IsZero() || len(late.Causes) != 1 {
		t.Errorf("problem = %+v, causes %+v", seen, late.Causes)
	}
}

func TestPodOfAHook(t *testing.T) {
	w := newWorld(t)
	manifest := "{apiVersion: v1, kind: Pod, metadata: {name: check, annotations: {" + kubetest.LogsAnnotation + ": all is well, " +
		kubetest.StepsAnnotation + ": '" + kubetest.Exits(time.Second, 0).String() + "'}}, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: app, image: r/x}]}}"
	check := w.apply(manifest)
	check.Until, check.Logs = track.UntilComplete, track.LogsLive
	o := w.wait(track.Options{}, 20*time.Second, check).ready(10 * time.Second)
	if !strings.Contains(o.story(), "all is well") {
		t.Errorf("no line of the log was reported; it saw %s", o.story())
	}
}

// TestManyDeploymentsFewRequests: their revisions become known one by one, and
// after a change of scale their statuses don't name them anew.
func TestManyDeploymentsFewRequests(t *testing.T) {
	w := newWorld(t)
	manifest := func(i, replicas int) string {
		return workload("Deployment", fmt.Sprintf("web-%d", i), replicas, kubetest.ReadyAfter(4*time.Second), "")
	}
	for _, step := range []struct {
		name     string
		replicas int
		most     int
	}{{"new", 1, 10}, {"scaled", 2, 10}} {
		before := len(w.requests(w.agent))
		var targets []track.Target
		for i := range 40 {
			targets = append(targets, w.apply(manifest(i, step.replicas)))
		}
		w.wait(track.Options{}, 90*time.Second, targets...).ready(80 * time.Second)
		if got := w.requests(w.agent)[before:]; len(got) > step.most {
			t.Errorf("%s: tracking made %d requests, want %d at most: %s", step.name, len(got), step.most, strings.Join(got, "\n"))
		}
	}
}

// TestManyClaimsFewRequests: what their events say is read for all of them at
// once.
func TestManyClaimsFewRequests(t *testing.T) {
	w := newWorld(t)
	var targets []track.Target
	for i := range 8 {
		targets = append(targets, w.apply(fmt.Sprintf("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-%d, annotations: {deployer.io/no-progress-timeout: 8s}},"+
			" spec: {accessModes: [ReadWriteOnce], storageClassName: nobody, resources: {requests: {storage: 1Gi}}}}", i)))
	}
	o := w.wait(track.Options{}, 60*time.Second, targets...)
	o.failed(class.NoProgress, 7*time.Second, 12*time.Second)
	var failure *track.FailedError
	errors.As(o.err, &failure) // as failed has seen
	failed := 0
	for _, c := range failure.Causes { // what the controller hasn't spoken of by then has a cause of its own
		failed += len(c.Objects)
	}
	if failed != len(targets) {
		t.Errorf("causes = %+v, want all claims in them", failure.Causes)
	}
	if got := w.requests(w.agent); len(got) > 6 {
		t.Errorf("tracking made %d requests, want 6 at most: %s", len(got), strings.Join(got, "\n"))
	}
}

func TestClaimWithoutVolumeIsTheCause(t *testing.T) {
	w := newWorld(t)
	db := w.apply(workload("StatefulSet", "db", 1, nil, `  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: nobody, resources: {requests: {storage: 1Gi}}}
`))
	o := w.wait(track.Options{}, 19*time.Second, db)
	var failure *track.TimeoutError
	if !errors.As(o.err, &failure) {
		t.Fatalf("Wait = %v, want a report; it saw %s", o.err, o.story())
	}
	p := failure.Causes[0]
	if failure.Causes[0].Class != class.ClaimUnbound || !slices.ContainsFunc(p.Events, func(e finding.Event) bool {
		return e.Object == "PersistentVolumeClaim/data-db-0" && strings.Contains(e.Message, "nobody")
	}) {
		t.Errorf("cause = %+v, problem = %+v, want that of the claim with its event", failure.Causes[0], p)
	}
}

// TestManyNamespaces: with the right to do so they are watched by one stream for
// each kind, and without it one by one.
func TestManyNamespaces(t *testing.T) {
	t.Parallel()
	const namespaces = 8
	slow := workload("Deployment", "web", 1, kubetest.ReadyAfter(10*time.Second), "")
	// No rollout ends before the last one is watched: what takes long comes before the first.
	spread := func(w *world, each func(ns string)) (targets []track.Target) {
		there := make([]world, namespaces)
		for i := range there {
			there[i] = *w
			there[i].ns = w.c.Namespace(w.T)
			if each != nil {
				each(there[i].ns)
			}
		}
		for i := range there {
			targets = append(targets, there[i].apply(slow))
		}
		return targets
	}
	t.Run("all at once", func(t *testing.T) {
		w := newWorld(t)
		w.wait(track.Options{}, 60*time.Second, spread(w, nil)...).ready(40 * time.Second)
		// Deployments, and their events; pods as their revisions become known.
		if got := w.requests(w.agent); len(got) > 6 {
			t.Errorf("tracking made %d requests, want 6 at most: %s", len(got), strings.Join(got, "\n"))
		}
	})
	t.Run("one by one", func(t *testing.T) {
		w := newWorld(t)
		u := w.c.User(t, w.ns)
		w.as(u)
		targets := spread(w, func(ns string) {
			u.Allow(t, ns, kubetest.Rule("apps", "get,list,watch", "deployments"))
			u.Allow(t, ns, kubetest.Rule("", "get,list,watch", "pods"))
			u.Allow(t, ns, kubetest.Rule("", "get,list,watch", "events"))
		})
		o := w.wait(track.Options{}, 60*time.Second, targets...).ready(40 * time.Second)
		if o.warned("") {
			t.Errorf("it warned: %s", o.story())
		}
		watched := map[string]int{}
		for _, e := range w.c.Audit(w, w.agent) {
			if e.Verb == "watch" && e.Code == http.StatusOK && e.Object.Namespace != "" {
				watched[e.Object.Resource]++
			}
		}
		for _, what := range []string{"deployments", "pods", "events"} {
			if watched[what] != namespaces {
				t.Errorf("%d watches of %s, want one for each of %d namespaces", watched[what], what, namespaces)
			}
		}
	})
}
