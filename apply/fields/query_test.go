package fields

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// How people write paths, and which of an object's they mean.
func TestQuery(t *testing.T) {
	obj := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"example.com/a": "x"}, "finalizers": []any{"f.io/x"}},
		"spec": map[string]any{
			"replicas":   int64(2),
			"containers": []any{map[string]any{"name": "app", "image": "nginx", "args": []any{"a", "b"}}, map[string]any{"name": "side"}},
			"ports":      []any{map[string]any{"port": int64(80), "protocol": "TCP"}},
		},
	}
	key := fieldpath.KeyByFields
	paths := []fieldpath.Path{
		fieldpath.MakePathOrDie("metadata", "labels", "example.com/a"),
		fieldpath.MakePathOrDie("metadata", "finalizers", value.NewValueInterface("f.io/x")),
		fieldpath.MakePathOrDie("spec", "replicas"),
		fieldpath.MakePathOrDie("spec", "containers", key("name", "app"), "image"),
		fieldpath.MakePathOrDie("spec", "containers", key("name", "app"), "args"),
		fieldpath.MakePathOrDie("spec", "containers", key("name", "side"), "name"),
		fieldpath.MakePathOrDie("spec", "ports", key("port", 80, "protocol", "TCP"), "port"),
	}
	for text, want := range map[string][]int{
		"":                                         {0, 1, 2, 3, 4, 5, 6},
		".":                                        {0, 1, 2, 3, 4, 5, 6},
		`.metadata.labels."example.com/a"`:         {0},
		`metadata.labels["example.com/a"]`:         {0},
		`metadata.labels['example.com/a']`:         {0},
		`metadata.labels.example\.com/a`:           {0},
		`.metadata.finalizers[="f.io/x"]`:          {1},
		`.metadata.finalizers[0]`:                  {1},
		"spec.replicas":                            {2},
		".spec.containers":                         {3, 4, 5},
		".spec.containers[name=app]":               {3, 4},
		`.spec.containers[name="app"].image`:       {3},
		".spec.containers[0].image":                {3},
		".spec.containers[1]":                      {5},
		".spec.containers[0].args[1]":              {4},
		`.spec.containers[0].args[="b"]`:           {4},
		".spec.containers[0].args[2]":              nil,
		".spec.ports[port=80]":                     {6},
		`.spec.ports[port=80,protocol="TCP"].port`: {6},
		".spec.ports[port=80,protocol=UDP]":        nil,
		".spec.ports[port=8]":                      nil,
		".spec.replicas.more":                      nil,
		".spec.replica":                            nil,
		".spec.containers.app":                     nil,
		`.spec.containers[name="none"].image`:      nil,
		".metadata.labels[name=x]":                 nil,
		".metadata.labels[0]":                      nil,
	} {
		q, err := ParseQuery(text)
		if err != nil {
			t.Errorf("ParseQuery(%q): %v", text, err)
			continue
		}
		var got []int
		for i, p := range paths {
			if q.MatchedElements(obj, p) == len(q) {
				got = append(got, i)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q is %v, want %v", text, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q is %v, want %v", text, got, want)
			}
		}
	}
	for _, text := range []string{"a..b", "a[", "a]", "a[]", `a["b]`, "a[x=1,y]", `a."b`, "a[0"} {
		if q, err := ParseQuery(text); err == nil {
			t.Errorf("ParseQuery(%q) = %v, want an error", text, q)
		}
	}
}

// Each path is found by the way in which it is shown, but for names with quotes,
// which no labels, annotations or data have.
func FuzzQuery(f *testing.F) {
	f.Add("app", "a.b/c", "x\"y", int64(3))
	f.Add("", "[0]", "'", int64(-1))
	f.Fuzz(func(t *testing.T, a, b, c string, n int64) {
		if a == "" || b == "" || strings.ContainsAny(a+b, "\"\\") || !utf8.ValidString(a+b+c) {
			return
		}
		path := fieldpath.MakePathOrDie(a, b, fieldpath.KeyByFields("name", c, "port", n), "z")
		q, err := ParseQuery(String(path))
		if err != nil {
			t.Fatal(err)
		}
		if got := q.MatchedElements(nil, path); got != len(q) {
			t.Errorf("ParseQuery(%q) = %v leads %d steps", String(path), q, got)
		}
	})
}
