// Package viewtest has what the tests of views share: golden files, an operation
// with one of everything, and a small terminal.
package viewtest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/apply/ownership"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/release"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares got with a file in testdata.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

// Planted is a secret that no output may contain, in no encoding.
const Planted = "hunter2-planted"

const PlantedBase64 = "aHVudGVyMi1wbGFudGVk"

func CheckSecrets(t *testing.T, out string) {
	t.Helper()
	for _, secret := range []string{Planted, PlantedBase64} {
		if i := strings.Index(out, secret); i >= 0 {
			t.Errorf("a Secret's value is in the output: %q", out[max(0, i-80):min(len(out), i+60)])
		}
	}
}

func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return &unstructured.Unstructured{Object: m}
}

func Waves(lists [][]apply.Change) []apply.Wave {
	var out []apply.Wave
	for _, changes := range lists {
		out = append(out, apply.Wave{Changes: changes})
	}
	return out
}

// builtin reads the schemas of the built-in kinds.
var builtin = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// Compare sets the field changes of an operation. Removed fields were declared by revision.
func Compare(t testing.TB, op *deploy.Operation, revision int) *deploy.Operation {
	t.Helper()
	for _, wave := range op.Plan.Waves {
		for i := range wave.Changes {
			c := &wave.Changes[i]
			if c.Live == nil || c.Desired == nil {
				continue
			}
			states := compare.States{Before: c.Live, After: c.Predicted, Desired: c.Desired}
			if c.Predicted == nil {
				states.After, states.AfterIsManifest = c.Desired, true
			}
			var err error
			if c.Fields, err = compare.Fields(builtin(), states); err != nil {
				t.Fatal(err)
			}
			for j := range c.Fields {
				if c.Fields[j].Type == compare.Removed {
					c.Fields[j].Revision = revision
				}
			}
		}
	}
	return op
}

func NoEnv(string) string { return "" }

func Environment(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

const LiveWeb = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod, uid: u1, resourceVersion: "9", annotations: {deployment.kubernetes.io/revision: "4"}}
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: web
        image: registry.example/web:1.9.8
        imagePullPolicy: IfNotPresent
        env: [{name: LOG_LEVEL, value: info}]
        resources: {limits: {memory: 256Mi}}
      - {name: sidecar, image: proxy:1}
status: {replicas: 1}
`

const DesiredWeb = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod}
spec:
  replicas: 3
  template:
    metadata: {annotations: {checksum/config: abc}}
    spec:
      containers:
      - name: web
        image: registry.example/web:1.9.9
        env: [{name: LOG_LEVEL, value: debug}]
        resources: {limits: {memory: 64Mi}}
      - name: metrics
        image: exporter:2
        args: ["--listen=:9100"]
        ports: [{containerPort: 9100}]
`

// predictedWeb is what a server makes of DesiredWeb.
func predictedWeb(t testing.TB) *unstructured.Unstructured {
	obj := Object(t, DesiredWeb)
	obj.SetUID("u1")
	obj.SetGeneration(5)
	containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		c.(map[string]any)["imagePullPolicy"] = "IfNotPresent"
	}
	_ = unstructured.SetNestedSlice(obj.Object, containers, "spec", "template", "spec", "containers")
	return obj
}

func ID(group, kind, name string) kube.ID {
	return kube.ID{Group: group, Kind: kind, Namespace: "prod", Name: name}
}

func config(t testing.TB, text string) *unstructured.Unstructured {
	obj := Object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: prod}")
	_ = unstructured.SetNestedField(obj.Object, text, "data", "nginx.conf")
	return obj
}

// UpgradePlan is upgrade, with what only plans tell of.
func UpgradePlan(t testing.TB) *deploy.Operation {
	op := Upgrade(t)
	op.Rendered.Nondeterminism = map[kube.ID]deploy.Nondeterminism{
		ID("", "ConfigMap", "seed"): {Rendered: seed(t, "bbb2"), Others: []*unstructured.Unstructured{seed(t, "ccc3")}},
	}
	op.Plan.Waves[0].Changes = append(op.Plan.Waves[0].Changes, apply.Change{
		ID: ID("", "ConfigMap", "seed"), Action: decide.Update, Source: "web/templates/seed.yaml",
		Live: seed(t, "aaa1"), Desired: seed(t, "bbb2"), Predicted: seed(t, "bbb2"),
	})
	return Compare(t, op, 6)
}

