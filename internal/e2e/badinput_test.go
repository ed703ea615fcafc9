package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"deployer/internal/kubetest"
	"deployer/testcharts"
)

// TestBadInput gives the program what can't work. It has to say what is wrong
// and what to do, end with 1 and leave the cluster as it is.
func TestBadInput(t *testing.T) {
	t.Parallel()
	broken := map[string]string{"templates/cm.yaml": "{{ .Values.missing.field }}"}
	noYAML := map[string]string{"templates/cm.yaml": "kind: ConfigMap\n\tmetadata: {"}
	tests := map[string]struct {
		args   func(w *world) []string
		stderr []string
	}{
		"no such chart": {
			func(w *world) []string { return []string{"install", "x", "./no-such-chart"} },
			[]string{`no-such-chart`, `not found|no such|does not exist|isn't there|there is no`},
		},
		"no such repository": {
			func(w *world) []string { return []string{"install", "x", "norepo/web"} },
			[]string{`norepo`, `repo add`},
		},
		"a template that fails": {
			func(w *world) []string { return []string{"install", "x", w.chartOf(broken)} },
			[]string{`templates/cm\.yaml`, `missing`},
		},
		"a template that renders no YAML": {
			func(w *world) []string { return []string{"install", "x", w.chartOf(noYAML)} },
			[]string{`templates/cm\.yaml`, `[Yy][Aa][Mm][Ll]`},
		},
		"values that are no YAML": {
			func(w *world) []string {
				file := filepath.Join(w.TempDir(), "values.yaml")
				if err := os.WriteFile(file, []byte("a: [1\nb: }"), 0o644); err != nil {
					w.Fatal(err)
				}
				return []string{"install", "x", testcharts.Dir(w.T, "web"), "-f", file}
			},
			[]string{`values\.yaml`, `line \d`},
		},
		"no such values file": {
			func(w *world) []string {
				return []string{"install", "x", testcharts.Dir(w.T, "web"), "-f", "nowhere.yaml"}
			},
			[]string{`nowhere\.yaml`},
		},
		"values that the schema refuses": {
			func(w *world) []string {
				return []string{"install", "x", testcharts.Dir(w.T, "schema"), "--set", "replicas=many"}
			},
			[]string{`replicas`},
		},
		"a name that Helm refuses": {
			func(w *world) []string { return []string{"install", "Not_A_Name", testcharts.Dir(w.T, "web")} },
			[]string{`"Not_A_Name"`, `lower case|must match`},
		},
		"a namespace that isn't there": {
			func(w *world) []string {
				return []string{"install", "x", testcharts.Dir(w.T, "web"), "-n", w.ns + "-not"}
			},
			[]string{`-not" not found`, `--create-namespace`},
		},
		"an unknown flag": {
			func(w *world) []string {
				return []string{"install", "x", testcharts.Dir(w.T, "web"), "--namespaec", "a"}
			},
			[]string{`--namespaec`, `--namespace`},
		},
		"an upgrade of nothing": {
			func(w *world) []string { return []string{"upgrade", "x", testcharts.Dir(w.T, "web")} },
			[]string{`"x" has no deployed releases`, `--install`},
		},
		"a rollback of nothing": {
			func(w *world) []string { return []string{"rollback", "x"} },
			[]string{`release: not found`, `list`},
		},
		"an unreachable cluster": {
			func(w *world) []string {
				return []string{"install", "x", testcharts.Dir(w.T, "web"), "--kube-apiserver", "https://127.0.0.1:1"}
			},
			[]string{`127\.0\.0\.1:1`, `kubeconfig|KUBECONFIG|--kube`},
		},
		"a kubeconfig that isn't there": {
			func(w *world) []string {
				return []string{"install", "x", testcharts.Dir(w.T, "web"), "--kubeconfig", "/nowhere/config"}
			},
			[]string{`/nowhere/config`, `--kubeconfig`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			mark := w.mark()
			r := w.exits(1, test.args(w)...)
			w.says(r, "stderr", test.stderr...)
			if r.out != "" {
				t.Errorf("a failure writes to stdout:\n%s", r)
			}
			if writes := w.allWrites(mark); len(writes) > 0 {
				t.Errorf("the cluster was written to: %v", writes)
			}
			w.nothingLeft()
		})
	}
}

// TestRejectionsSayWhatIsWrongWithWhichObject has objects that are rejected for different reasons, each of which has its own
// advice.
func TestRejectionsSayWhatIsWrongWithWhichObject(t *testing.T) {
	w := newWorld(t)
	chart := w.chartOf(map[string]string{"templates/all.yaml": `
apiVersion: foo.example/v1
kind: Foo
metadata: {name: a}
---
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: nosuch}
---
apiVersion: v1
kind: Pod
metadata: {name: d}
spec:
  containers: [{name: main, image: x, resources: {limits: {cpu: lots, memory: 1Gi}}}]
`})
	w.says(w.exits(3, "install", "x", chart), "stderr",
		`Pod/`+w.ns+`/d .*: spec.containers\[main\].resources.limits.cpu: "lots" is not a quantity, such as 500m, 2 or 128Mi\n`,
		`\n  ConfigMap/nosuch/c: create the namespace first`,
		`\n  Foo/a: install the CustomResourceDefinition that brings it`,
		`\n  Ingress/b: the cluster serves it in networking.k8s.io/v1`)
	w.nothingLeft()
}

// TestNoPermission deploys as somebody who may not: once nothing at all, once
// everything but the objects of the chart.
func TestNoPermission(t *testing.T) {
	w := newWorld(t)
	chart := testcharts.Dir(t, "web")

	nobody := *w
	nobody.user = w.cluster.User(t, w.ns)
	nobody.kubeconfig = nobody.user.Kubeconfig(t, w.ns)
	for _, args := range [][]string{{"install", "x", chart}, {"list"}, {"history", "x"}, {"uninstall", "x"}} {
		w.says(nobody.exits(1, args...), "stderr", `secrets is forbidden`, `no permission to list secrets in namespace `+w.ns+`: give it to the account`)
	}
	w.says(nobody.exits(1, "list", "-A"), "stderr", `no permission to list secrets in the cluster: give it`)

	half := *w
	half.user = w.cluster.User(t, w.ns,
		kubetest.Rule("", "*", "secrets", "configmaps"), kubetest.Rule("coordination.k8s.io", "*", "leases"))
	half.kubeconfig = half.user.Kubeconfig(t, w.ns)
	mark := half.mark()
	r := half.exits(3, "install", "x", chart)
	w.says(r, "stderr", `Deployment/`+w.ns+`/x-web`, `Service/`+w.ns+`/x-web`, `forbidden|no permission`)
	if writes := half.writes(mark); len(writes) > 0 {
		t.Errorf("objects were written although others were refused: %v", writes)
	}
	w.statuses("x")
	w.nothingLeft()
}
