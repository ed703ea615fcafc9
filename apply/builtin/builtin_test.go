package builtin

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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
		if err := os.WriteFile("schemas.gz", pack(t, want), 0o644); err != nil {
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

func pack(t *testing.T, of []schema.TypeDef) []byte {
	t.Helper()
	types := writer{texts: map[string]int{}}
	types.write(t, reflect.ValueOf(of))
	texts := make([]string, len(types.texts))
	for text, i := range types.texts {
		texts[i] = text
	}
	all := writer{}
	all.number(len(texts))
	for _, text := range texts {
		all.number(len(text))
		all.out = append(all.out, text...)
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(append(all.out, types.out...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A writer writes what a reader reads.
type writer struct {
	out   []byte
	texts map[string]int
}

func (w *writer) number(n int) { w.out = binary.AppendUvarint(w.out, uint64(n)) }

func (w *writer) bit(set bool) {
	if set {
		w.number(1)
	} else {
		w.number(0)
	}
}

func (w *writer) write(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		i, known := w.texts[v.String()]
		if !known {
			i = len(w.texts)
			w.texts[v.String()] = i
		}
		w.number(i)
	case reflect.Int:
		w.number(int(v.Int()))
	case reflect.Bool:
		w.bit(v.Bool())
	case reflect.Pointer:
		w.bit(!v.IsNil())
		if !v.IsNil() {
			w.write(t, v.Elem())
		}
	case reflect.Slice:
		w.number(v.Len())
		for i := range v.Len() {
			w.write(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				w.write(t, v.Field(i))
			}
		}
	case reflect.Interface:
		if v.IsNil() {
			w.number(0)
			return
		}
		known := slices.Index(defaultTypes, v.Elem().Type())
		if known < 0 {
			t.Fatalf("a default value is a %s, which a reader doesn't know", v.Elem().Type())
		}
		w.number(known)
		w.write(t, v.Elem())
	case reflect.Map:
		w.number(v.Len())
		for key, value := range v.Seq2() {
			w.write(t, key)
			w.write(t, value)
		}
	default:
		t.Fatalf("a reader doesn't know a %s", v.Type())
	}
}

// Each union is of a type and of fields that the schemas have.
func TestUnionsAreOfTheSchemas(t *testing.T) {
	types, err := unpack(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"apiextensions.WebhookClientConfig": true, "apiextensions.CustomResourceConversion": true, "apiregistration.APIServiceSpec": true} // which client-go doesn't have
	for _, def := range types {
		list := UnionsOf(schema.TypeRef{NamedType: &def.Name})
		for _, u := range list {
			parts := strings.Split(def.Name, ".")
			seen[parts[len(parts)-3]+"."+parts[len(parts)-1]] = true
			names := append(slices.Clone(u.members), u.others...)
			if u.List != "" {
				names = []string{u.List}
			}
			if u.Discriminator != "" {
				names = append(names, u.Discriminator)
			}
			for _, name := range names {
				if _, ok := def.Map.FindField(name); !ok && !strings.Contains(def.Name, "beta") {
					t.Errorf("%s has no field %s", def.Name, name)
				}
			}
		}
	}
	for name := range unions {
		if !seen[name] {
			t.Errorf("the schemas have no type %s", name)
		}
	}
}