// seed is an object whose template makes a value up.
func seed(t testing.TB, value string) *unstructured.Unstructured {
	return Object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: seed, namespace: prod}\ndata: {seed: "+value+", long: \"a\\n"+value+"\\nb\\n\"}")
}

func SecretObject(t testing.TB, data string) *unstructured.Unstructured {
	return Object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: prod, annotations: {kubectl.kubernetes.io/last-applied-configuration: "+
		Planted+", copy: "+Planted+"}}\ndata: {"+data+"}")
}

func Record(version int, status helmrelease.Status) *release.Record {
	r := &release.Record{}
	r.Name, r.Namespace, r.Version = "web", "prod", version
	r.Info = &helmrelease.Info{Status: status}
	r.Chart = &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "web", Version: "1.3.0"}}
	return r
}

func Summary(revision int, status helmrelease.Status) *release.Summary {
	return &release.Summary{Name: "web", Namespace: "prod", Revision: revision, Status: status}
}

// Upgrade is an operation with one of everything.
func Upgrade(t testing.TB) *deploy.Operation {
	t.Helper()
	lines := "server {\n  listen 80;\n  root /srv;\n  index index.html;\n  gzip on;\n  etag on;\n}\n"
	conflict := apply.FieldConflict{
		Path: "spec.replicas", Before: "1", After: "3", Outcome: decide.OutcomeTaken,
		FieldManager: ownership.FieldManager{Manager: "kubectl-edit", Operation: "Update", Time: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)},
	}
	yielded := conflict
	yielded.Path, yielded.Manager, yielded.Outcome = "spec.paused", "argo-rollouts", decide.OutcomeYielded
	return Compare(t, &deploy.Operation{
		Verb: deploy.Upgrade, Release: "web", Namespace: "prod", Place: deploy.Place{Context: "prod-eu", Server: "https://k8s.example.com"},
		Basis: deploy.Basis{Latest: Summary(6, helmrelease.StatusDeployed)}, Next: Record(7, helmrelease.StatusPendingUpgrade),
		Warnings: []string{"values: \"image.tagg\" is not in the chart's schema"},
		Hooks: deploy.Hooks{
			Before: []*helmrelease.Hook{{Name: "migrate", Kind: "Job", Path: "web/templates/migrate.yaml", Weight: -5}},
			After: []*helmrelease.Hook{{
				Name: "smoke", Kind: "Pod", Path: "web/templates/smoke.yaml",
				DeletePolicies: []helmrelease.HookDeletePolicy{helmrelease.HookSucceeded},
			}},
		},
		WaitsFor: []ordering.Dependency{{ID: ID("apps", "Deployment", "web"), State: ordering.Ready}, {ID: ID("batch", "Job", "once"), State: ordering.Ready}},
		Plan: &apply.Plan{
			CRDs: []apply.Change{{ID: kube.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "foos.example.com"}, Action: decide.Unchanged}},
			Waves: Waves([][]apply.Change{{
				{ID: ID("", "ServiceAccount", "web"), Action: decide.Unchanged, Source: "web/templates/sa.yaml"},
				{
					ID: ID("", "ConfigMap", "web"), Action: decide.Update, Source: "web/templates/config.yaml",
					Live: config(t, lines), Desired: config(t, strings.Replace(lines, "80", "8080", 1)), Predicted: config(t, strings.Replace(lines, "80", "8080", 1)),
				},
				{
					ID: ID("", "Secret", "db"), Action: decide.Update, Source: "web/templates/secret.yaml",
					Live:      SecretObject(t, "password: "+PlantedBase64+", gone: "+PlantedBase64),
					Desired:   SecretObject(t, "password: "+PlantedBase64+"MQ==, token: "+PlantedBase64),
					Predicted: SecretObject(t, "password: "+PlantedBase64+"MQ==, token: "+PlantedBase64),
					Conflicts: []apply.FieldConflict{{Path: "data.password", FieldManager: ownership.FieldManager{Manager: "vault", Operation: "Update"}, Before: Planted, After: Planted, Outcome: decide.OutcomeTaken}},
				},
				{ID: ID("", "Secret", "new"), Action: decide.Create, Source: "web/templates/secret.yaml", Desired: SecretObject(t, "key: "+PlantedBase64)},
			}, {
				{
					ID: ID("apps", "Deployment", "web"), Action: decide.Update, Source: "web/templates/web.yaml",
					Live: Object(t, LiveWeb), Desired: Object(t, DesiredWeb), Predicted: predictedWeb(t),
					Conflicts: []apply.FieldConflict{conflict, yielded}, TakenFrom: []string{"helm (Update)"},
				},
				{
					ID: ID("batch", "Job", "once"), Action: decide.Recreate, Source: "web/templates/job.yaml", Reason: "spec.template is immutable",
					Live:    Object(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {backoffLimit: 6, template: {spec: {containers: [{name: a, image: b:1}]}}}"),
					Desired: Object(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {template: {spec: {containers: [{name: a, image: b:2}]}}}"),
				},
				{
					ID: ID("example.com", "Foo", "foo"), Action: decide.Create, Source: "web/templates/foo.yaml", Unverified: "its kind arrives with the chart's CRDs",
					Desired: Object(t, "apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: foo, namespace: prod, labels: {app: web}}\nspec: {size: 3}"),
				},
			}}),
			Prune: []apply.Change{
				{ID: ID("", "Service", "old"), Action: decide.Delete, Reason: "removed from the chart"},
				{ID: ID("", "PersistentVolumeClaim", "data"), Action: decide.Keep, Reason: "helm.sh/resource-policy is keep"},
			},
			Hooks: []apply.Change{{ID: ID("batch", "Job", "migrate"), Action: decide.Create}},
			Warnings: []apply.Warning{{
				ID: ID("", "ConfigMap", "web"), Source: "web/templates/config.yaml", Text: "data.x has no value: sent as an empty string",
			}},
		},
	}, 6)
}

