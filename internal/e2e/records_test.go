package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kubetest"
)

// TestDamagedRecord gives every command that reads it a record that can't be
// read: none passes over it in silence, and each names the Secret and the way out.
func TestDamagedRecord(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(configMap("a", "1"))
	w.ok("install", "x", chart)
	w.patch("secrets", "sh.helm.release.v1.x.v1", "somebody", `{"data":{"release":"Z2FyYmFnZQ=="}}`)
	mark := w.mark()
	for _, command := range []string{
		"upgrade x CHART", "upgrade --install x CHART", "install x CHART --replace", "rollback x 1", "uninstall x", "test x",
		"plan x CHART", "plan --rollback x 1", "plan --uninstall x",
		"status x", "get manifest x", "get values x", "get hooks x", "get notes x", "get metadata x", "get all x",
	} {
		r := w.try(deployerBinary, strings.Fields(strings.ReplaceAll(command, "CHART", chart))...)
		if r.code == 0 {
			t.Errorf("it passed over a damaged record:\n%s", r)
		}
		if !strings.HasPrefix(command, "install") { // which needs no record to refuse the name
			w.says(r, "stderr", `Secret/`+w.ns+`/sh\.helm\.release\.v1\.x\.v1 can't be read`, `kubectl -n `+w.ns+` delete secret sh\.helm\.release\.v1\.x\.v1`)
		}
	}
	// What they show is beside the record; nothing of it is downloaded.
	w.says(w.ok("list"), "stdout", `x\s.*deployed`)
	w.says(w.ok("history", "x"), "stdout", `1\s.*deployed`)
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("objects were written: %v", writes)
	}

	// One that says about itself what can't be hides neither the others nor itself.
	w.ok("install", "y", chart, "--take-ownership-from", w.ns+"/x")
	w.patch("secrets", "sh.helm.release.v1.x.v1", "somebody", `{"metadata":{"labels":{"version":"7"}}}`)
	r := w.ok("list")
	w.says(r, "stderr", `Secret/`+w.ns+`/sh\.helm\.release\.v1\.x\.v1`, `version="7"`)
	w.says(r, "stdout", `y\s.*deployed`, `sh\.helm\.release\.v1\.x\.v1\s.*unreadable`)
	w.says(w.exits(1, "history", "x"), "stderr", `version="7"`)
}

// TestWithoutLeases deploys as somebody who may not use Leases: it works, with a
// warning, and a second run is kept away by the record alone.
func TestWithoutLeases(t *testing.T) {
	w := newWorld(t)
	poor := *w
	poor.user = w.cluster.User(t, w.ns, kubetest.Rule("", "get,list,create,update,delete", "secrets"),
		kubetest.Rule("", "*", "configmaps", "pods", "pods/log"), kubetest.Rule("batch", "*", "jobs"))
	poor.kubeconfig = poor.user.Kubeconfig(t, w.ns)
	r := poor.ok("install", "x", w.chart(configMap("a", "1")))
	w.says(r, "stderr", `no permission to use Lease/`+w.ns+`/deployer-x`)

	first, done := poor.start("upgrade", "x", w.endless())
	w.waiting()
	w.says(poor.ok("plan", "x", w.chart(configMap("a", "3"))), "stdout", `Warning: release \S+/x is pending-upgrade at revision 2: nothing is changed before`)
	r = poor.exits(5, "upgrade", "x", w.chart(configMap("a", "3")))
	w.says(r, "stderr", `another operation`, `pending-upgrade`, `--takeover-pending`)
	w.statuses("x", "deployed", "pending-upgrade")
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	done(first.Wait())
	// The dead one was a process of this machine.
	poor.ok("upgrade", "x", w.chart(configMap("a", "4")))
	w.statuses("x", "superseded", "failed", "deployed")
	w.ok("uninstall", "x")
	w.nothingLeft("Job/endless")
}

// TestRecordsAreLikeHelms: what roles and policies may go by is the same.
func TestRecordsAreLikeHelms(t *testing.T) {
	w := newWorld(t)
	w.helm("install", "theirs", w.chart(configMap("a", "1")))
	w.ok("install", "ours", w.chart(configMap("b", "1")))
	theirs, ours := w.must("secrets", "sh.helm.release.v1.theirs.v1"), w.must("secrets", "sh.helm.release.v1.ours.v1")
	for what, of := range map[string]func(*unstructured.Unstructured) any{
		"type":   func(s *unstructured.Unstructured) any { return s.Object["type"] },
		"owner":  func(s *unstructured.Unstructured) any { return s.GetLabels()["owner"] },
		"labels": func(s *unstructured.Unstructured) any { return slices.Sorted(maps.Keys(s.GetLabels())) },
		"data": func(s *unstructured.Unstructured) any {
			return slices.Sorted(maps.Keys(s.Object["data"].(map[string]any)))
		},
	} {
		// Helm writes modifiedAt when it changes a record, and it has not yet.
		want := of(theirs)
		if what == "labels" {
			want = slices.Sorted(slices.Values(append(want.([]string), "createdAt")))
		}
		if got := of(ours); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, Helm has %v", what, got, want)
		}
	}
}

// TestRecordsKeepNoLiveSecrets: what somebody else has put into a Secret is in no
// record, and not in what is told either.
func TestRecordsKeepNoLiveSecrets(t *testing.T) {
	w := newWorld(t)
	secret := func(value string) string {
		return w.chart("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: " + value + "}\n")
	}
	w.ok("install", "x", secret("first"))
	const private = "nobody-knows-this"
	hidden := base64.StdEncoding.EncodeToString([]byte(private))
	w.patch("secrets", "s", "somebody", `{"data":{"password":"`+hidden+`","more":"`+hidden+`"}}`)
	for _, command := range []string{"plan x CHART -o json", "upgrade x CHART -o json", "history x -o json", "get all x", "status x -o json"} {
		r := w.ok(strings.Fields(strings.ReplaceAll(command, "CHART", secret("second")))...)
		if text := r.String(); strings.Contains(text, private) || strings.Contains(text, hidden) {
			t.Errorf("it tells what is private:\n%s", r)
		}
	}
	for _, name := range []string{"sh.helm.release.v1.x.v1", "sh.helm.release.v1.x.v2"} {
		if text := w.unpacked(name); strings.Contains(text, private) || strings.Contains(text, hidden) || !strings.Contains(text, "stringData") {
			t.Errorf("Secret/%s holds what is private, or nothing:\n%s", name, text)
		}
	}
}

// unpacked is what a record says, as JSON.
func (w *world) unpacked(name string) string {
	w.Helper()
	data, _ := field(w.must("secrets", name), "data.release").(string)
	for range 2 { // Kubernetes', and Helm's
		decoded, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			w.Fatal(err)
		}
		data = string(decoded)
	}
	packed, err := gzip.NewReader(bytes.NewReader([]byte(data)))
	if err != nil {
		w.Fatal(err)
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}
