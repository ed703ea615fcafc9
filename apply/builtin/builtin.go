// Package builtin has the schemas of the kinds that client-go knows, in a form
// that is read in a few milliseconds.
//
// client-go has them as YAML, which takes 75 ms and 30 MB of garbage to read: most of the
// time and memory of changing one object. The file here is generated from that YAML; a
// test compares the two.
package builtin

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Types of the API that have rules of their own, by the names that schemas give them.
const (
	ServiceSpec          = "io.k8s.api.core.v1.ServiceSpec"
	PodSpec              = "io.k8s.api.core.v1.PodSpec" // of Pods and of their templates
	Container            = "io.k8s.api.core.v1.Container"
	LocalObjectReference = "io.k8s.api.core.v1.LocalObjectReference" // of items that may name nothing, such as imagePullSecrets
	ObjectMeta           = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// Is reports whether a type is the one of a name.
func Is(ref schema.TypeRef, name string) bool { return ref.NamedType != nil && *ref.NamedType == name }

// packed is written by the test, with -update.
//
//go:embed schemas.gz
var packed []byte

// TypeConverter makes typed values of objects of the kinds that client-go knows.
// Each call reads the schemas anew.
func TypeConverter() (managedfields.TypeConverter, error) {
	types, err := unpack(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading the built-in schemas: %w", err)
	}
	parser := &typed.Parser{}
	parser.Schema.Types = types
	return managedfields.NewSchemeTypeConverter(scheme.Scheme, parser), nil
}

func unpack(r io.Reader) ([]schema.TypeDef, error) {
	in, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	from := reader{in: data}
	from.texts = make([]string, from.number())
	for i := range from.texts {
		size := from.number()
		from.texts[i], from.in = string(from.in[:size]), from.in[size:]
	}
	var types []schema.TypeDef
	from.read(reflect.ValueOf(&types).Elem())
	return types, nil
}

// A reader reads what the test writes: all texts, and then the types, as a walk through their exported fields meets
// them. Each number is a varint. A library of encodings, which nothing else in the program needs, would be a quarter
// of a megabyte of it.
type reader struct {
	in    []byte
	texts []string
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.in)
	r.in = r.in[size:]
	return int(n)
}

// defaultTypes are the types of default values, by the number that precedes them.
var defaultTypes = []reflect.Type{nil, reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[bool](), reflect.TypeFor[map[any]any]()}

func (r *reader) read(into reflect.Value) {
	switch into.Kind() {
	case reflect.String:
		into.SetString(r.texts[r.number()])
	case reflect.Int:
		into.SetInt(int64(r.number()))
	case reflect.Bool:
		into.SetBool(r.number() == 1)
	case reflect.Pointer:
		if r.number() == 1 {
			into.Set(reflect.New(into.Type().Elem()))
			r.read(into.Elem())
		}
	case reflect.Slice:
		if n := r.number(); n > 0 {
			into.Set(reflect.MakeSlice(into.Type(), n, n))
		}
		for i := range into.Len() {
			r.read(into.Index(i))
		}
	case reflect.Struct:
		for i := range into.NumField() {
			if field := into.Field(i); field.CanSet() {
				r.read(field)
			}
		}
	case reflect.Interface:
		if t := defaultTypes[r.number()]; t != nil {
			value := reflect.New(t).Elem()
			r.read(value)
			into.Set(value)
		}
	case reflect.Map:
		into.Set(reflect.MakeMap(into.Type()))
		for range r.number() {
			key, value := reflect.New(into.Type().Key()).Elem(), reflect.New(into.Type().Elem()).Elem()
			r.read(key)
			r.read(value)
			into.SetMapIndex(key, value)
		}
	}
}