// Hostile is what a cluster or chart may send to a terminal or a page.
const Hostile = "\x1b[2J\x1b]0;owned\x07\x1b[31mred\u009b1A\r\nFAKE line\u202edlrow <script>alert(1)</script> `````` \x00\x08 @team"

func HostileOperation(t *testing.T) *deploy.Operation {
	op := Upgrade(t)
	op.Warnings = []string{Hostile}
	c := &op.Plan.Waves[1].Changes[0]
	c.Reason, c.Unverified, c.Source, c.TakenFrom = Hostile, Hostile, Hostile, []string{Hostile}
	c.Conflicts[0].Manager, c.Conflicts[0].Before = Hostile, Hostile
	c.Predicted.SetAnnotations(map[string]string{Hostile: Hostile, "multi": Hostile + "\nline two"})
	op.Plan.Prune[0].ID.Name = Hostile
	op.Plan.Waves[1].Changes[2].Desired.SetLabels(map[string]string{"a": Hostile})
	return Compare(t, op, 6)
}

// ManyChanges is an upgrade that changes a thousand objects: most the same way,
// some each its own way, and a few that nobody may miss.
func ManyChanges(t testing.TB) *deploy.Operation {
	op := Upgrade(t)
	op.Plan.Waves[0].Changes = nil
	for i := range 1000 {
		c := apply.Change{ID: ID("", "ConfigMap", fmt.Sprintf("same-%03d", i)), Action: decide.Update, Source: fmt.Sprintf("web/templates/%d.yaml", i%7)}
		before, after := "blue", "red"
		if i%4 == 0 {
			c.ID.Name, after = fmt.Sprintf("other-%03d", i), fmt.Sprintf("red %d", i)
		}
		c.Live, c.Desired = config(t, before), config(t, after)
		c.Predicted = c.Desired
		op.Plan.Waves[0].Changes = append(op.Plan.Waves[0].Changes, c)
		op.Plan.Warnings = append(op.Plan.Warnings, apply.Warning{ID: c.ID, Source: c.Source, Text: "v1 ConfigMap is old-fashioned"})
	}
	for i := range 30 {
		op.Plan.Prune = append(op.Plan.Prune, apply.Change{ID: ID("", "Service", fmt.Sprintf("old-%d", i)), Action: decide.Delete, Reason: "removed from the chart"})
	}
	return Compare(t, op, 6)
}

func WebID() kube.ID { return ID("apps", "Deployment", "web") }
