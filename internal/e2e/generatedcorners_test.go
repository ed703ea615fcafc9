package e2e

import (
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

const passwordTemplate = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: \"{{ .Values.password | default (randAlphaNum 16) }}\", level: {{ .Values.level }}}\n"

func (w *world) passwordChart() string {
	return w.chartOf(map[string]string{"templates/t.yaml": passwordTemplate, "values.yaml": "password: \"\"\nlevel: info\n"})
}

// password is what the Secret has as password now.
func (w *world) password() string {
	w.Helper()
	return w.secretData("db")["password"]
}

// writesNothing checks that a command writes nothing but the record.
func (w *world) writesNothing(args ...string) {
	w.Helper()
	mark := w.mark()
	w.ok(args...)
	if writes := w.writes(mark); len(writes) > 0 {
		w.Errorf("%v has written %v", args, writes)
	}
}

// script is an executable file.
func (w *world) script(text string) string {
	w.Helper()
	file := filepath.Join(w.TempDir(), "script.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		w.Fatal(err)
	}
	return file
}

// TestPostRenderersKeepWhatIsGenerated: what a post-renderer is given and what it makes of it
// are kept alike, and what it makes up itself.
func TestPostRenderersKeepWhatIsGenerated(t *testing.T) {
	w := newWorld(t)
	chart := w.passwordChart()
	labels := w.script(`sed 's/metadata: {name: db}/metadata: {name: db, labels: {team: '"$1"'}}/'; echo "# $(date +%N)"`)
	args := func(team string) []string {
		return []string{"x", chart, "--post-renderer", labels, "--post-renderer-args", team}
	}
	w.ok(append([]string{"install"}, args("a")...)...)
	first := w.password()
	w.writesNothing(append([]string{"upgrade"}, args("a")...)...)
	w.ok(append([]string{"upgrade"}, args("b")...)...)
	if w.password() != first || field(w.must("secrets", "db"), "metadata.labels.team") != "b" {
		t.Errorf("password %q, want %q, of %v", w.password(), first, w.must("secrets", "db"))
	}

	own := w.chart(configMap("a", "PLACE"))
	random := w.script(`sed "s/PLACE/p$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')/"`)
	w.ok("install", "y", own, "--post-renderer", random)
	w.writesNothing("upgrade", "y", own, "--post-renderer", random)
}

// TestUnderTheNameHelmEverythingIsRenewed: unless asked otherwise, as with Helm.
func TestUnderTheNameHelmEverythingIsRenewed(t *testing.T) {
	w := newWorld(t)
	chart := w.passwordChart()
	helm := filepath.Join(t.TempDir(), "helm")
	if err := os.Symlink(deployerBinary, helm); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		if r := w.try(helm, args...); r.code != 0 {
			t.Fatal(r)
		}
		return w.password()
	}
	first := run("install", "x", chart)
	second := run("upgrade", "x", chart)
	if second == first {
		t.Error("upgrade has kept the password")
	}
	if got := run("upgrade", "x", chart, "--generated", "keep"); got != second {
		t.Error("--generated keep hasn't kept it")
	}
	kept := w.chartOf(map[string]string{"templates/t.yaml": strings.Replace(passwordTemplate, "{name: db}", "{name: db, annotations: {deployer.io/generated: keep}}", 1), "values.yaml": "level: info\n"})
	if got := run("upgrade", "x", kept); got != second {
		t.Error("the annotation hasn't kept it")
	}
	if got := run("upgrade", "x", chart); got == second {
		t.Error("the annotation still holds")
	}
}

