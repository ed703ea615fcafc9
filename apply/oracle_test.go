package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

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
// to objects. DEPLOYER_TEST_SEEDS says how many stories to try; one is repeated
// by its name.
func TestAsIfNew(t *testing.T) {
	seeds, _ := strconv.Atoi(os.Getenv("DEPLOYER_TEST_SEEDS"))
	for seed := range max(seeds, 20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, fresh := begin(t), newStory(t)
			l := &lot{rand.New(rand.NewPCG(uint64(seed), 7))}
			told := s.live(l)
			chart := l.chart()
			s.deploy(chart)
			s.expect(s.deploy(chart))
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
func (s *story) live(l *lot) []string {
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
			s.record(status, chart)
		case l.IntN(3) == 0:
			told = append(told, "deployed")
			s.deploy(chart)
		default:
			told = append(told, "interrupted: "+s.interrupted(chart, l))
		}
		before = append(before, chart)
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
	a := s.applier()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	left := l.IntN(len(p.Changes()) + 1)
	var done []apply.Change
	for _, list := range lists(p) {
		if left == 0 {
			break
		}
		_ = a.Run(ctx, list, func(c apply.Change) {
			done = append(done, c)
			if left--; left == 0 {
				cancel()
			}
		})
	}
	s.marks = a.Marks(done)
	s.record("failed", chart)
	return fmt.Sprintf("%d of %d changes", len(done), len(p.Changes()))
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
			out = append(out, &list.Items[i])
		}
	}
	return out
}

// lot draws charts.
type lot struct{ *rand.Rand }

func (l *lot) of(words ...string) string { return words[l.IntN(len(words))] }

// some draws a few of the words, in order.
func (l *lot) some(words ...string) string {
	var out []string
	for _, w := range words {
		if l.IntN(2) == 0 {
			out = append(out, w)
		}
	}
	return strings.Join(out, ", ")
}

func (l *lot) chart() string {
	var b strings.Builder
	doc := func(apiVersion, kind, name, rest string) {
		if l.IntN(4) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, labels: {%s}, annotations: {%s}}\n%s\n", apiVersion, kind, name,
			l.some("a: x", "b: "+l.of("w", "z")), l.some("note: '"+l.of("1", "2")+"'", "other: ''"), rest)
	}
	for i := range 3 {
		doc("v1", "ConfigMap", fmt.Sprintf("conf%d", i), "data: {"+l.some("a: "+l.of("x", "z"), "b: x", "c: x")+"}")
	}
	doc("v1", "Secret", "secret", "stringData: {"+l.some("a: "+l.of("x", "z"), "b: x")+"}\ndata: {"+l.some("c: eA==")+"}")
	doc("v1", "Service", "web", "spec: {selector: {"+l.some("app: web", "x: z")+"}, sessionAffinity: "+l.of("None", "ClientIP")+
		", ports: [{name: one, port: 80}"+l.of("", ", {name: two, port: 81, targetPort: http}", ", {name: two, port: 81}, {name: dns, port: 81, protocol: UDP}")+"]}")
	doc("rbac.authorization.k8s.io/v1", "Role", "role", "rules: ["+l.some("{apiGroups: [''], resources: [pods], verbs: ["+l.of("get", "list")+"]}", "{apiGroups: [apps], resources: [deployments], verbs: [get]}")+"]")
	doc("apps/v1", "Deployment", "web", "spec: {replicas: 0, selector: {matchLabels: {app: web}}"+
		l.of("", ", strategy: {type: Recreate}", ", strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3}}", ", minReadySeconds: 3, revisionHistoryLimit: 2")+
		", template: {metadata: {labels: {app: web"+l.of("", ", v: '1'", ", v: '2'")+"}}, spec: "+l.pod()+"}}")
	doc("batch/v1", "CronJob", "cron", "spec: {suspend: true, schedule: '"+l.of("1 * * * *", "2 * * * *")+"', jobTemplate: {spec: {template: {spec: "+
		strings.Replace(l.pod(), "{", "{restartPolicy: Never, ", 1)+"}}}}")
	if b.Len() == 0 {
		return config("only")
	}
	return b.String()
}

func (l *lot) pod() string {
	containers := []string{l.container("app")}
	for _, name := range []string{"side", "proxy"} {
		if l.IntN(2) == 0 {
			containers = append(containers, l.container(name))
		}
	}
	l.Shuffle(len(containers), func(i, j int) { containers[i], containers[j] = containers[j], containers[i] })
	return "{dnsPolicy: Default, " + strings.TrimPrefix(l.some("nodeSelector: {"+l.some("a: x", "b: x")+"}", "tolerations: [{key: "+l.of("a", "b")+"}]", "hostNetwork: false",
		"terminationGracePeriodSeconds: "+l.of("5", "30"), "securityContext: {"+l.some("runAsUser: 5", "fsGroup: 6")+"}",
		"volumes: [{name: v, "+l.of("emptyDir: {}", "configMap: {name: conf0}", "emptyDir: {medium: Memory}")+"}]")+
		l.of("", ", initContainers: ["+l.container("init")+"]")+", containers: ["+strings.Join(containers, ", ")+"]}", ", ")
}

func (l *lot) container(name string) string {
	env := l.of("env: []", "env: null", "env: [{name: A, value: "+l.of("x", "z")+"}, {name: B, value: x}]", "env: [{name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
		"env: [{name: A, value: x}, {name: B, value: x}, {name: A, value: z}]", "env: [{name: A, value: x}, {name: B, value: $(A)}, {name: A, value: z}]")
	ports := l.of("ports: []", "ports: [{name: http, containerPort: 8080}]", "ports: [{containerPort: 8080}, {containerPort: 8080, protocol: UDP}]",
		"ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 8080}]")
	more := l.some("imagePullPolicy: "+l.of("Always", "IfNotPresent"), "args: ["+l.some("a", "b")+"]", "resources: {limits: {"+l.some("cpu: '1'", "memory: 1Gi")+"}}",
		"livenessProbe: {"+l.of("httpGet: {port: 80}", "tcpSocket: {port: 80}, periodSeconds: 5")+"}")
	if name == "init" { // may not have probes
		more = ""
	} else if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf("{name: %s, image: 'i:%s', %s, %s%s}", name, l.of("1", "2"), env, ports, more)
}
