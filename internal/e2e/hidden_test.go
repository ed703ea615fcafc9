package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"filippo.io/age"
)

// canary is a text that nobody has seen before, with a letter first.
func canary() string { return "k" + rand.Text()[:15] }

// hides reports an error when a result shows a text as it is, in base64, or in lower case.
func (w *world) hides(r result, texts ...string) {
	w.Helper()
	all := r.out + r.err
	for _, text := range texts {
		inBase64 := base64.StdEncoding.EncodeToString([]byte(text))
		if strings.Contains(strings.ToLower(all), strings.ToLower(text)) || strings.Contains(all, strings.TrimRight(inBase64, "=")) {
			w.Errorf("%s is shown by\n%s", text, r)
		}
	}
}

// TestLookedUpSecretsStayHidden: what templates have read from a Secret of somebody else stands in
// the record. Commands that don't render hide it too, also when the Secret has another value by then.
func TestLookedUpSecretsStayHidden(t *testing.T) {
	w := newWorld(t)
	old, rotated, shared := canary(), canary(), canary()
	w.create("secrets", "test", "{apiVersion: v1, kind: Secret, metadata: {name: external}, stringData: {pw: "+old+"}}")
	chart := func(n string) string {
		return w.chart(`{{- $pw := (lookup "v1" "Secret" .Release.Namespace "external").data.pw | b64dec }}
apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {copy: "of {{ upper $pw }}"}}
data: {n: "`+n+`", url: "postgres://u:{{ $pw }}@db", encoded: "{{ b64enc $pw }}"}
`, replaceOnce(hookJob("check", "test", "before-hook-creation", false), "sim.deployer/steps", `sim.deployer/logs: '{{ (lookup "v1" "Secret" .Release.Namespace "external").data.pw | b64dec }}'
        sim.deployer/steps`))
	}
	w.hides(w.ok("install", "x", chart("1")), old)
	w.patch("secrets", "external", "test", `{"stringData":{"pw":"`+rotated+`"}}`)
	w.hides(w.ok("plan", "x", chart("2"), "-o", "json"), old, rotated)
	w.hides(w.ok("upgrade", "x", chart("2")), old, rotated)
	w.patch("secrets", "external", "test", `{"stringData":{"pw":"`+shared+`"}}`)
	w.patch("configmaps", "a", "test", `{"data":{"url":"was `+old+`, is `+rotated+`"}}`)

	for _, args := range [][]string{
		{"plan", "x", "--drift"}, {"plan", "x", "--drift", "-o", "json"}, {"plan", "--rollback", "x", "1", "-o", "json"}, {"plan", "--uninstall", "x", "-o", "json"},
		{"explain", "x", "configmap/a"}, {"explain", "x", "configmap/a", "-o", "json"}, {"test", "x", "--logs"},
		{"rollback", "x", "1"}, {"plan", "x", "--drift"}, {"explain", "x", "configmap/a"},
	} {
		r := w.try(deployerBinary, args...)
		if r.code != 0 && r.code != 2 {
			t.Errorf("failed: %s", r)
		}
		w.hides(r, old, rotated, shared)
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(w.saved("x", chart("3"), "--encrypt-to", key.Recipient().String()))
	if err != nil {
		t.Fatal(err)
	}
	w.hides(result{line: "the clear part of the saved plan", out: string(data)}, old, rotated, shared)
}

// TestFailedPostRendererShowsNoSecret: the message of a post-renderer that fails may quote what it was given.
func TestFailedPostRendererShowsNoSecret(t *testing.T) {
	w := newWorld(t)
	secret := canary()
	chart := w.chart("{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {v: {{ .Values.greeting }}}}\n")
	quoting := w.script("cat >&2; exit 1\n")
	for _, args := range [][]string{{"install"}, {"upgrade", "--install"}, {"plan"}, {"install", "-o", "json"}, {"install", "--dry-run"}} {
		r := w.try(deployerBinary, append(args, "x", chart, "--set", "greeting="+secret, "--post-renderer", quoting)...)
		if r.code == 0 || !strings.Contains(r.out+r.err, "(hidden)") {
			t.Errorf("want a failure that quotes the hidden value: %s", r)
		}
		w.hides(r, secret)
	}
}
