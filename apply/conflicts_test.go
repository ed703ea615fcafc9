package apply_test

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/hide"
)

// conflicts are those of all changes of a plan.
func conflicts(p *apply.Plan) []apply.FieldConflict {
	var out []apply.FieldConflict
	for c := range p.Changes() {
		out = append(out, c.Conflicts...)
	}
	return out
}

func outcomes(p *apply.Plan) string {
	var out []string
	for _, c := range conflicts(p) {
		out = append(out, c.String())
	}
	return strings.Join(out, "\n")
}

// The chart wins and says from whom it took what.
func TestTheChartWins(t *testing.T) {
	s := begin(t)
	s.deploy(small)
	s.patch("apps/v1", "Deployment", "web", types.StrategicMergePatchType,
		`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"nginx:hotfix","env":[{"name":"MINE","value":"1"}]}]}}}}`, "kubectl-edit")
	s.patch("v1", "ConfigMap", "conf", types.ApplyPatchType,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf","labels":{"team":"x"}},"data":{"a":"7"}}`, "team-x")
	p := s.plan(small)
	s.expect(p, "update ConfigMap/conf", "update Deployment/web")
	want := `data.a: "7" -> "1" (taken by team-x)
spec.template.spec.containers[name="app"].image: "nginx:hotfix" -> "nginx:1" (taken by kubectl-edit)`
	if got := outcomes(p); got != want {
		t.Errorf("conflicts\n%s\nwant\n%s", got, want)
	}
	for _, c := range conflicts(p) {
		if c.Time.IsZero() || c.Operation == "" {
			t.Errorf("conflict without time or operation: %+v", c)
		}
	}
	s.run(p)
	d := s.get("apps/v1", "Deployment", "web")
	if at(d, "spec.template.spec.containers.app.image") != "nginx:1" || names(at(d, "spec.template.spec.containers.app.env")) != "MINE A" &&
		names(at(d, "spec.template.spec.containers.app.env")) != "A MINE" {
		t.Errorf("container: %v", at(d, "spec.template.spec.containers.app"))
	}
	if s.get("v1", "ConfigMap", "conf").GetLabels()["team"] != "x" {
		t.Errorf("the other applier's label is gone")
	}
}

// A field that another applier has too stays when the chart drops it, and
// that is told by the release that drops it.
func TestDroppedAndHeldByOthers(t *testing.T) {
	s := begin(t)
	both := strings.Replace(config("a"), "{k: v}", "{k: v, both: x}", 1)
	s.deploy(both)
	s.patch("v1", "ConfigMap", "a", types.ApplyPatchType, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"both":"x"}}`, "team-x")
	p := s.deploy(config("a"))
	if got := warnings(p); !strings.Contains(got, "the chart no longer sets data.both, but it stays, because it is also set by team-x (Apply)") {
		t.Errorf("warnings: %s", got)
	}
	if got := fmt.Sprint(at(s.get("v1", "ConfigMap", "a"), "data")); got != "map[both:x k:v]" {
		t.Errorf("data: %s", got)
	}
	if got := warnings(s.deploy(config("a"))); got != "" {
		t.Errorf("warnings of the next release: %s", got)
	}
}

// What others fill into an object of the chart stays, whichever way the
// chart left it empty and whoever made it.
func TestFilledByOthers(t *testing.T) {
	s := begin(t)
	head := func(name, rest string) string {
		return "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\n" + rest
	}
	forms := map[string]string{"none": "", "empty": "data: {}", "nothing": "data: null", "plain": "stringData: {}"}
	var chart, more string
	for name, rest := range forms {
		chart += head(name, rest)
		more += strings.Replace(head(name, rest), "{name", "{labels: {x: z}, name", 1)
	}
	s.helm3Install(chart)
	s.record("deployed", chart)
	for name := range forms {
		s.patch("v1", "Secret", name, types.MergePatchType, `{"data":{"password":"eA=="}}`, "some-operator")
	}
	s.expect(s.deploy(chart))
	s.deploy(more)
	s.deploy(strings.ReplaceAll(chart, "data: {}", ""))
	for name := range forms {
		if got := at(s.get("v1", "Secret", name), "data.password"); got != "eA==" {
			t.Errorf("%s: password is %v", name, got)
		}
	}
}

// A controller that changes what the release has set is named, also where
// it shares a list that can only be set whole. A person's change is no conflict.
func TestContendedFields(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	chart := definition(0, "list: {type: array, items: {type: string}}") + foo(0, "size: 1, list: [a, b]")
	s.deploy(chart)
	contended := func() string {
		var out []string
		for _, w := range s.deploy(chart).Warnings {
			if strings.Contains(w.Text, "since the last release") {
				out = append(out, w.Text[:strings.Index(w.Text, " since")])
			}
		}
		sort.Strings(out)
		return strings.Join(out, "\n")
	}
	edit := func(patch, manager string) { s.patch(s.ns+".example.com/v1", "Foo0", "f", merge, patch, manager) }
	edit(`{"spec":{"size":2}}`, "kubectl-edit")
	if got := contended(); got != "" {
		t.Errorf("a person's change is contended: %s", got)
	}
	for range 2 {
		edit(`{"spec":{"size":3,"list":["a","b","theirs"]}}`, "operator")
		if got, want := contended(), "operator changed spec.list\noperator changed spec.size"; got != want {
			t.Errorf("contended:\n%s\nwant\n%s", got, want)
		}
	}
	if got := at(s.get(s.ns+".example.com/v1", "Foo0", "f"), "spec.list"); fmt.Sprint(got) != "[a b]" {
		t.Errorf("spec.list is %v", got)
	}
	if got := contended(); got != "" {
		t.Errorf("when it is left alone it is contended: %s", got)
	}
	chart = strings.Replace(chart, "list: [a, b]", "list: [c]", 1)
	edit(`{"spec":{"list":["theirs"]}}`, "operator")
	if got := contended(); got != "" {
		t.Errorf("a new value is contended: %s", got)
	}
}

func TestConflictsFail(t *testing.T) {
	s := begin(t)
	s.opts.Conflicts = decide.FailOnConflict
	s.deploy(small)
	s.patch("v1", "ConfigMap", "conf", types.MergePatchType, `{"data":{"a":"7"}}`, "kubectl-edit")
	err := s.refuse(small)
	var conflict *apply.ConflictError
	if !errors.As(err, &conflict) || conflict.Fields[0].Path != "data.a" {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
}

func TestConflictsYield(t *testing.T) {
	s := begin(t)
	chart := strings.Replace(small, "metadata: {name: conf}", "metadata: {name: conf, annotations: {deployer.io/conflicts: yield}}", 1)
	s.deploy(chart)
	s.patch("v1", "ConfigMap", "conf", types.MergePatchType, `{"data":{"a":"7"}}`, "kubectl-edit")
	for range 3 {
		p := s.deploy(chart)
		if got := outcomes(p); got != `data.a: "7" -> "1" (yielded by kubectl-edit)` {
			t.Errorf("conflicts: %s", got)
		}
		conf := s.get("v1", "ConfigMap", "conf")
		if got := fmt.Sprint(conf.Object["data"]); got != "map[a:7 b:2]" {
			t.Errorf("data: %s", got)
		}
		if !strings.Contains(managers(conf), "kubectl-edit") {
			t.Errorf("managers: %s", managers(conf))
		}
	}
}

// Prevents that what somebody writes between the plan and the write is taken from them, though the
// policy is to leave it or to fail.
func TestConflictsAfterThePlan(t *testing.T) {
	t.Parallel()
	for policy, wanted := range map[decide.ConflictPolicy]string{
		decide.TakeConflicts: "map[a:3 b:3]", decide.YieldConflicts: "map[a:7 b:3]", decide.FailOnConflict: "map[a:7 b:2]",
	} {
		t.Run(string(policy), func(t *testing.T) {
			s := begin(t)
			s.opts.Conflicts = policy
			s.deploy(small)
			p := s.plan(strings.Replace(small, `{a: "1", b: "2"}`, `{a: "3", b: "3"}`, 1))
			s.patch("v1", "ConfigMap", "conf", types.MergePatchType, `{"data":{"a":"7"}}`, "kubectl-edit")
			_, err := s.tryRun(p)
			var conflict *apply.ConflictError
			if failed := errors.As(err, &conflict); failed != (policy == decide.FailOnConflict) || !failed && err != nil {
				t.Errorf("error: %v", err)
			}
			if got := fmt.Sprint(s.get("v1", "ConfigMap", "conf").Object["data"]); got != wanted {
				t.Errorf("data %s, want %s", got, wanted)
			}
		})
	}
}

func TestValuesOfSecretsAreHidden(t *testing.T) {
	s := begin(t)
	const chart = "\napiVersion: v1\nkind: Secret\nmetadata: {name: pass}\nstringData: {password: supersecret}\n"
	s.deploy(chart)
	s.patch("v1", "Secret", "pass", types.MergePatchType, `{"stringData":{"password":"othersecret"}}`, "kubectl-edit")
	p := s.plan(chart)
	if got := outcomes(p); got != "data.password: (hidden) -> (hidden) (taken by kubectl-edit)" {
		t.Errorf("conflicts: %s", got)
	}
	for _, bad := range []string{"stringData: {password: 12345}", "data: {password: 'not base64 !!'}", "type: 5", "data: {password: [hush]}"} {
		err := s.refuse(strings.Replace(chart, "stringData: {password: supersecret}", bad, 1))
		t.Log(err)
		for _, secret := range []string{"12345", "not base64", "hush"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("a secret is in %q", err)
			}
		}
	}
}

const scaled = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: nginx:1}]}
`

// autoscaler never scales by itself: there are no metrics, and any number of replicas of these tests is
// inside its limits. Since Kubernetes 1.37 it would bring one outside of them inside at once.
const autoscaler = `
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 9}
`

func (s *story) scale(n int, manager string) {
	s.t.Helper()
	s.patch("apps/v1", "Deployment", "web", types.MergePatchType, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n), manager, "scale")
}

