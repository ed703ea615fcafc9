package definition

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// crdOf makes a definition of versions, given as YAML.
func crdOf(t *testing.T, versions string) *unstructured.Unstructured {
	t.Helper()
	crd := &unstructured.Unstructured{}
	text := "kind: CustomResourceDefinition\nspec:\n  group: example.com\n  names: {kind: Foo}\n  versions: " + versions
	if err := yaml.Unmarshal([]byte(text), &crd.Object); err != nil {
		t.Fatal(err)
	}
	return crd
}

// What objects may have and could not have by the next definition is found, and
// nothing else.
func TestLossesOf(t *testing.T) {
	one := func(schema string) string {
		return "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: " + schema + "}}]"
	}
	spec := func(schema string) string {
		return one("{type: object, properties: {spec: " + schema + "}}")
	}
	for _, tt := range []struct{ name, live, next, want string }{
		{"the same", spec("{type: object, properties: {a: {type: string}}}"), spec("{type: object, properties: {a: {type: string}}}"), "[]"},
		{"a field more", spec("{type: object}"), spec("{type: object, properties: {a: {type: string}}}"), "[]"},
		{"a field less", spec("{type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: string}}}}}"),
			spec("{type: object, properties: {b: {type: object}}}"), "[v1 spec.a v1 spec.b.c]"},
		{"in lists and maps", spec("{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string}}}}, m: {type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}}}"),
			spec("{type: object, properties: {l: {type: array, items: {type: object}}, m: {type: object, additionalProperties: {type: object}}}}"), "[v1 spec.l[].a v1 spec.m[*].b]"},
		{"fields that become a map's", spec("{type: object, properties: {a: {type: string}, b: {type: integer}}}"),
			spec("{type: object, additionalProperties: {type: string}}"), "[v1 spec.b (type integer -> string)]"},
		{"a map that becomes fields", spec("{type: object, additionalProperties: {type: string}}"),
			spec("{type: object, properties: {a: {type: string}}}"), "[v1 spec[*]]"},
		{"what is not named stays", spec("{type: object, properties: {a: {type: string}}}"), spec("{type: object, x-kubernetes-preserve-unknown-fields: true}"), "[]"},
		{"what is not named goes", spec("{type: object, x-kubernetes-preserve-unknown-fields: true}"), spec("{type: object, properties: {a: {type: string}}}"), "[v1 spec.*]"},
		{"wider types", spec("{type: object, properties: {a: {type: integer}, b: {type: integer}, c: {type: string}, d: {type: string}}}"),
			spec("{type: object, properties: {a: {type: number}, b: {x-kubernetes-int-or-string: true}, c: {x-kubernetes-int-or-string: true}, d: {x-kubernetes-preserve-unknown-fields: true}}}"), "[]"},
		{"narrower types", spec("{type: object, properties: {a: {type: number}, b: {x-kubernetes-int-or-string: true}, c: {type: string}}}"),
			spec("{type: object, properties: {a: {type: integer}, b: {type: integer}, c: {type: boolean}}}"),
			"[v1 spec.a (type integer or number -> integer) v1 spec.b (type integer or string -> integer) v1 spec.c (type string -> boolean)]"},
		{"values", spec("{type: string, enum: [a, b]}"), spec("{type: string, enum: [b, c]}"), `[v1 spec (value "a")]`},
		{"null", spec("{type: string, nullable: true}"), spec("{type: string}"), "[v1 spec (nullable)]"},
		{"rules about values take nothing away", spec("{type: string}"), spec("{type: string, pattern: x, maxLength: 1}"), "[]"},
		{"what all objects have", one("{type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}}}"), one("{type: object}"), "[]"},
		{"a version", "[{name: v1, served: true}, {name: v2, served: true}, {name: v3, served: false}]", "[{name: v1, served: false}]", "[v1 (no longer served) v2 (no longer served)]"},
		{"subresources", "[{name: v1, served: true, subresources: {status: {}, scale: {}}}]", "[{name: v1, served: true}]", "[v1 (subresource status) v1 (subresource scale)]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			live, next := crdOf(t, tt.live), crdOf(t, tt.next)
			if got := fmt.Sprint([]Loss(LossesOf(live, next))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if same := digest(live) == digest(next); same != (tt.live == tt.next) && len(tt.want) > 2 {
				t.Errorf("the digests are the same: %v", same)
			}
		})
	}
}

// Of a whole version that a release has brought it may take each field away, and
// of a field it has given one more value only that value.
func TestPlaceCovers(t *testing.T) {
	field := Loss{version: "v1", path: "spec.a"}
	for _, tt := range []struct {
		brought, lost Loss
		want          bool
	}{
		{field, field, true},
		{field, Loss{version: "v1", path: "spec.a.b"}, true},
		{field, Loss{version: "v1", path: "spec.a[].b"}, true},
		{field, Loss{version: "v1", path: "spec.a", text: `value "x"`}, true},
		{field, Loss{version: "v1", path: "spec.ab"}, false},
		{field, Loss{version: "v1", path: "spec"}, false},
		{field, Loss{version: "v2", path: "spec.a"}, false},
		{Loss{version: "v1", path: "spec.a", text: `value "x"`}, field, false},
		{Loss{version: "v1", path: "spec.a", text: `value "x"`}, Loss{version: "v1", path: "spec.a", text: `value "x"`}, true},
		{Loss{version: "v2", text: notServedAnyMore}, Loss{version: "v2", path: "spec.a"}, true},
		{Loss{version: "v2", text: notServedAnyMore}, Loss{version: "v2", text: notServedAnyMore}, true},
		{Loss{version: "v2", text: notServedAnyMore}, Loss{version: "v2beta1", path: "spec"}, false},
		{Loss{version: "v1", text: "subresource status"}, field, false},
	} {
		if got := placeCovers(tt.brought.place(), tt.lost.place()); got != tt.want {
			t.Errorf("%q covers %q: %v, want %v", tt.brought.place(), tt.lost.place(), got, tt.want)
		}
	}
}
