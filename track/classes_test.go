package track_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
	"deployer/track"
	"deployer/track/class"
)

// broken is an object that can't become ready, and what is to be said of it.
type broken struct {
	before   []string       // applied first, and nobody's concern
	old      string         // applied first, and ready: what the release replaces
	object   string         // applied last
	event    *corev1.Event  // about the first pod or else the object: what simulated nodes and absent controllers don't write
	then     func(w *world) // what somebody does next
	class    class.Class
	from, to time.Duration // until it is called failed
	states   bool          // the release states what is applied before
	says     string
	podless  bool // no pod shows it
}

// TestFailureClasses holds against a cluster what its API server, controllers and scheduler say of problems: that it is
// understood, that it ends the wait in time and not too early, and that the cause shows what it is about. When each class
// is final, to the second, is in the plays; what kubelets say is held by internal/nodetest.
func TestFailureClasses(t *testing.T) {
	t.Parallel()
	const container = "      containers: [{"
	stuck := func(reason, message string) string {
		return workload("Deployment", "web", 1, kubetest.Script{{Phase: "Pending", State: kubetest.Waiting(reason, message)}}, "")
	}
	with := func(manifest, line string) string {
		return strings.Replace(manifest, "      containers:", line+"      containers:", 1)
	}
	plain := workload("Deployment", "web", 1, nil, "")
	creating := stuck("ContainerCreating", "")
	limited := func(manifest string) string {
		return strings.Replace(manifest, container, container+"resources: {limits: {memory: 64Mi, cpu: 1}}, ", 1)
	}
	for name, test := range map[string]broken{
		"image without a name": {object: stuck("InvalidImageName", `couldn't parse image name "UPPER//bad"`),
			class: class.InvalidImageName, to: 8 * time.Second, says: "UPPER//bad"},
		"out of memory": {object: limited(workload("Deployment", "web", 1, kubetest.OOM(), "")),
			class: class.OOMKilled, from: 10 * time.Second, to: 20 * time.Second, says: "64Mi"},
		"container that isn't started again": {object: strings.Replace(workload("Deployment", "web", 1, kubetest.Script{{State: kubetest.Terminated(3, "Error")}}, ""), container, container+"restartPolicy: Never, ", 1),
			class: class.ContainerEnded, from: 4 * time.Second, to: 12 * time.Second, says: "exit code 3"},
		"program of another platform": {object: strings.Replace(workload("Deployment", "web", 1, kubetest.Crash(), ""), "annotations: {sim",
			"annotations: {"+kubetest.LogsAnnotation+": 'exec /app/run: exec format error', sim", 1),
			class: class.BadCommand, from: time.Second, to: 6 * time.Second, says: "exec format error"},
		"key that the release's ConfigMap lacks": {before: []string{"{apiVersion: v1, kind: ConfigMap, metadata: {name: own}, data: {a: b}}"}, states: true,
			object: stuck("CreateContainerConfigError", "couldn't find key nosuch in ConfigMap NAMESPACE/own"),
			class:  class.ConfigError, from: time.Second, to: 6 * time.Second, says: "nosuch"},
		"key of a volume that the release's Secret lacks": {before: []string{"{apiVersion: v1, kind: Secret, metadata: {name: own}, stringData: {a: b}}"}, states: true,
			object: strings.Replace(creating, "      containers:", "      volumes: [{name: s, secret: {secretName: own, items: [{key: nosuch, path: a}]}}]\n      containers:", 1),
			event:  &corev1.Event{Reason: "FailedMount", Message: `MountVolume.SetUp failed for volume "s" : references non-existent secret key: nosuch`},
			class:  class.MountedObjectMissing, from: time.Second, to: 6 * time.Second, says: "nosuch"},
		"command that isn't there": {object: stuck("RunContainerError", `exec: "serve": executable file not found in $PATH`),
			class: class.BadCommand, from: time.Second, to: 6 * time.Second, says: "executable file not found"},
		"no room": {object: strings.Replace(plain, container, container+"resources: {requests: {cpu: 1000}}, ", 1),
			class: class.Unschedulable, from: 5 * time.Minute, to: 310 * time.Second, says: "Insufficient cpu"},
		"no room, and a new node": {object: strings.Replace(plain+"  progressDeadlineSeconds: 900\n", container, container+"resources: {requests: {cpu: 1000}}, ", 1),
			event: &corev1.Event{Type: "Normal", Reason: "TriggeredScaleUp", Message: "pod triggered scale-up"},
			class: class.WaitingForNode, from: 10 * time.Minute, to: 630 * time.Second, says: "Insufficient cpu"},
		"no node fits": {object: with(plain, "      nodeSelector: {disk: none}\n"),
			class: class.NoNodeFits, from: time.Minute, to: 70 * time.Second, says: "node affinity/selector"},
		"evicted again and again": {object: workload("Deployment", "web", 1, kubetest.Script{{Phase: "Failed", Reason: "Evicted", Message: "The node was low on resource: memory"}}, ""),
			class: class.Evicted, to: 20 * time.Second, says: "low on resource"},
		"pod of its own": {object: "{apiVersion: v1, kind: Pod, metadata: {name: web, annotations: {" + kubetest.StepsAnnotation + ": '" + kubetest.Exits(time.Second, 3).String() +
			"'}}, spec: {restartPolicy: Never, containers: [{name: app, image: r/x}]}}", class: class.PodFailed, to: 8 * time.Second, podless: true},
		"refused by a policy": {before: []string{policy, binding}, object: plain, podless: true,
			class: class.AdmissionDenied, from: 4 * time.Second, to: 14 * time.Second, says: "no pods here"},
		"made invalid by defaults": {object: strings.Replace(plain, container, container+"resources: {requests: {cpu: 2}}, ", 1), podless: true,
			before: []string{"{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Container, default: {cpu: 1}}]}}"},
			class:  class.InvalidPod, from: 4 * time.Second, to: 14 * time.Second, says: "must be less than or equal to cpu limit"},
		"more than a LimitRange allows": {object: limited(plain), podless: true,
			before: []string{"{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Container, max: {memory: 32Mi}}]}}"},
			class:  class.LimitRangeViolated, from: 4 * time.Second, to: 14 * time.Second, says: "maximum memory usage per Container is 32Mi"},
		"priority class that isn't there": {object: with(plain, "      priorityClassName: nosuch\n"), podless: true,
			class: class.PriorityClassMissing, from: 4 * time.Second, to: 14 * time.Second, says: "nosuch"},
		"service account that isn't there": {object: with(workload("StatefulSet", "web", 1, nil, ""), "      serviceAccountName: nosuch\n"), podless: true,
			class: class.ServiceAccountMissing, from: 14 * time.Second, to: 24 * time.Second, says: "nosuch"},
		"no quota": {before: []string{"{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: 0}}}"}, object: plain, podless: true,
			class: class.QuotaExceeded, from: time.Minute, to: 70 * time.Second, says: "exceeded quota: q"},
		"no quota for one more": {old: plain, before: []string{"{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: 1}}}"},
			object: strings.Replace(plain, "r/x:1", "r/x:2", 1), podless: true,
			class: class.QuotaDeadlock, from: 29 * time.Second, to: 40 * time.Second, says: "exceeded quota: q"},
		"webhook that doesn't answer": {before: []string{webhook}, object: plain, podless: true,
			class: class.PodCreateTransient, from: 2 * time.Minute, to: 135 * time.Second, says: "failed calling webhook"},
		"Job that may not fail so": {object: job("web", kubetest.Exits(time.Second, 42), "", "  backoffLimit: 6\n  podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}\n"),
			class: class.JobFailed, to: 12 * time.Second, says: "FailJob rule"},
		"Job that takes too long": {object: job("web", kubetest.NeverReady(), "", "  activeDeadlineSeconds: 3\n"),
			class: class.JobFailed, to: 12 * time.Second, says: "longer than specified deadline", podless: true},
		"Job with an index too bad": {object: job("web", kubetest.Exits(time.Second, 1), "", "  completionMode: Indexed\n  completions: 2\n  backoffLimitPerIndex: 0\n  maxFailedIndexes: 0\n"),
			class: class.JobFailed, to: 12 * time.Second, says: "maximal number of failed indexes"},
		"no progress of a StatefulSet": {object: annotated(workload("StatefulSet", "web", 2, kubetest.NeverReady(), ""), "deployer.io/no-progress-timeout: 6s"),
			class: class.NoProgress, from: 6 * time.Second, to: 14 * time.Second, says: "no progress for 6s"},
		"time of its own": {object: annotated(workload("Deployment", "web", 1, kubetest.NeverReady(), ""), "deployer.io/timeout: 5s"),
			class: class.Timeout, from: 5 * time.Second, to: 10 * time.Second, says: "not ready after 5s"},
		"claim whose volume is lost": {object: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}," +
			" spec: {accessModes: [ReadWriteOnce], storageClassName: '', volumeName: nosuch, resources: {requests: {storage: 1Gi}}}}",
			class: class.VolumeLost, from: time.Second, to: 20 * time.Second, says: "nosuch", podless: true},
		"claim whose volume can't be made": {object: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web}," +
			" spec: {accessModes: [ReadWriteOnce], storageClassName: nosuch, resources: {requests: {storage: 1Gi}}}}",
			class: class.ProvisioningFailed, from: time.Minute, to: 130 * time.Second, says: `"nosuch" not found`, podless: true},
		"load balancer that can't be made": {object: "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, ports: [{port: 80}]}}",
			event: &corev1.Event{Reason: "SyncLoadBalancerFailed", Message: "no address is left", Count: 3, Source: corev1.EventSource{Component: "service-controller"}},
			class: class.LoadBalancerFailed, from: 2 * time.Minute, to: 140 * time.Second, says: "no address is left", podless: true},
		"object that somebody makes anew": {object: workload("Deployment", "web", 1, kubetest.NeverReady(), ""), then: func(w *world) {
			w.delete("Deployment", "web")
			w.apply(workload("Deployment", "web", 1, kubetest.NeverReady(), ""))
		}, class: class.Replaced, from: time.Second, to: 8 * time.Second, says: "another object", podless: true},
		"object that somebody deletes": {object: strings.Replace(workload("Deployment", "web", 1, kubetest.NeverReady(), ""), "metadata:\n", "metadata:\n  finalizers: [example.com/wait]\n", 1),
			then:  func(w *world) { w.delete("Deployment", "web") },
			class: class.Terminating, from: 9 * time.Second, to: 16 * time.Second, says: "example.com/wait", podless: true},
		"definition whose names are taken": {old: fmt.Sprintf(definition, "apples"), object: fmt.Sprintf(definition, "pears"),
			class: class.NamesRejected, from: time.Second, to: 8 * time.Second, says: "is already in use", podless: true},
	} {
		t.Run(name, func(t *testing.T) {
			if test.to > time.Minute && os.Getenv(longEnv) == "" {
				t.Skip("it takes minutes; set " + longEnv)
			}
			w := newWorld(t)
			if test.class == class.ContainerEnded {
				w.c.Since(t, "1.35", "restart policies of containers")
			}
			w.meets(test)
		})
	}
}