func (s *story) replicas() any {
	s.t.Helper()
	return at(s.get("apps/v1", "Deployment", "web"), "spec.replicas")
}

// A person scaled, and nothing autoscales: the chart's number counts.
func TestScaledByHand(t *testing.T) {
	s := begin(t)
	s.deploy(scaled)
	s.scale(5, "kubectl")
	p := s.deploy(scaled)
	if got := s.replicas(); got != int64(2) {
		t.Errorf("replicas: %v", got)
	}
	if got := outcomes(p); got != "spec.replicas: 5 -> 2 (taken by kubectl)" {
		t.Errorf("conflicts: %s", got)
	}
}

// An autoscaler's number is left alone, release after release.
func TestAutoscaled(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"helm 3": "helm3", "ours": ""} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			chart := scaled + autoscaler
			s.install(chart, first == "helm3")
			s.scale(7, "kube-controller-manager")
			g := s.generation("apps/v1", "Deployment", "web")
			for range 3 {
				p := s.deploy(chart)
				if got := outcomes(p); got != "spec.replicas: 7 -> 2 (yielded by HorizontalPodAutoscaler/web)" {
					t.Errorf("conflicts: %s", got)
				}
				if got := s.replicas(); got != int64(7) {
					t.Errorf("replicas: %v", got)
				}
			}
			if now := s.generation("apps/v1", "Deployment", "web"); now != g {
				t.Errorf("generation %d, was %d", now, g)
			}
			for _, next := range []string{strings.Replace(chart, "nginx:1", "nginx:2", 1), strings.Replace(chart, "replicas: 2", "replicas: 3", 1)} {
				s.deploy(next)
				if got := s.replicas(); got != int64(7) {
					t.Errorf("replicas after a change: %v\n%s", got, next)
				}
			}
			// The autoscaler goes, the chart's number is back.
			plain := strings.Replace(scaled, "nginx:1", "nginx:2", 1)
			s.deploy(plain)
			if got := s.replicas(); got != int64(2) {
				t.Errorf("replicas without autoscaler: %v", got)
			}
		})
	}
}

