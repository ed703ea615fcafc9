package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/decide"
	"deployer/internal/kubetest"
)

// many is one of each kind that charts are made of, with as many fields left to
// defaults as possible.
const many = small + `
---
apiVersion: v1
kind: Secret
metadata: {name: pass}
stringData: {user: me, password: x}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: NS}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      serviceAccountName: web
      containers:
      - name: db
        image: pg:1
        livenessProbe: {httpGet: {port: 80}}
        resources: {limits: {cpu: 1000m, memory: 1024Mi}}
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: s, secret: {secretName: pass}}, {name: c, configMap: {name: conf}}, {name: e, emptyDir: {}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: agent:1}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 0 * * *"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: c, image: c:1}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: c:1}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules: [{host: x.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {}, ingress: [{}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: agent}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}, maxReplicas: 3}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: most}
spec: {hard: {pods: "100"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec: {limits: [{type: Container, max: {memory: 10Gi}}]}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: lead}
---
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec: {containers: [{name: c, image: c:1}]}
`

// The first release over an unchanged Helm 3 release changes nothing.
func TestTakeoverOfHelm3ChangesNothing(t *testing.T) {
	s := begin(t)
	s.post(s.manifests("\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n")[0].Object, "x") // for the Pod
	s.client("v1", "ServiceAccount").Delete(t.Context(), "web", deleteNow)
	s.helm3Install(many)
	s.record("deployed", many)
	before := map[string]int64{}
	for _, m := range s.manifests(many) {
		o := m.Object
		before[o.GetKind()+o.GetName()] = s.generation(o.GetAPIVersion(), o.GetKind(), o.GetName())
	}
	p := s.deploy(many)
	s.expect(p)
	for _, m := range s.manifests(many) {
		o := m.Object
		live := s.get(o.GetAPIVersion(), o.GetKind(), o.GetName())
		if g := live.GetGeneration(); g != before[o.GetKind()+o.GetName()] {
			t.Errorf("%s/%s: generation %d, was %d", o.GetKind(), o.GetName(), g, before[o.GetKind()+o.GetName()])
		}
		if m := managers(live); !strings.Contains(m, "helm/Apply") || strings.Contains(m, "helm/Update") {
			t.Errorf("%s/%s: managers %s", o.GetKind(), o.GetName(), m)
		}
	}
	from := len(s.c.Audit(t, s.agent))
	s.expect(s.deploy(many))
	asked := s.c.Audit(t, s.agent)[from:]
	if w := kubetest.Writes(asked); len(w) > 0 {
		t.Errorf("the second release wrote: %v", w)
	}
	for _, e := range asked {
		if e.Verb != "get" && e.Verb != "list" {
			t.Logf("asked: %s", e)
		}
	}
}

// What failed Helm 3 releases left disappears, what people added stays.
func TestOrphansOfFailedHelm3Releases(t *testing.T) {
	s := begin(t)
	first := small
	sidecar := strings.Replace(small, "      - name: app\n", "      - {name: sidecar, image: bad:1}\n      - name: app\n", 1)
	sidecar = strings.Replace(sidecar, "data: {a:", "data: {orphan: \"x\", a:", 1)
	s.helm3Install(first)
	s.record("superseded", first)
	s.helm3Upgrade(first, sidecar)
	s.record("failed", sidecar)
	s.helm3Upgrade(first, first) // as Helm 3 does it: from the last deployed one
	s.patch("apps/v1", "Deployment", "web", types.MergePatchType, `{"metadata":{"labels":{"team":"x"}}}`, "kubectl-label")
	d := s.get("apps/v1", "Deployment", "web")
	if got := names(at(d, "spec.template.spec.containers")); !strings.Contains(got, "sidecar") {
		t.Fatalf("Helm 3 is better than we think: %s", got)
	}
	for _, forget := range []bool{false} {
		if forget {
			s.past = nil
		}
	}
	p := s.plan(first)
	s.expect(p, "update ConfigMap/conf", "update Deployment/web")
	for c := range p.Changes() {
		t.Logf("%s %s: removed %v, from %v", c.Action, c.ID, removed(c), c.TakenFrom)
		if c.Action == decide.Update && (len(removed(c)) != 1 || removed(c)[0].Revision != 2) {
			t.Errorf("%s: removed %v", c.ID, removed(c))
		}
	}
	s.run(p)
	d = s.get("apps/v1", "Deployment", "web")
	if got := names(at(d, "spec.template.spec.containers")); got != "app" {
		t.Errorf("containers: %s", got)
	}
	if d.GetLabels()["team"] != "x" {
		t.Errorf("the label a person set is gone")
	}
	if at(s.get("v1", "ConfigMap", "conf"), "data.orphan") != nil {
		t.Errorf("data.orphan is still there")
	}
}

