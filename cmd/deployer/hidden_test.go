package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
`

// What is confidential is in nothing that is printed or written, also where a
// chart puts it into the open, and where the server quotes it.
func TestNothingConfidentialIsShown(t *testing.T) {
	p := newPlans(t)
	p.write("templates/leaky.yaml", leaky)
	p.write("templates/NOTES.txt", "Log in with {{ .Values.db.password }}\n")
	p.write("values.yaml", "colour: red\nimage: nginx:1\nold: true\nscaled: false\nbig: 1\npin: \"\"\ninvalid: false\ndb: {password: \"\"}\n")
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
	p.patch("configmaps", "url", `{"data":{"url":"x `+planted[1]+`","pin":"`+planted[2]+`"}}`, "kubectl-edit")
	for _, format := range []string{"text", "json", "markdown", "html"} {
		try(2, "plan", "web", "--drift", "-o", format)
		try(0, "plan", "--rollback", "web", "1", "-o", format)
	}
	try(0, "rollback", "web", "1", "--wait=false", "--result-file", result)
	try(0, "history", "web")
	try(0, "uninstall", "web", "--wait=false")
}
