package blockyaml

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

// fromLibrary decodes a text as decode does where Decode isn't ok; nil if it can't be decoded or
// isn't an object, or if keys are repeated.
func fromLibrary(text string) any {
	var value any
	if yaml.UnmarshalStrict([]byte(text), &value) != nil {
		return nil
	}
	converted, err := ToJSONTypes(value)
	if err != nil {
		return nil
	}
	return converted
}

// wholeDefinition has what generators write into definitions.
const wholeDefinition = `# Source: c/crds/things.yaml

apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.16.1
  name: things.example.com
spec:
  group: example.com
  names: {kind: Thing, plural: things, shortNames: [t, "th"], listKind: ThingList}
  preserveUnknownFields: false
  scope: Namespaced
  versions:
  - additionalPrinterColumns:
    - jsonPath: .metadata.creationTimestamp
      name: Age
      type: date
    name: v1
    schema:
      openAPIV3Schema:
        description: "It is: a thing # really"
        properties:
          apiVersion:
            description: |-
              APIVersion defines the versioned schema.

              Servers should convert: more info:
                https://example.com/things#resources
              # not a comment
            type: string
          mode:
            default: {}
            enum:
            - ""
            - 'on'
            - "1"
            - Always
            maximum: 65535
            minimum: 0
            multipleOf: 0.5
            pattern: '^[a-z0-9]([-a-z0-9]*\.d)?$'
            type: string
            items: []
            x-kubernetes-validations:
            - message: must be set
              rule: has(self.mode) && self.mode != ''
          text:
            description: |
              Ends with a line end.
            nullable: true
          # a comment
          other:
            default:
        type: object
    served: true
    storage: true
    subresources:
      status: {}
`

