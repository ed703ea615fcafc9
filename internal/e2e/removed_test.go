package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

const budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec: {minAvailable: 1, selector: {matchLabels: {app: x}}}\n"

// TestRollbackToRemovedAPIs: a revision has an API version that the cluster
// has removed since. It is refused before anything is recorded, or deployed, and
// recorded, in the version that took its place.
func TestRollbackToRemovedAPIs(t *testing.T) {
	w := newWorld(t)
	ingress := "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: x}\nspec: {backend: {serviceName: x, servicePort: 80}}\n"
	list := `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"y"},"spec":{"minAvailable":2}}]}`
	w.ok("install", "x", w.chart(configMap("a", "1"), budget, list))
	w.ok("upgrade", "x", w.chart(configMap("a", "2")))
	w.rewritten("sh.helm.release.v1.x.v1", "policy/v1", "policy/v1beta1")
	mark := w.mark()
	r := w.exits(3, "rollback", "x", "1")
	w.says(r, "stderr", `PodDisruptionBudget in policy/v1beta1`, `policy/v1 replaces it.*--map-removed-apis`)
	w.ok("plan", "--rollback", "x", "1", "--map-removed-apis")
	if writes := w.allWrites(mark); len(writes) > 0 {
		t.Errorf("it wrote: %v", writes)
	}
	r = w.ok("rollback", "x", "1", "--map-removed-apis")
	w.says(r, "stderr", `PodDisruptionBudget/x: policy/v1beta1 is not served any more, sent as policy/v1`)
	if got := field(w.must("poddisruptionbudgets", "x"), "spec.minAvailable"); got != int64(1) {
		t.Errorf("minAvailable = %v, want 1", got)
	}
	if got := field(w.must("poddisruptionbudgets", "y"), "spec.minAvailable"); got != int64(2) {
		t.Errorf("minAvailable of an item of a list = %v, want 2", got)
	}
	w.says(w.helm("get", "manifest", "x"), "stdout", `apiVersion: policy/v1\n`)
	w.ok("upgrade", "x", w.chart(configMap("a", "3")))
	w.helm("rollback", "x", "3")

	// A chart with such an object is the same; one whose fields became others isn't mapped.
	w.ok("upgrade", "x", w.chart(configMap("a", "4"), replaceOnce(budget, "policy/v1", "policy/v1beta1")), "--map-removed-apis")
	w.says(w.exits(3, "upgrade", "x", w.chart(ingress), "--map-removed-apis"), "stderr", `Ingress in extensions/v1beta1`, `the cluster serves it in networking\.k8s\.io/v1:`)
}

// rewritten replaces words in the manifest of a stored revision.
func (w *world) rewritten(secret, from, to string) {
	w.Helper()
	data, _ := field(w.must("secrets", secret), "data.release").(string)
	outer, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		w.Fatal(err)
	}
	packed, err := base64.StdEncoding.DecodeString(string(outer))
	if err != nil {
		w.Fatal(err)
	}
	unpacking, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		w.Fatal(err)
	}
	text, err := io.ReadAll(unpacking)
	if err != nil {
		w.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(text, &record); err != nil {
		w.Fatal(err)
	}
	record["manifest"] = strings.ReplaceAll(record["manifest"].(string), from, to)
	if text, err = json.Marshal(record); err != nil {
		w.Fatal(err)
	}
	var again bytes.Buffer
	packing := gzip.NewWriter(&again)
	if _, err := packing.Write(text); err != nil {
		w.Fatal(err)
	}
	if err := packing.Close(); err != nil {
		w.Fatal(err)
	}
	inner := base64.StdEncoding.EncodeToString(again.Bytes())
	w.patch("secrets", secret, "test", `{"data":{"release":"`+base64.StdEncoding.EncodeToString([]byte(inner))+`"}}`)
}
