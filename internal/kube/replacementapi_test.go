package kube

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Prevents that an object is sent in an API version whose fields are others than those it was written with.
func TestReplacementsHaveTheSameFields(t *testing.T) {
	for _, row := range replacementAPIs {
		for kind := range strings.FieldsSeq(row[2]) {
			var fields [2]map[string]bool
			for i, version := range row[:2] {
				obj, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(version, kind))
				if err != nil {
					t.Logf("%s in %s is not among client-go's types", kind, version)
					break
				}
				fields[i] = map[string]bool{}
				fieldsOf(reflect.TypeOf(obj), "", fields[i])
			}
			for field := range fields[0] {
				if fields[1] != nil && !fields[1][field] {
					t.Errorf("%s: %s has %s, %s has not", kind, row[0], field, row[1])
				}
			}
		}
	}
}

func fieldsOf(t reflect.Type, path string, to map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		fieldsOf(t.Elem(), path, to)
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if at := path + "." + name; name != "" && name != "metadata" && !to[at] && strings.Count(at, ".") < 12 {
				to[at] = true
				fieldsOf(t.Field(i).Type, at, to)
			} else if t.Field(i).Anonymous {
				fieldsOf(t.Field(i).Type, path, to)
			}
		}
	}
}
