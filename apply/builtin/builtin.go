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
	"encoding/gob"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// packed is written by the test, with -update.
//
//go:embed schemas.gob.gz
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
	register()
	var types []schema.TypeDef
	return types, gob.NewDecoder(in).Decode(&types)
}

// register names the one type of default values that gob doesn't know itself: {}.
func register() { gob.Register(map[any]any{}) }