// What failed Helm 3 releases left disappears without the history, too: Helm's own entry in managedFields is enough.
func TestOrphansWithoutHistory(t *testing.T) {
	s := begin(t)
	sidecar := strings.Replace(small, "      - name: app\n", "      - {name: sidecar, image: bad:1}\n      - name: app\n", 1)
	s.helm3Install(sidecar)
	s.record("deployed", small)
	p := s.deploy(small)
	s.expect(p, "update Deployment/web")
	if got := names(at(s.get("apps/v1", "Deployment", "web"), "spec.template.spec.containers")); got != "app" {
		t.Errorf("containers: %s", got)
	}
}

// Fields that Helm 3 wrote after us are ours, and go with the chart.
func TestHelm3BetweenOurReleases(t *testing.T) {
	s := begin(t)
	s.deploy(small)
	added := strings.Replace(small, `data: {a:`, `data: {c: "3", a:`, 1)
	added = strings.Replace(added, "image: nginx:1", "image: nginx:3", 1)
	s.helm3Upgrade(small, added)
	s.record("deployed", added)
	s.marks = nil
	s.expect(s.deploy(small), "update ConfigMap/conf", "update Deployment/web")
	conf := s.get("v1", "ConfigMap", "conf")
	if at(conf, "data.c") != nil || managers(conf) != "helm/Apply" {
		t.Errorf("data %v, managers %s", conf.Object["data"], managers(conf))
	}
}

// What somebody changes between the plan and the takeover survives it.
func TestTakeoverRace(t *testing.T) {
	s := begin(t)
	s.helm3Install(small)
	s.record("deployed", small)
	p := s.plan(strings.Replace(small, `, b: "2"`, "", 1))
	s.patch("v1", "ConfigMap", "conf", types.MergePatchType, `{"metadata":{"labels":{"raced":"yes"}}}`, "kubectl-label")
	s.patch("apps/v1", "Deployment", "web", types.MergePatchType, `{"metadata":{"labels":{"raced":"yes"}}}`, "kubectl-label")
	s.run(p)
	for _, o := range []*unstructured.Unstructured{s.get("v1", "ConfigMap", "conf"), s.get("apps/v1", "Deployment", "web")} {
		if o.GetLabels()["raced"] != "yes" || !strings.HasPrefix(managers(o), "helm/Apply k") {
			t.Errorf("%s: labels %v, managers %s", o.GetKind(), o.GetLabels(), managers(o))
		}
	}
	if got := fmt.Sprint(at(s.get("v1", "ConfigMap", "conf"), "data")); got != "map[a:1]" {
		t.Errorf("data: %s", got)
	}
}

// A dropped chart field disappears whoever wrote it last for the chart; a
// stranger's field stays.
func TestNamesOfManagers(t *testing.T) {
	t.Parallel()
	const chart = "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {a: \"1\"%s}\n"
	with, without := fmt.Sprintf(chart, `, b: "2"`), fmt.Sprintf(chart, "")
	for _, manager := range []string{"helm", "Helm", "Go-http-client", "terraform-provider-helm_v2.9", "werf", "kubectl-client-side-apply", "kubectl-create", "kubectl-edit", "helmwave", "velero-server"} {
		t.Run(manager, func(t *testing.T) {
			s := begin(t)
			s.post(s.owned(s.manifests(with)[0].Object), manager)
			s.record("deployed", with)
			s.patch("v1", "ConfigMap", "conf", types.MergePatchType, `{"data":{"z":"9"}}`, "some-controller")
			s.deploy(without)
			data := s.get("v1", "ConfigMap", "conf").Object["data"]
			if got := fmt.Sprint(data); got != "map[a:1 z:9]" {
				t.Errorf("data: %s", got)
			}
		})
	}
}

