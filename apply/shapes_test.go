package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"deployer/apply"
)

func cancelled(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

func warnings(p *apply.Plan) string {
	var out []string
	for _, w := range p.Warnings {
		out = append(out, fmt.Sprintf("%s %s: %s", w.Source, w.ID.Kind, w.Text))
	}
	return strings.Join(out, "\n")
}

// What Helm 3 has got away with, installed by Helm 3 first and by us first.
func TestForgivenShapes(t *testing.T) {
	const chart = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, creationTimestamp: null, annotations: {empty: null}}
spec:
  replicas: null
  nodeName: typo
  selector: {matchLabels: {app: web}}
  strategy: {}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      nodeSelector: null
      imagePullSecrets: [{name: a}, {name: a}]
      hostAliases: [{ip: 1.1.1.1, hostnames: [a]}, {ip: 1.1.1.1, hostnames: [b]}]
      volumes: [{name: e, emptyDir: null}]
      containers:
      - name: app
        image: nginx:1
        resources:
        ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]
        env: [{name: A, value: "1"}, {name: B, value: "2"}, {name: A, value: "3"}, {name: B, value: "2"}]
status: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one, resourceVersion: "12", uid: x}
data: {k: null}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
imagePullSecrets: []
secrets: []
---
apiVersion: v1
kind: Namespace
metadata: {name: NS-two, namespace: nonsense}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: there, namespace: NS-two}
`
	s := begin(t)
	t.Cleanup(func() { s.client("v1", "Namespace").Delete(bg, s.ns+"-two", deleteNow) })
	p := s.plan(chart)
	want := `web/templates/0.yaml Deployment: metadata.annotations.empty: has no value: sent as an empty string
web/templates/0.yaml Deployment: spec.nodeName: is a field this kind doesn't have: not sent
web/templates/0.yaml Deployment: spec.template.spec.containers[0].env: A is set twice: the last one is sent
web/templates/0.yaml Deployment: spec.template.spec.hostAliases: ip="1.1.1.1" is listed twice: sent once with all names
web/templates/1.yaml ConfigMap: data.k: has no value: sent as an empty string`
	for _, line := range strings.Split(want, "\n") {
		if !strings.Contains(warnings(p), line) {
			t.Errorf("no warning %q in\n%s", line, warnings(p))
		}
	}
	s.run(p)
	s.record("deployed", chart)
	s.expect(s.deploy(chart))
	d := s.get("apps/v1", "Deployment", "web")
	env := at(d, "spec.template.spec.containers.app.env")
	if got := fmt.Sprint(env); got != "[map[name:B value:2] map[name:A value:3]]" {
		t.Errorf("env: %s", got)
	}
	if got := fmt.Sprint(at(d, "spec.template.spec.hostAliases")); got != "[map[hostnames:[a b] ip:1.1.1.1]]" {
		t.Errorf("hostAliases: %s", got)
	}
	s.opts.Validation = apply.ValidationStrict
	s.marks = nil
	if err := s.refuse(chart); !strings.Contains(err.Error(), "spec.nodeName: is a field this kind doesn't have") {
		t.Errorf("got %v", err)
	}
}

// Duplicates that Helm 3 has put into the live object go; two protocols of one port stay two.
func TestDuplicateVariablesOfHelm3(t *testing.T) {
	s := begin(t)
	double := strings.Replace(small, `env: [{name: A, value: "1"}]`, `env: [{name: A, value: "1"}, {name: B, value: "x"}, {name: A, value: "2"}]`, 1)
	double = strings.Replace(double, "ports: [{name: http, containerPort: 8080}]", "ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]", 1)
	s.helm3Install(double)
	s.record("deployed", double)
	s.deploy(double)
	d := s.get("apps/v1", "Deployment", "web")
	if got := fmt.Sprint(at(d, "spec.template.spec.containers.app.env")); got != "[map[name:B value:x] map[name:A value:2]]" {
		t.Errorf("env: %s", got)
	}
	if got := fmt.Sprint(at(d, "spec.template.spec.containers.app.ports")); got != "[map[containerPort:53 protocol:TCP] map[containerPort:53 protocol:UDP]]" {
		t.Errorf("ports: %s", got)
	}
	s.expect(s.deploy(double))
}

func TestAmbiguousShapes(t *testing.T) {
	s := begin(t)
	for want, change := range map[string][2]string{
		"data.a: is a number, should be a string":                                        {`{a: "1", b: "2"}`, `{a: 1}`},
		"spec.template.spec.containers[0].env[0].value: is a number, should be a string": {`env: [{name: A, value: "1"}]`, `env: [{name: A, value: 1}]`},
		"spec.template.spec.containers[0]: has no name":                                  {"- name: app\n        image", "- image"},
		`metadata.name: "web/a%b" may not contain '/' and may not contain '%'`:           {"kind: Service\nmetadata: {name: web}", "kind: Service\nmetadata: {name: web/a%b}"},
	} {
		err := s.refuse(strings.Replace(small, change[0], change[1], 1))
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "web/templates/") {
			t.Errorf("want %q in %v", want, err)
		}
	}
}

// A key dropped from stringData is dropped from the Secret.
func TestStringData(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{true, false} {
		t.Run(fmt.Sprint("helm3=", legacy), func(t *testing.T) {
			s := begin(t)
			const chart = "\napiVersion: v1\nkind: Secret\nmetadata: {name: pass}\nstringData: {a: x, b: 'y'}\ndata: {c: eA==}\n"
			s.install(chart, legacy)
			s.deploy(strings.Replace(chart, "a: x, ", "", 1))
			if got := fmt.Sprint(s.get("v1", "Secret", "pass").Object["data"]); got != "map[b:eQ== c:eA==]" {
				t.Errorf("data: %s", got)
			}
		})
	}
}
