package builtin

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"flag"
	"os"
	"testing"

	"go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

var update = flag.Bool("update", false, "write the schemas of the client-go that go.mod names")

// TestSchemasAreClientGos fails after an upgrade of client-go, until the file is
// written anew.
func TestSchemasAreClientGos(t *testing.T) {
	want := ofClientGo(t)
	if *update {
		if err := os.WriteFile("schemas.gob.gz", pack(t, want), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Log("written; run the tests again to see it built in")
		return
	}
	got, err := unpack(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%d types, client-go has %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if a, b := text(t, got[i]), text(t, want[i]); a != b {
			t.Errorf("type is\n%s\nclient-go has\n%s", a, b)
		}
	}
	if t.Failed() {
		t.Log("write them anew with: go test ./apply/builtin -update")
	}
}

func ofClientGo(t *testing.T) []schema.TypeDef {
	t.Helper()
	// The values of all kinds share one schema.
	empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	v, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(empty)
	if err != nil {
		t.Fatal(err)
	}
	return v.Schema().Types
}

// text is a type as client-go would write it, without what was remembered of it.
func text(t *testing.T, of schema.TypeDef) string {
	t.Helper()
	data, err := yaml.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func pack(t *testing.T, types []schema.TypeDef) []byte {
	t.Helper()
	register()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := gob.NewEncoder(w).Encode(types); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