// An autoscaler leaves a workload without replicas alone, so these aren't the autoscaler's and get the chart's number.
// https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#implicit-maintenance-mode-deactivation
func TestAutoscalerAtZero(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{true, false} {
		t.Run(fmt.Sprint("helm3=", legacy), func(t *testing.T) {
			s := begin(t)
			s.install(strings.Replace(scaled, "replicas: 2", "replicas: 0", 1)+autoscaler, legacy)
			s.deploy(scaled + autoscaler)
			if got := s.replicas(); got != int64(2) {
				t.Errorf("replicas: %v", got)
			}
		})
	}
}

// The chart stops to say replicas, because an autoscaler comes.
func TestReplicasDroppedFromTheChart(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{true, false} {
		t.Run(fmt.Sprint("helm3=", legacy), func(t *testing.T) {
			s := begin(t)
			five := strings.Replace(scaled, "replicas: 2", "replicas: 5", 1)
			s.install(five, legacy)
			dropped := strings.Replace(scaled, "  replicas: 2\n", "", 1)
			for _, next := range []string{dropped + autoscaler, strings.Replace(dropped, "nginx:1", "nginx:2", 1) + autoscaler, dropped} {
				s.deploy(next)
				if got := s.replicas(); got != int64(5) {
					t.Errorf("replicas: %v\n%s", got, next)
				}
			}
		})
	}
}