// meets lets a broken object be tracked.
func (w *world) meets(b broken) {
	w.Helper()
	if b.old != "" {
		w.wait(track.Options{}, 30*time.Second, w.apply(w.own(b.old))).ready(20 * time.Second)
	}
	declared := map[kube.ID]bool{}
	for _, manifest := range b.before {
		if gvk := parse(w, w.own(manifest)).GroupVersionKind(); !w.serves(gvk) {
			w.Skip("the API server doesn't serve", gvk)
		}
		declared[w.apply(w.own(manifest)).ID] = b.states
	}
	if len(b.before) > 0 && b.podless {
		w.refuses(parse(w, b.object))
	}
	target := w.apply(w.own(b.object))
	if b.then != nil {
		b.then(w)
	}
	switch {
	case b.event != nil && b.podless:
		w.postEvent(target.Baseline, *b.event)
	case b.event != nil:
		w.tellOfPod(*b.event)
	}
	// The plays hold the times to the second; a busy machine is late to show its pods.
	latest := 2*b.to + 20*time.Second
	o := w.wait(track.Options{Declares: func(id kube.ID) bool { return declared[id] }}, latest+30*time.Second, target)
	p := o.failed(b.class, b.from, latest)
	w.Logf("failed after %s", o.took.Round(100*time.Millisecond))
	if !strings.Contains(p.Message, b.says) || len(p.Pods) == 0 && !b.podless {
		w.Errorf("problem = %+v, want a pod that shows it and %q in the message", p, b.says)
	}
	if b.event != nil && len(p.Events) == 0 {
		w.Errorf("problem = %+v, want the event", p)
	}
}