// A chart's own change of a value is no conflict with a program that wrote the
// chart's earlier value under a name of its own; somebody's other value is.
func TestOwnChangesAreNoConflicts(t *testing.T) {
	t.Parallel()
	for _, manager := range []string{"Go-http-client", "kubectl-client-side-apply", "helmwave"} {
		t.Run(manager, func(t *testing.T) {
			s := begin(t)
			s.opts.Conflicts = decide.FailOnConflict
			s.post(s.owned(s.manifests(config("a"))[0].Object), manager)
			s.record("deployed", config("a"))
			next := strings.Replace(config("a"), "{k: v}", "{k: w}", 1)
			if p := s.deploy(next); len(conflicts(p)) > 0 {
				t.Errorf("conflicts: %s", outcomes(p))
			}
			s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"data":{"k":"other"}}`, "kubectl-client-side-apply")
			if err := s.refuse(next); !strings.Contains(err.Error(), `"other"`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A key that happens to be called caBundle is a key as any other.
func TestCABundleIsAKeyToo(t *testing.T) {
	s := begin(t)
	s.deploy(strings.Replace(config("a"), "{k: v}", "{k: v, caBundle: x}", 1))
	s.deploy(config("a"))
	if got := fmt.Sprint(at(s.get("v1", "ConfigMap", "a"), "data")); got != "map[k:v]" {
		t.Errorf("data: %s", got)
	}
}

// Adopting what somebody made with kubectl, or another release with
// Helm 3, keeps what the chart doesn't speak of, in the releases after it too.
func TestAdoption(t *testing.T) {
	t.Parallel()
	for _, maker := range []string{"kubectl-client-side-apply", "helm"} {
		s := newStory(t)
		s.opts.TakeOwnership = true
		d := s.manifests(strings.Replace(small, "      - name: app\n", "      - {name: extra, image: x:1}\n      - name: app\n", 1))[2].Object
		d.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
		s.post(d, maker)
		p := s.deploy(small)
		s.expect(p, "create ConfigMap/conf", "create Service/web", "update Deployment/web")
		live := s.get("apps/v1", "Deployment", "web")
		if _, ok := live.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"]; ok && maker != "helm" {
			t.Errorf("kubectl's annotation is still there")
		}
		from := len(s.c.Audit(t, s.agent))
		s.expect(s.deploy(small))
		if w := kubetest.Writes(s.c.Audit(t, s.agent)[from:]); len(w) > 0 {
			t.Errorf("%s: the next release wrote: %v", maker, w)
		}
		if got := names(at(s.get("apps/v1", "Deployment", "web"), "spec.template.spec.containers")); got != "extra app" {
			t.Errorf("%s: containers: %s", maker, got)
		}
	}
}

// A release that Helm 4 made by server-side apply under the same name.
func TestHelm4IsTheSameManager(t *testing.T) {
	s := begin(t)
	for _, m := range s.manifests(many) {
		if m.Object.GetKind() == "Pod" {
			continue
		}
		o := s.owned(m.Object)
		s.patch(o.GetAPIVersion(), o.GetKind(), o.GetName(), types.ApplyPatchType, string(marshal(t, o)), "helm")
	}
	chart := many[:strings.Index(many, "---\napiVersion: v1\nkind: Pod")]
	s.record("deployed", chart)
	s.expect(s.deploy(chart))
	from := len(s.c.Audit(t, s.agent))
	s.deploy(chart)
	if w := kubetest.Writes(s.c.Audit(t, s.agent)[from:]); len(w) > 0 {
		t.Errorf("wrote %v", w)
	}
}

// Prevents that somebody believes that an object, which is deleted when it is adopted, could be given back.
func TestPlanSaysThatARecreatedObjectIsNotGivenBack(t *testing.T) {
	s := begin(t)
	const immutable = "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nimmutable: true\ndata: {k: v}\n"
	s.post(s.manifests(immutable)[0].Object, "kubectl-create")
	s.opts.TakeOwnership, s.opts.AllowRecreate = true, true
	p := s.plan(strings.Replace(immutable, "k: v", "k: w", 1))
	if got := change(t, p, "ConfigMap", "a"); got.Action != decide.Recreate || !strings.Contains(got.Reason, "can't be given back") {
		t.Errorf("%s: %s", got.Action, got.Reason)
	}
}

// Prevents that an object is adopted only in part, so that two releases write it: whatever the policy for conflicts, its
// ownership metadata become those of the release.
func TestAdoptionTakesOwnershipMetadata(t *testing.T) {
	t.Parallel()
	for _, policy := range []decide.ConflictPolicy{decide.YieldConflicts, decide.FailOnConflict} {
		t.Run(string(policy), func(t *testing.T) {
			s := begin(t)
			s.opts.Conflicts, s.opts.TakeOwnershipFrom = policy, []string{"*"}
			theirs := s.manifests(config("a"))[0].Object
			theirs.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "somebody"})
			theirs.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": s.ns})
			s.post(theirs, "rancher")
			s.deploy(config("a"))
			live := s.get("v1", "ConfigMap", "a")
			if got := live.GetAnnotations()["meta.helm.sh/release-name"]; got != "web" {
				t.Errorf("it belongs to release %s", got)
			}
			if got := live.GetLabels()["app.kubernetes.io/managed-by"]; got != "Helm" {
				t.Errorf("it is managed by %s", got)
			}
			s.expect(s.deploy(config("a")))
		})
	}
}