// An autoscaler that comes with the release that still says replicas.
func TestAutoscalerComesWithRelease(t *testing.T) {
	s := begin(t)
	s.deploy(scaled)
	s.scale(6, "kubectl")
	s.deploy(strings.Replace(scaled, "nginx:1", "nginx:2", 1) + autoscaler)
	if got := s.replicas(); got != int64(6) {
		t.Errorf("replicas: %v", got)
	}
}

// The rules of an aggregated role are never emptied.
func TestAggregatedClusterRole(t *testing.T) {
	s := begin(t)
	name := "deployer-test-" + s.ns
	s.t.Cleanup(func() { s.client("rbac.authorization.k8s.io/v1", "ClusterRole").Delete(bg, name, deleteNow) })
	chart := `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: deployer-test-NS}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {kubernetes.io/bootstrapping: rbac-defaults}}]}
rules: []
`
	s.helm3Install(chart)
	s.record("deployed", chart)
	full := func() error {
		if rules, _ := s.get("rbac.authorization.k8s.io/v1", "ClusterRole", name).Object["rules"].([]any); len(rules) == 0 {
			return errors.New("no rules")
		}
		return nil
	}
	s.eventually("the controller fills in rules", full)
	p := s.deploy(chart)
	s.expect(p)
	if err := full(); err != nil {
		t.Error(err)
	}
	s.deploy(strings.Replace(chart, "metadata: {", "metadata: {labels: {x: z}, ", 1))
	if err := full(); err != nil {
		t.Error(err)
	}
}

// A role that becomes aggregated loses the rules that the chart stated: the controller doesn't remove what belongs to nobody, and the
// permissions would stay for ever.
func TestRoleBecomesAggregated(t *testing.T) {
	s := begin(t)
	roles := s.client("rbac.authorization.k8s.io/v1", "ClusterRole")
	name := "deployer-test-" + s.ns
	s.t.Cleanup(func() { roles.Delete(bg, name, deleteNow); roles.Delete(bg, name+"-part", deleteNow) })
	const head = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: deployer-test-NS"
	const rules = "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"
	part := head + "-part, labels: {part-of: NS}}\n" + rules + "---\n"
	aggregated := head + "}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {part-of: NS}}]}\n"
	has := func(want int) func() error {
		return func() error {
			if got, _ := s.get("rbac.authorization.k8s.io/v1", "ClusterRole", name).Object["rules"].([]any); len(got) != want {
				return fmt.Errorf("%d rules, want %d", len(got), want)
			}
			return nil
		}
	}
	s.deploy(part + head + "}\n" + rules)
	s.deploy(part + aggregated)
	s.eventually("the controller fills in rules", has(1))
	s.deploy(aggregated)
	if err := roles.Delete(t.Context(), name+"-part", deleteNow); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	s.eventually("the rules are gone with the part", has(0))
}

