package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recorded puts a revision of the release "x" into the cluster as the program
// that is named had written it: testdata/records has what was in its Secret.
func (w *world) recorded(by string, revision int) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "records", fmt.Sprintf("%s.v%d.json", by, revision)))
	if err != nil {
		w.Fatal(err)
	}
	var stored struct {
		Labels, Annotations map[string]string
		Record              json.RawMessage
	}
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte("NAMESPACE"), []byte(w.ns)), &stored); err != nil {
		w.Fatal(err)
	}
	var packed bytes.Buffer
	pack := gzip.NewWriter(&packed)
	if _, err := pack.Write(stored.Record); err != nil {
		w.Fatal(err)
	}
	if err := pack.Close(); err != nil {
		w.Fatal(err)
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
		"stringData": map[string]any{"release": base64.StdEncoding.EncodeToString(packed.Bytes())},
	}}
	secret.SetName(fmt.Sprintf("sh.helm.release.v1.x.v%d", revision))
	secret.SetLabels(stored.Labels)
	secret.SetAnnotations(stored.Annotations)
	if _, err := w.in("secrets").Create(w.Context(), secret, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// TestRecordsWithoutProvenance are records of Helm, and of deployer before it
// noted where objects came from: revision 1 with ConfigMap a, and revision 2,
// which failed, with a and b. What carries the release's ownership is the
// release's.
func TestRecordsWithoutProvenance(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"helm3", "deployer-before-provenance"} {
		for name, next := range map[string]struct {
			args []string
			want map[string]bool // what is there afterwards
		}{
			"upgrade":          {[]string{"upgrade", "x", "CHART"}, map[string]bool{"a": true, "b": false}},
			"rollback":         {[]string{"rollback", "x", "1"}, map[string]bool{"a": true, "b": false}},
			"uninstall":        {[]string{"uninstall", "x"}, map[string]bool{"a": false, "b": false}},
			"upgrade --atomic": {[]string{"upgrade", "x", "FAILING", "--atomic"}, map[string]bool{"a": true, "b": false, "new": false}},
		} {
			t.Run(by+" "+name, func(t *testing.T) {
				w := newWorld(t)
				for _, cm := range []string{configMap("a", "2"), configMap("b", "ours")} {
					owned := "  labels: {app.kubernetes.io/managed-by: Helm}\n" +
						"  annotations: {meta.helm.sh/release-name: x, meta.helm.sh/release-namespace: " + w.ns + "}\ndata:"
					w.create("configmaps", "helm", strings.Replace(cm, "\ndata:", "\n"+owned, 1))
				}
				w.recorded(by, 1)
				w.recorded(by, 2)
				w.says(w.ok("history", "x"), "stdout", `1\s.*deployed`, `2\s.*failed`)
				args := slices.Clone(next.args)
				code := 0
				for i, arg := range args {
					switch arg {
					case "CHART":
						args[i] = w.chart(configMap("a", "3"))
					case "FAILING":
						args[i], code = w.chart(configMap("a", "3"), configMap("new", "1"), fails()), 6
					}
				}
				w.exits(code, args...)
				w.there("configmaps", next.want)
			})
		}
	}
}
