package e2e

import (
	"encoding/base64"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const generatedTemplates = `{{- $p := randAlphaNum 16 }}
{{- $ca := genCA "ca" 365 }}
{{- $crt := genSignedCert "db" nil (list "db") 365 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: db}
data:
  password: {{ $p | b64enc }}
  url: {{ printf "postgres://app:%s@db:5432/%s" $p .Values.base | b64enc }}
  users: {{ htpasswd "app" $p | b64enc }}
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $crt.Cert | b64enc }}
  tls.key: {{ $crt.Key | b64enc }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data:
  installed: "{{ now }}"
  level: {{ .Values.level }}
  db.yaml: |
    level: {{ .Values.level }}
    password: {{ $p }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 0
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}, annotations: {checksum/secret: '{{ include (print $.Template.BasePath "/extra.yaml") . | sha256sum }}'}}
    spec: {containers: [{name: a, image: r/x}]}
`

const generatedExtra = `apiVersion: v1
kind: Secret
metadata: {name: extra}
stringData: {token: "{{ randAlphaNum 20 }}", level: {{ .Values.level }}}
`

func (w *world) generatedChart() string {
	return w.chartOf(map[string]string{
		"templates/t.yaml": generatedTemplates, "templates/extra.yaml": generatedExtra,
		"templates/hook.yaml": "{{ if .Values.fail }}" + hookJob("hook", "{{ .Values.fail }}", "before-hook-creation", true) + "{{ end }}",
		"values.yaml":         "level: info\nbase: app\nfail: \"\"\n",
	})
}

// secretData is what a Secret has now.
func (w *world) secretData(name string) map[string]string {
	w.Helper()
	s, err := w.cluster.Client().CoreV1().Secrets(w.ns).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	out := map[string]string{}
	for key, value := range s.Data {
		out[key] = string(value)
	}
	return out
}

// TestGeneratedValuesSurviveUpgrades: an upgrade without a change writes nothing but
// its record, one with a change changes that only, and plan and explain say so.
func TestGeneratedValuesSurviveUpgrades(t *testing.T) {
	w := newWorld(t)
	chart := w.generatedChart()
	w.ok("install", "x", chart)
	first := w.secretData("db")
	plan := w.ok("plan", "x", chart).out
	for _, want := range []string{"data.password: generated; kept from revision 1", "No changes.", "generated values kept"} {
		if !strings.Contains(plan, want) {
			w.Errorf("the plan doesn't say %q:\n%s", want, plan)
		}
	}
	mark := w.mark()
	w.ok("upgrade", "x", chart)
	if writes := w.writes(mark); len(writes) > 0 {
		w.Errorf("an upgrade without a change wrote %v", writes)
	}
	if explained := w.ok("explain", "x", "Secret/db", "data.password").out; !strings.Contains(explained, "generated; kept from revision 1") {
		w.Errorf("explain doesn't know it:\n%s", explained)
	}
	w.ok("upgrade", "x", chart, "--set", "level=debug,base=other")
	now := w.secretData("db")
	for _, key := range []string{"password", "users", "ca.crt", "tls.crt", "tls.key"} {
		if now[key] != first[key] {
			w.Errorf("%s has changed", key)
		}
	}
	if want := "postgres://app:" + first["password"] + "@db:5432/other"; now["url"] != want {
		w.Errorf("url: got %s, want %s", now["url"], want)
	}
	c, err := w.cluster.Client().CoreV1().ConfigMaps(w.ns).Get(w.Context(), "c", metav1.GetOptions{})
	if want := "level: debug\npassword: " + first["password"] + "\n"; err != nil || c.Data["db.yaml"] != want {
		w.Errorf("db.yaml: got %v %v, want %s", c.Data, err, want)
	}
	if out := w.helm("get", "manifest", "x").out; !strings.Contains(out, base64.StdEncoding.EncodeToString([]byte(first["password"]))) {
		w.Error("the record hasn't the manifest as deployed")
	}
	w.ok("upgrade", "x", chart, "--generated", "renew")
	if w.secretData("db")["password"] == first["password"] {
		w.Error("--generated renew has kept the password")
	}
	w.ok("rollback", "x", "1")
	if w.secretData("db")["password"] != first["password"] {
		w.Error("a rollback hasn't brought the password back")
	}
}

// TestPasswordsNeverChangeUnasked draws what happens to a release: whatever it is,
// the database keeps its password, and its clients have it.
func TestPasswordsNeverChangeUnasked(t *testing.T) {
	t.Parallel()
	for seed := range int64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t)
			chart, r := w.generatedChart(), rand.New(rand.NewSource(seed))
			w.ok("install", "x", chart)
			password, done := w.secretData("db")["password"], []string{"install"}
			level := "info"
			steps := map[string]func(){
				"upgrade":  func() { w.ok("upgrade", "x", chart, "--set", "level="+level) },
				"change":   func() { level = fmt.Sprintf("l%d", r.Intn(1000)); w.ok("upgrade", "x", chart, "--set", "level="+level) },
				"fail":     func() { w.exits(1, "upgrade", "x", chart, "--set", "level="+level+",fail=post-upgrade") },
				"before":   func() { w.exits(1, "upgrade", "x", chart, "--set", "level="+level+",fail=pre-upgrade") },
				"atomic":   func() { w.exits(6, "upgrade", "x", chart, "--atomic", "--set", "level=l0,fail=post-upgrade") },
				"rollback": func() { w.ok("rollback", "x") },
				"lost": func() {
					err := w.cluster.Client().CoreV1().Secrets(w.ns).Delete(w.Context(), "db", metav1.DeleteOptions{})
					if err != nil {
						w.Fatal(err)
					}
					w.ok("upgrade", "x", chart, "--set", "level="+level)
				},
				"renew then fail": func() {
					w.exits(1, "upgrade", "x", chart, "--generated", "renew", "--set", "level="+level+",fail=post-upgrade")
					password = w.secretData("db")["password"] // asked for, and written
				},
			}
			for range 6 {
				names := make([]string, 0, len(steps))
				for name := range steps {
					names = append(names, name)
				}
				slices.Sort(names)
				step := names[r.Intn(len(names))]
				if step == "rollback" && !slices.Contains(done, "upgrade") {
					continue
				}
				if (step == "rollback" || step == "atomic") && slices.Contains(done, "renew then fail") {
					continue // goes back to what was before, as asked
				}
				done = append(done, step)
				steps[step]()
				now := w.secretData("db")
				if now["password"] != password || !strings.Contains(now["url"], password) {
					t.Fatalf("after %q: password %q in %q, want %q", done, now["password"], now["url"], password)
				}
			}
		})
	}
}