// own writes the test's namespace into a manifest.
func (w *world) own(manifest string) string { return strings.ReplaceAll(manifest, "NAMESPACE", w.ns) }

// delete deletes an object of the test, as far as its finalizers let it; those are
// removed when the test is over.
func (w *world) delete(kind, name string) {
	w.Helper()
	client := w.client(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind})
	if err := client.Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_, _ = client.Patch(context.Background(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
}

// definition defines a kind, Fruit, with a plural of its own.
const definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.NAMESPACE.example.com}, spec: {" +
	"group: NAMESPACE.example.com, scope: Namespaced, names: {plural: %[1]s, kind: Fruit}, " +
	"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}"

// What refuses pods in a namespace.
const (
	policy = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NAMESPACE}, spec: {" +
		"matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, " +
		"validations: [{expression: 'false', message: no pods here}]}}"
	binding = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NAMESPACE}, spec: {" +
		"policyName: NAMESPACE, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}}}}"
	webhook = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NAMESPACE}, webhooks: [{" +
		"name: nobody.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://127.0.0.1:1/'}, " +
		"namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}, " +
		"rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]}"
)

// refuses returns when the API server refuses the pods of a workload: it takes
// its time to learn of rules.
func (w *world) refuses(workload *unstructured.Unstructured) {
	w.Helper()
	template, _, _ := unstructured.NestedMap(workload.Object, "spec", "template")
	pod := &unstructured.Unstructured{Object: template}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetGenerateName("refused-")
	w.c.Eventually(w.T, time.Minute, "pods to be refused", func(ctx context.Context) error {
		_, err := w.client(pod.GroupVersionKind()).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("they are not")
		}
		return nil
	})
}

// tellOfPod posts an event about a pod, once there is one.
func (w *world) tellOfPod(event corev1.Event) {
	w.Helper()
	var pod *corev1.Pod
	w.c.Eventually(w.T, time.Minute, "a pod", func(ctx context.Context) error {
		found, err := w.c.Client().CoreV1().Pods(w.ns).List(ctx, metav1.ListOptions{})
		if err == nil && len(found.Items) == 0 {
			err = errors.New("there is none")
		}
		if err == nil {
			pod = &found.Items[0]
		}
		return err
	})
	w.postEvent(pod, event)
}

// annotated writes an annotation into a workload's metadata.
func annotated(manifest, annotation string) string {
	return strings.Replace(manifest, "  labels: {app.kub", "  annotations: {"+annotation+"}\n  labels: {app.kub", 1)
}