// What the API server allocates stays, and isn't ours.
func TestServiceAllocations(t *testing.T) {
	s := begin(t)
	const chart = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  clusterIP: ""
  selector: {app: web}
  ports: [{name: a, port: 53, protocol: TCP, nodePort: 0}, {name: b, port: 53, protocol: UDP}]
`
	s.helm3Install(chart)
	s.record("deployed", chart)
	was := s.get("v1", "Service", "web").Object["spec"]
	s.expect(s.deploy(chart))
	s.deploy(strings.Replace(chart, "app: web", "app: other", 1))
	s.deploy(strings.Replace(chart, "name: a", "name: c", 1))
	s.deploy(chart)
	if now := s.get("v1", "Service", "web").Object["spec"]; fmt.Sprint(now) != fmt.Sprint(was) {
		t.Errorf("spec\n%v\nwas\n%v", now, was)
	}
}

// TestLongConfidentialTextsAreHidden fails if the beginning of a confidential text is shown
// because the value of a conflict is cut before its texts are hidden.
func TestLongConfidentialTextsAreHidden(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Kq7zXw2pLm9v", 30)
	for name, c := range map[string]struct{ chart, patch, kind, apiVersion, object, want string }{
		"conflict": {
			config("a"), `[{"op":"replace","path":"/data/k","value":"LONG"}]`, "ConfigMap", "v1", "a",
			"data.k: (hidden) -> (hidden) (taken by kubectl-edit)",
		},
		"collision": {
			podOf("}, {name: d, image: i", ""),
			`[{"op":"remove","path":"/spec/template/spec/containers/1"},{"op":"add","path":"/spec/template/spec/initContainers","value":[{"name":"d","image":"i","restartPolicy":"Always","args":["LONG"]}]}]`,
			"Deployment", "apps/v1", "x", `"args":["(hidden)"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.opts.Hidden = &hide.Texts{}
			s.opts.Hidden.AddText(long)
			s.deploy(c.chart)
			s.patch(c.apiVersion, c.kind, c.object, jsonPatch, strings.Replace(c.patch, "LONG", long, 1), "kubectl-edit")
			got := outcomes(s.plan(c.chart))
			if !strings.Contains(got, c.want) || strings.Contains(got, long[:20]) {
				t.Errorf("conflicts: %s, want %s", got, c.want)
			}
		})
	}
}

// TestQuantityInAnotherNotationIsNoConflict: the API server stores 1000m as 1, whoever writes it.
func TestQuantityInAnotherNotationIsNoConflict(t *testing.T) {
	s := begin(t)
	chart := func(cpu string) string {
		return strings.Replace(small, "image: nginx:1", "image: nginx:1\n        resources: {requests: {cpu: "+cpu+"}}", 1)
	}
	if chart("1") == small {
		t.Fatal("the chart has no image")
	}
	s.deploy(chart("500m"))
	s.patch("apps/v1", "Deployment", "web", types.StrategicMergePatchType,
		`{"spec":{"template":{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"1"}}}]}}}}`, "kubectl-set")
	for _, policy := range []decide.ConflictPolicy{decide.FailOnConflict, decide.YieldConflicts} {
		s.opts.Conflicts = policy
		if got := outcomes(s.plan(chart("1000m"))); got != "" {
			t.Errorf("%s: %s", policy, got)
		}
	}
}
