package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// leaky is a chart that writes a password wherever charts write passwords.
const leaky = `
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: {{ .Values.db.password | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: url, annotations: {deployer.io/sensitive-paths: data.pin}}
data:
  url: "postgres://me:{{ .Values.db.password }}@db/x"
  encoded: {{ .Values.db.password | b64enc }}
  pin: {{ .Values.pin | quote }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: leaky}
spec:
  selector: {matchLabels: {app: leaky}}
  template:
    metadata: {labels: {app: leaky}}
    spec:
      containers:
      - name: app
        image: nginx
        args: ["--password={{ .Values.db.password }}"]
        env: [{name: PASSWORD, value: {{ .Values.db.password | quote }}}]
        {{- if .Values.invalid }}
        imagePullPolicy: {{ .Values.db.password | quote }}
        {{- end }}
{{- if .Values.fail }}
---
apiVersion: batch/v1
kind: Job
metadata: {name: bad, annotations: {helm.sh/hook: "post-upgrade,test"}}
spec:
  backoffLimit: 0
  template:
    metadata:
      annotations:
        sim.deployer/steps: '[{"phase":"Failed","after":"0s","message":"wrong password {{ .Values.db.password }}"}]'
        sim.deployer/logs: "connecting with {{ .Values.db.password }}"
    spec: {restartPolicy: Never, containers: [{name: app, image: nginx}]}
{{- end }}
`

// What is confidential is in nothing that is printed or written, also where a
// chart puts it into the open, and where the server quotes it.
func TestNothingConfidentialIsShown(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.write("templates/leaky.yaml", leaky)
	p.write("templates/NOTES.txt", "Log in with {{ .Values.db.password }}\n")
	p.write("values.yaml", "colour: red\nimage: nginx:1\nold: true\nscaled: false\nbig: 1\npin: \"\"\ninvalid: false\nfail: false\ndb: {password: \"\"}\n")
	planted := []string{"planted-First-1", "planted-Second-2", "pin-0000-first", "pin-0000-second"}
	for _, v := range planted {
		planted = append(planted, base64.StdEncoding.EncodeToString([]byte(v)))
	}
	clean := func(what, text string) {
		t.Helper()
		for _, v := range planted {
			if strings.Contains(text, v) {
				t.Errorf("%s shows %s:\n%s", what, v, text)
			}
		}
	}
	values := func(n int, more ...string) []string {
		return append([]string{p.chart, "--set", "db.password=" + planted[n] + ",pin=" + planted[n+2]}, more...)
	}
	result, junit := filepath.Join(t.TempDir(), "result.json"), filepath.Join(t.TempDir(), "junit.xml")
	did := []string{"--wait=false", "--result-file", result, "--report-junit", junit}
	try := func(code int, args ...string) {
		t.Helper()
		clean(strings.Join(args[:2], " "), p.run(code, args...))
		for _, file := range []string{result, junit, p.file} {
			if data, err := os.ReadFile(file); err == nil {
				clean(filepath.Base(file), string(data))
			}
		}
	}
	for n, code := range []int{0, 0} {
		for _, format := range []string{"text", "json", "yaml", "markdown", "html"} {
			try(code, append([]string{"plan", "web", "-o", format, "--full"}, values(n)...)...)
		}
		try(0, append([]string{"plan", "web", "--out", p.file}, values(n)...)...)
		try(3, append([]string{"plan", "web", "--set", "invalid=true"}, values(n)...)...)
		try(0, append(append([]string{"upgrade", "web", "--install"}, values(n)...), did...)...)
		try(3, append(append([]string{"upgrade", "web", "-o", "json", "--set", "invalid=true"}, values(n)...), did...)...)
	}
	// The first password is that of an older revision by now.
	p.patch("configmaps", "url", `{"data":{"url":"x `+planted[0]+`","pin":"`+planted[2]+`"}}`, "kubectl-edit")
	for _, format := range []string{"text", "json", "markdown", "html"} {
		try(2, "plan", "web", "--drift", "-o", format)
		try(0, append([]string{"plan", "web", "-o", format}, values(1)...)...)
		try(0, "plan", "--rollback", "web", "1", "-o", format)
		try(0, "plan", "--uninstall", "web", "-o", format)
		try(0, "plan", "--show", p.file, "-o", format)
	}
	for _, object := range []string{"Secret/db", "ConfigMap/url", "Deployment/leaky"} {
		for _, format := range []string{"table", "json", "yaml"} {
			try(0, "explain", "web", object, "-o", format)
		}
	}
	shown, _, _ := strings.Cut(p.run(0, "status", "web", "--show-resources", "--show-desc"), "NOTES:") // which are shown as Helm does
	clean("status", shown)
	try(0, "rollback", "web", "1", "--wait=false", "--result-file", result)
	try(1, append(append([]string{"upgrade", "web", "--set", "fail=true", "--logs", "all"}, values(1)...), did...)...)
	try(1, append(append([]string{"upgrade", "web", "--set", "fail=true", "--logs", "all", "-o", "json"}, values(1)...), did...)...)
	try(0, "status", "web", "--watch", "--result-file", result, "-o", "json")
	try(1, "test", "web", "--logs", "--hide-notes")
	try(0, "history", "web")
	try(0, "history", "web", "-o", "json")
	try(0, "list", "-a")
	try(0, "recover", "web")
	p.nothingBeside(clean)
	try(0, "uninstall", "web", "--wait=false")
}

// nothingBeside looks at what runs write into the cluster besides the chart's
// objects, and besides the content of their records: Leases, events, and the
// metadata of records.
func (p *plans) nothingBeside(clean func(what, text string)) {
	p.t.Helper()
	for _, gvr := range []schema.GroupVersionResource{
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, {Version: "v1", Resource: "events"}, {Version: "v1", Resource: "secrets"},
	} {
		list, err := p.cluster.Dynamic().Resource(gvr).Namespace(p.ns).List(p.t.Context(), metav1.ListOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		for _, item := range list.Items {
			if gvr.Resource == "secrets" {
				if !strings.HasPrefix(item.GetName(), "sh.helm.release") {
					continue
				}
				delete(item.Object, "data")
			}
			text, err := item.MarshalJSON()
			if err != nil {
				p.t.Fatal(err)
			}
			clean(gvr.Resource+"/"+item.GetName(), string(text))
		}
	}
}