// TestEnvironmentSaysWhetherGeneratedValuesAreKept: as the flag does, which wins.
func TestEnvironmentSaysWhetherGeneratedValuesAreKept(t *testing.T) {
	w := newWorld(t)
	chart := w.passwordChart()
	w.ok("install", "x", chart)
	first := w.password()
	upgrade := func(value string, args ...string) string {
		t.Helper()
		args = append([]string{"DEPLOYER_GENERATED=" + value, deployerBinary, "upgrade", "x", chart}, args...)
		if r := w.try("env", args...); r.code != 0 {
			t.Fatal(r)
		}
		return w.password()
	}
	if upgrade("keep") != first || upgrade("renew", "--generated", "keep") != first {
		t.Error("the password has changed, though it was to be kept")
	}
	if upgrade("renew") == first {
		t.Error("the password was kept, though it was to be renewed")
	}
	r := w.try("env", "DEPLOYER_GENERATED=often", deployerBinary, "upgrade", "x", chart)
	if r.code == 0 || !strings.Contains(r.err, "DEPLOYER_GENERATED") {
		t.Errorf("want an error that names the variable: %s", r)
	}
}

// TestSavedPlansHaveGeneratedValues: what is applied is what was planned, whether it was
// kept, renewed or new. What is kept can be rendered again; what is new has to be in the file.
func TestSavedPlansHaveGeneratedValues(t *testing.T) {
	w := newWorld(t)
	chart := w.passwordChart()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(identity, []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	encrypted := func(args ...string) func() {
		file := w.saved(append(args, "--encrypt-to", key.Recipient().String())...)
		return func() { w.ok("apply", file, "--identity", identity) }
	}
	encrypted("--install", "x", chart)()
	first := w.password()
	encrypted("x", chart, "--set", "level=debug")()
	if now := w.secretData("db"); now["password"] != first || now["level"] != "debug" {
		t.Errorf("got %v, want the password %q", now, first)
	}
	w.ok("apply", w.saved("x", chart, "--set", "level=warn"), chart, "--set", "level=warn")
	if now := w.secretData("db"); now["password"] != first || now["level"] != "warn" {
		t.Errorf("rendered again: got %v, want the password %q", now, first)
	}
	w.says(w.exits(3, "apply", w.saved("x", chart, "--generated", "renew"), chart), "stderr", `something else than was planned: Secret/db`)
	renew := encrypted("x", chart, "--generated", "renew")
	if w.password() != first {
		t.Error("planning has changed the password")
	}
	renew()
	renewed := w.password()
	if renewed == first {
		t.Error("the plan hasn't renewed the password")
	}
	if out := w.ok("get", "manifest", "x").out; !strings.Contains(out, renewed) {
		t.Errorf("the record doesn't have the password that is deployed:\n%s", out)
	}
	w.writesNothing("upgrade", "x", chart)
}

// TestPasswordsChangedByHandAreConflicts: the recorded value is what the release wants.
func TestPasswordsChangedByHandAreConflicts(t *testing.T) {
	t.Parallel()
	for policy, change := range map[string]string{"take": "", "yield": "", "fail": "", "take with a change": "debug", "yield with a change": "debug"} {
		t.Run(policy, func(t *testing.T) {
			w := newWorld(t)
			chart := w.passwordChart()
			w.ok("install", "x", chart)
			first := w.password()
			w.patch("secrets", "db", "kubectl-edit", `{"stringData":{"password":"by-hand"}}`)
			args := []string{"x", chart, "--conflicts", strings.Fields(policy)[0]}
			if change != "" {
				args = append(args, "--set", "level="+change)
			}
			planned := w.try(deployerBinary, append([]string{"plan"}, args...)...)
			plan := planned.out + planned.err
			if !strings.Contains(plan, "kubectl-edit") || strings.Contains(plan, first) || strings.Contains(plan, "by-hand") {
				t.Errorf("the plan doesn't tell who changed it, or shows it:\n%s", plan)
			}
			want := first
			switch strings.Fields(policy)[0] {
			case "fail":
				w.exits(3, append([]string{"upgrade"}, args...)...)
				want = "by-hand"
			case "yield":
				w.ok(append([]string{"upgrade"}, args...)...)
				want = "by-hand"
			default:
				w.ok(append([]string{"upgrade"}, args...)...)
			}
			if got := w.password(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestLookupsGoOnKeepingWhatTheyKeep: a chart that reads its own Secret does as with Helm,
// also with what somebody has changed by hand.
func TestLookupsGoOnKeepingWhatTheyKeep(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(`{{ $old := lookup "v1" "Secret" .Release.Namespace "db" }}apiVersion: v1
kind: Secret
metadata: {name: db}
data:
  password: {{ if $old }}{{ index $old.data "password" }}{{ else }}{{ randAlphaNum 16 | b64enc }}{{ end }}
  other: {{ randAlphaNum 16 | b64enc }}
`)
	w.ok("install", "x", chart)
	first := w.secretData("db")
	w.writesNothing("upgrade", "x", chart)
	w.patch("secrets", "db", "kubectl-edit", `{"stringData":{"password":"by-hand"}}`)
	w.ok("upgrade", "x", chart)
	if now := w.secretData("db"); now["password"] != "by-hand" || now["other"] != first["other"] {
		t.Errorf("got %v after %v", now, first)
	}
}

// TestGivenPasswordsWin: over one that was generated, and stay when they are given no more.
func TestGivenPasswordsWin(t *testing.T) {
	w := newWorld(t)
	chart := w.passwordChart()
	w.ok("install", "x", chart)
	w.ok("upgrade", "x", chart, "--set", "password=given")
	if got := w.password(); got != "given" {
		t.Errorf("got %q", got)
	}
	w.ok("upgrade", "x", chart, "--reset-values")
	if got := w.password(); got != "given" {
		t.Errorf("no longer given: got %q", got)
	}
}

// TestRolledBackPasswordsStay: the next upgrade keeps what the rollback has brought back.
func TestRolledBackPasswordsStay(t *testing.T) {
	w := newWorld(t)
	chart := w.passwordChart()
	w.ok("install", "x", chart)
	first := w.password()
	w.ok("upgrade", "x", chart, "--generated", "renew")
	w.helm("rollback", "x", "1")
	plan := w.ok("plan", "x", chart).out
	w.ok("upgrade", "x", chart, "--set", "level=debug")
	if got := w.password(); got != first || !strings.Contains(plan, "kept from revision 3") {
		t.Errorf("got %q, want %q, planned as:\n%s", got, first, plan)
	}
}

// TestExpiringCertificatesAreRenewed: plan and run say which and why, and the key goes
// with its certificate.
func TestExpiringCertificatesAreRenewed(t *testing.T) {
	w := newWorld(t)
	// Of no life at all: all of it is over.
	chart := w.chart("{{ $c := genSelfSignedCert \"a\" nil nil 0 }}apiVersion: v1\nkind: Secret\nmetadata: {name: db}\ndata: {crt: {{ $c.Cert | b64enc }}, key: {{ $c.Key | b64enc }}, password: {{ randAlphaNum 16 | b64enc }}}\n")
	w.ok("install", "x", chart)
	first := w.secretData("db")
	expires := `certificate of Secret/` + w.ns + `/db expires on \d{4}-\d\d-\d\d: renewed`
	plan := w.ok("plan", "x", chart)
	w.says(result{out: plan.out + plan.err}, "stdout", expires)
	run := w.ok("upgrade", "x", chart)
	w.says(result{out: run.out + run.err}, "stdout", expires)
	now := w.secretData("db")
	if now["crt"] == first["crt"] || now["key"] == first["key"] || now["password"] != first["password"] {
		t.Error("not the certificate and its key alone were renewed")
	}
}

// TestEachCertificateHasAKeyOfItsOwn: whether it is kept, new or renewed, no other one has the prime numbers of its key.
func TestEachCertificateHasAKeyOfItsOwn(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(`{{ range splitList " " .Values.names }}{{ $c := genSelfSignedCert . nil nil 365 }}apiVersion: v1
kind: Secret
metadata:
  name: "{{ . }}"
  annotations: { {{- if has . (splitList " " $.Values.renewed) }}deployer.io/generated: renew{{ end -}} }
data: {crt: {{ $c.Cert | b64enc }}, key: {{ $c.Key | b64enc }}}
---
{{ end }}apiVersion: v1
kind: PodTemplate
metadata: {name: rolls}
template:
  metadata: {annotations: {roll-me: {{ randAlphaNum 5 | quote }}}}
  spec: {containers: [{name: c, image: c}]}
`)
	moduli := map[string]string{} // and the key that has it
	upgrade := func(renewed string, names ...string) {
		t.Helper()
		w.ok("upgrade", "-i", "x", chart, "--set", "names="+strings.Join(names, " ")+",renewed="+renewed)
		for _, name := range names {
			data := w.secretData(name)
			pair, err := tls.X509KeyPair([]byte(data["crt"]), []byte(data["key"]))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			modulus := pair.PrivateKey.(*rsa.PrivateKey).N.String()
			if other, known := moduli[modulus]; known && other != data["key"] {
				t.Errorf("the key of %s has the prime numbers of another", name)
			}
			moduli[modulus] = data["key"]
		}
	}
	for _, of := range []struct {
		renewed string
		names   []string
		keys    int // that there have been
	}{
		{"", []string{"m", "n"}, 2},
		{"", []string{"m", "n"}, 2},
		{"", []string{"a", "b", "m", "n"}, 4}, // the first ones that are rendered are new
		{"", []string{"a", "b", "m", "n"}, 4},
		{"m n", []string{"a", "b", "m", "n"}, 6},
		{"m n", []string{"a", "b", "m", "n"}, 8}, // the revision before has renewed them, too
		{"", []string{"m", "n"}, 8},
	} {
		if upgrade(of.renewed, of.names...); len(moduli) != of.keys {
			t.Errorf("with %v, and %q renewed: there have been %d keys, want %d", of.names, of.renewed, len(moduli), of.keys)
		}
	}
}

// generatedForms are charts with values in the forms that charts have them in.
var generatedForms = map[string]map[string]string{
	"registry": {"templates/t.yaml": `{{ $p := randAlphaNum 12 }}apiVersion: v1
kind: Secret
metadata: {name: registry}
type: kubernetes.io/dockerconfigjson
data:
  .dockerconfigjson: {{ printf "{\"auths\":{\"r.io\":{\"username\":\"u\",\"password\":%q,\"auth\":%q}}}" $p (printf "u:%s" $p | b64enc) | b64enc }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: registry}
data:
  header: Basic {{ printf "u:%s" $p | b64enc }}
  when: {{ now | date "2006-01-02T15:04:05.000Z07:00" | quote }}
`},
	"files": {"templates/t.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: files}
data:
  app.yaml: |
    # made at {{ now }}
    {{- range keys (dict "aa" 1 "bb" 2 "cc" 3) }}
    {{ . }}: {{ randAlphaNum 12 }}
    {{- end }}
  app.ini: |
    [db]
    password = {{ randAlphaNum 12 }}
    [cache]
    password = {{ randAlphaNum 12 }}
  app.json: {{ dict "salt" (randAscii 20) "n" 1 | toJson | quote }}
binaryData:
  key: {{ randBytes 32 }}
`},
	"webhook": {
		"templates/_helpers.tpl": `{{ define "certs" }}{{ if not (hasKey .Values "made") }}{{ $ca := genCA "ca" 365 }}{{ $_ := set .Values "made" (dict "ca" $ca "crt" (genSignedCert "web" nil (list "web") 365 $ca)) }}{{ end }}{{ end }}`,
		"templates/secret.yaml":  "{{ include \"certs\" . }}apiVersion: v1\nkind: Secret\nmetadata: {name: web}\ntype: kubernetes.io/tls\ndata: {ca.crt: {{ .Values.made.ca.Cert | b64enc }}, tls.crt: {{ .Values.made.crt.Cert | b64enc }}, tls.key: {{ .Values.made.crt.Key | b64enc }}}\n",
		"templates/webhook.yaml": `{{ include "certs" . }}apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: {{ .Release.Namespace }}-web}
webhooks:
- name: web.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: nowhere}}
  clientConfig: {service: {name: web, namespace: {{ .Release.Namespace }}}, caBundle: {{ .Values.made.ca.Cert | b64enc }}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
`,
		"templates/d.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}, annotations: {checksum/tls: '{{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum }}'}}
    spec:
      containers:
      - name: a
        image: r/x
        env:
        - {name: SUM, value: '{{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum }}'}
`},
	"users": {"templates/t.yaml": `{{ $p := randAlphaNum 12 }}apiVersion: v1
kind: Secret
metadata: {name: users, annotations: {id: {{ uuidv4 }}}}
stringData:
  password: {{ $p }}
  url: postgres://app:{{ $p }}@db:5432/app
  hash: {{ $p | sha256sum }}
  htpasswd: |
    {{ htpasswd "app" $p }}
    {{ htpasswd "admin" "fixed" }}
  key: {{ genPrivateKey "ed25519" | quote }}
  sealed: {{ encryptAES "k" $p }}
---
apiVersion: v1
kind: Service
metadata: {name: users}
spec: {selector: {a: b}, ports: [{name: a, port: {{ randInt 1024 65535 }}}]}
`},
}

// TestFormsOfGeneratedValuesSurvive: after an installation, by whichever program, an upgrade
// without a change writes nothing at all, and a second one neither.
func TestFormsOfGeneratedValuesSurvive(t *testing.T) {
	t.Parallel()
	for form, files := range generatedForms {
		for _, by := range []string{"deployer", "helm"} {
			t.Run(fmt.Sprint(form, " by ", by), func(t *testing.T) {
				w := newWorld(t)
				chart := w.chartOf(files)
				if by == "helm" {
					w.helm("install", "x", chart)
					before := generations(w.everything())
					w.ok("upgrade", "x", chart) // the fields become deployer's
					w.unchanged("the first release of deployer", before, generations(w.everything()))
				} else {
					w.ok("install", "x", chart)
				}
				for range 2 {
					w.writesNothing("upgrade", "x", chart)
				}
				plan := w.ok("plan", "x", chart, "-o", "json").out
				if !strings.Contains(plan, `"generated_kept"`) || strings.Contains(plan, `"generated_renewed"`) {
					t.Errorf("not all is kept: %s", plan)
				}
				w.ok("uninstall", "x")
			})
		}
	}
}

// TestNoUserComesToAnOlderValue fails if a user who comes later gets the password of one who went revisions ago, because a
// copy of it has stayed: old records are looked at too.
func TestNoUserComesToAnOlderValue(t *testing.T) {
	w := newWorld(t)
	of := func(users string) string {
		return w.chart(`{{ $p := randAlphaNum 16 }}apiVersion: v1
kind: Secret
metadata: {name: copy}
stringData: {p: {{ $p }}}
---
apiVersion: v1
kind: Secret
metadata: {name: users}
stringData:
  users.yaml: |
    users:` + users + "\n")
	}
	root, mallory := "\n    - {name: root, password: {{ $p }}}", "\n    - {name: mallory, password: {{ $p }}}"
	password := func() any { return field(w.must("secrets", "copy"), "data.p") }
	w.ok("install", "x", of(root))
	first := password()
	w.ok("upgrade", "x", of(" []"))
	if password() != first {
		t.Error("the copy is renewed when root goes")
	}
	w.ok("upgrade", "x", of(mallory))
	if password() == first {
		t.Error("mallory gets the password of root")
	}
}