// Definitions are decoded without the library, which takes most of the time of a plan of large ones.
func TestDefinitionsAreDecodedFast(t *testing.T) {
	const text = wholeDefinition
	got, ok := Decode(text)
	if !ok {
		t.Fatal("the library is needed")
	}
	if want := fromLibrary(text); !reflect.DeepEqual(any(got), want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
	fast := testing.AllocsPerRun(5, func() { Decode(text) })
	if library := testing.AllocsPerRun(5, func() { fromLibrary(text) }); fast > library/2 {
		t.Errorf("%v allocations, of the library %v", fast, library)
	}
}

// What isn't certain is for the library, and what is certain is as the library has it.
func TestBlockYAMLIsAsTheLibraryHasIt(t *testing.T) {
	for text, ok := range map[string]bool{
		"a: b\n":                                 true,
		"a: b":                                   false,
		"a: yes\n":                               false,
		"a: True\n":                              false,
		"a: true\nb: false\n":                    true,
		"a: trueish\n":                           true,
		"a: 0\nb: 10\nc: 1.5\nd: 1e3\n":          true,
		"a: 010\nb: 0x1f\nc: 0b1\nd: 1_000\n":    true,
		"a: 12:30:45\nb: 2001-01-01\n":           true,
		"a: 9223372036854775807\n":               true,
		"a: 99999999999999999999\n":              true,
		"a: -1\n":                                true,
		"a: ...\n":                               false,
		"a: .inf\n":                              false,
		"a: .x.y\n":                              true,
		"a: .5\n":                                false,
		"a: ~\n":                                 false,
		"a:\n":                                   true,
		"a:\nb:\n":                               true,
		"a:\n- b\n- c\nd: e\n":                   true,
		"a:\n  - b\n  - c\nd: e\n":               true,
		"a:\n- b: c\n  d: e\n- f: g\n":           true,
		"a:\n- b:\n  - c\n- d\n":                 true,
		"a:\n- b:\n- c: d\n":                     true,
		"a:\n-\n":                                false,
		"a:\n- - b\n":                            false,
		"- a\n":                                  false,
		"a: b\n  c\n":                            true,
		"a: b\n\n\n  - c\n     d, [e]\n\nf: g\n": true,
		"a: b\n  c: d\n":                         false,
		"a: b:\n  c\n":                           false,
		"a: b\n  # c\nd: e\n":                    false,
		"a: b\n  c #d\n":                         false,
		"a: 'b: # \n\n  # ''c'' '\nd: e\n":       true,
		"a: ''''\n":                              true,
		"a: '''\n":                               false,
		"a: 'b'\n  c'\n":                         false,
		"a: 'b'\n  'c'\n":                        false,
		"a: 'b\nc'\n":                            false,
		"a: 1\n  2\nb: 1\n\n  2\n":               false,
		"a: 1\n  2\n":                            true,
		"a:\n- b\n  c\n- d\n":                    true,
		"a:\n- b: c\n   d\n- e: f\n  g\n":        false,
		"a: {b: c}\n  d\n":                       false,
		"a: =\nb: =~\n":                          true,
		"a: \"x\\n: #\n\n  \\  y\\\"z \n    w\"\nb: c\n": true,
		"a: \"x\\\n  y\"\nb: c\n":                        false,
		"a: \"x\\ \n  y\"\nb: c\n":                       false,
		"a: \"x\\n\" y\nb: c\n":                          false,
		"a: \"x\\n\n  y\nb: c\n":                         false,
		"a: [\"x\\n\", \"y\\\"\"]\nb: c\n":               false,
		"a: \"x\\n\" \"\nb: c\n":                         false,
		"a: b\n\n\n":                                     true,
		"a:\n  b\n":                                      false,
		"a: b # c\n":                                     false,
		"a: # c\n  b: d\n":                               false,
		"a: b#c\n":                                       true,
		"a: b: c\n":                                      false,
		"a: http://x/y?z#w\n":                            true,
		"a: b\na: c\n":                                   false,
		"a: {b: 1, b: 2}\n":                              false,
		"on: b\n":                                        false,
		"1: b\n":                                         false,
		"<<: {a: b}\n":                                   false,
		"a: &x b\n":                                      false,
		"a: *x\n":                                        false,
		"a: !!str 1\n":                                   false,
		"a: 'it''s'\n":                                   true,
		"a: 'x'\nb: \"y\"\nc: ''\nd: \"\"\n":             true,
		"a: \"x\\n\"\n":                                  true,
		"a: \"x\n  y\"\n":                                true,
		"a: 'x' y\n":                                     false,
		"a: '\n":                                         false,
		"a: [1, b, 'c', \"d\", []]\n":                    true,
		"a: [1, b,\n  c]\n":                              false,
		"a: {b: {c: d}, e: [f], g: 10Gi}\n":              true,
		"a: {b: c d}\n":                                  false,
		"a: {b}\n":                                       false,
		"a: {b:c}\n":                                     false,
		"a: {\"b\": c}\n":                                false,
		"a: {b: c} d\n":                                  false,
		"a: |\n  b\n   c\n\n  d\n\ne: f\n":               true,
		"a: |-\n  b\n\n\n":                               true,
		"a: |\n  b\t\n  \tc  \nd: e\n":                   true,
		"a: |\n\n  b\n":                                  false,
		"a: |\n\tb\n":                                    false,
		"a: |\nb: c\n":                                   false,
		"a: |\n  b\n c\n":                                false,
		"a: |\n  b\n# c\nd: e\n":                         false,
		"a: |+\n  b\n":                                   false,
		"a: >-\n  b\n":                                   false,
		"a:\n  b: c\n d: e\n":                            false,
		"  a: b\n":                                       false,
		"a:\tb\n":                                        false,
		"a: b\tc\n":                                      false,
		"a: b\r\n":                                       false,
		"a: \u2028b\n":                                   false,
		"a: ü’\n":                                        true,
		"a: \x80\n":                                      false,
		"---\na: b\n":                                    false,
		"a: b\n...\n":                                    false,
		"%YAML 1.1\n":                                    false,
		"# nothing\n":                                    false,
		"\n\n  # c\na: b   \n\n":                         true,
		strings.Repeat("a: {", 200) + "\n":               false,
	} {
		got, fast := Decode(text)
		if fast != ok {
			t.Errorf("Decode(%q) is ok: %t, want %t", text, fast, ok)
		}
		if want := fromLibrary(text); fast && !reflect.DeepEqual(any(got), want) {
			t.Errorf("Decode(%q) = %#v, want %#v", text, got, want)
		}
	}
}

// FuzzBlockYAML holds what is decoded without the library to what the library makes of it.
func FuzzBlockYAML(f *testing.F) {
	f.Add(wholeDefinition)
	for _, pattern := range []string{"../testcharts/*/templates/*.yaml", "../testcharts/*/crds/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(data))
			for _, line := range bytes.SplitAfter(data, []byte("\n")) {
				f.Add(strings.TrimLeft(string(line), " "))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := Decode(text)
		if !ok {
			return
		}
		if want := fromLibrary(text); !reflect.DeepEqual(any(got), want) {
			t.Errorf("Decode(%q) = %#v, want %#v", text, got, want)
		}
	})
}

// Random texts of what YAML is made of are decoded as the library does, or left to it.
func TestRandomBlockYAMLIsAsTheLibraryHasIt(t *testing.T) {
	parts := []string{
		"a", "b", "c: ", "d:", "key: ", "- ", "- ", "  ", "    ", "\n", "\n", "\n", "\n  ", "\n- ", "\n  - ", "'", "''", "\"", `\n`, `\`, "|", "|-", ">", "#", " #", ": ", ":",
		"1", "0", "1.5", "-1", "true", "no", "x y", "{", "}", "[", "]", ", ", "a: b", "\n\n", "\t", "~", "&", "*", "!", "%", "@", "é", "?", "=", "<<", ".inf", ".5", "0x1f", "2001-01-01",
		"12:30", "_", "$", "(", "^", "/", "---", "...", "e: f\n", "g:\n  h: i\n", "k: |\n  t\n", "l: 'm\n  n'\n", "o: p\n  q\n", "r: {s: t}\n", `"u\"v"`, "'w''x'",
	}
	random := rand.New(rand.NewPCG(1, 2))
	decoded := 0
	for range 100_000 {
		var b strings.Builder
		for range 1 + random.IntN(14) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		text := b.String() + "\n"
		got, ok := Decode(text)
		if !ok {
			continue
		}
		decoded++
		if want := fromLibrary(text); !reflect.DeepEqual(any(got), want) {
			t.Fatalf("Decode(%q) = %#v, want %#v", text, got, want)
		}
	}
	if decoded < 1000 {
		t.Errorf("only %d texts were decoded", decoded)
	}
}
