package chart

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// names writes manifests as "source=Kind/name", in order.
func names(t *testing.T, manifest string) string {
	t.Helper()
	got, err := Parse(manifest)
	if err != nil {
		t.Fatalf("Parse(%q): %v", manifest, err)
	}
	var out []string
	for _, m := range got {
		out = append(out, fmt.Sprintf("%s=%s/%s", m.Source, m.Object.GetKind(), m.Object.GetName()))
	}
	return strings.Join(out, " ")
}

func object(kind, name string) string {
	return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n"
}

func TestParseSplits(t *testing.T) {
	a, b := object("A", "a"), object("B", "b")
	for name, c := range map[string]struct{ manifest, want string }{
		"nothing":                     {"", ""},
		"blank":                       {"\n\n---\n\n", ""},
		"one without separator":       {a, "=A/a"},
		"two":                         {a + "---\n" + b, "=A/a =B/b"},
		"sources":                     {"---\n# Source: x/a.yaml\n" + a + "---\n# Source: x/b.yaml\n" + b, "x/a.yaml=A/a x/b.yaml=B/b"},
		"first source counts":         {"---\n# Source: x/a.yaml\n# Source: fake\n" + a, "x/a.yaml=A/a"},
		"source below other comments": {"---\n# hi\n\n# Source: x/a.yaml\n" + a, "x/a.yaml=A/a"},
		"source before a separator":   {"---\n# Source: x/a.yaml\n---\n# c\n---\n" + a + "---\n" + b, "x/a.yaml=A/a =B/b"},
		"source inside isn't one":     {"---\n" + a + "# Source: x/a.yaml\n", "=A/a"},
		"comments only":               {"---\n# Source: x/a.yaml\n# nothing here\n---\n# Source: x/b.yaml\n" + b, "x/b.yaml=B/b"},
		"null":                        {"---\nnull\n---\n" + b + "---\n~\n", "=B/b"},
		"CRLF":                        {strings.ReplaceAll("---\n# Source: x/a.yaml\n"+a+"---\n"+b, "\n", "\r\n"), "x/a.yaml=A/a =B/b"},
		"separator with comment":      {"--- # one\n" + a + "---   \n" + b, "=A/a =B/b"},
		"content behind separator":    {"--- {apiVersion: v1, kind: A, metadata: {name: a}}\n---\n" + b, "=A/a =B/b"},
		"end marks":                   {a + "...\n---\n" + b + "...\n", "=A/a =B/b"},
		"directive":                   {"%YAML 1.1\n---\n" + a, "=A/a"},
		"no newline at the end":       {"---\n" + strings.TrimSpace(a), "=A/a"},
		"dashes in a block scalar":    {a + "data:\n  pem: |\n    ---\n    -----BEGIN X-----\n    ---\n---\n" + b, "=A/a =B/b"},
		"JSON":                        {`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`, "=A/a"},
		"List": {"---\n# Source: x/l.yaml\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n- {apiVersion: v1, kind: B, metadata: {name: b}}\n",
			"x/l.yaml=A/a x/l.yaml=B/b"},
		"typed list":            {"apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n", "=ConfigMap/a =Secret/b"},
		"list in a list":        {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: a}}]}\n", "=ConfigMap/a"},
		"empty list":            {"apiVersion: v1\nkind: List\nitems: []\n", ""},
		"list without members":  {"apiVersion: v1\nkind: ConfigMapList\nitems:\n", ""},
		"a kind ending in List": {"apiVersion: x/v1\nkind: AllowList\nmetadata: {name: a}\nspec: {items: [1]}\n", "=AllowList/a"},
		"anchors": {"apiVersion: v1\nkind: A\nmetadata: {name: &n a, labels: &l {x: y}}\nspec: {labels: *l, name: *n}\n---\n" + b,
			"=A/a =B/b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := names(t, c.manifest); got != c.want {
				t.Errorf("Parse(%q)\n= %s, want\n  %s", c.manifest, got, c.want)
			}
		})
	}
}

// The reference is what Helm's client reads: YAML by way of JSON.
func TestParseReadsValuesAsHelm(t *testing.T) {
	const text = `apiVersion: v1
kind: A
metadata: {name: a}
spec:
  bools: [yes, no, on, off, true, "yes"]
  numbers: [1, -1, 0, 1.0, 1.5, 1e3, 1e21, 9223372036854775807, 18446744073709551615, 0x1F, 0o17, 017, 1_000, 123456789012345678.0, 1:30]
  nulls: [null, ~, ]
  text: ["1", 2001-12-14, 2001-12-14T21:59:43Z, 'a: b', "\u00e9", =, 10Mi, 1e, .5]
  keys: {1: a, true: b, 1.5: c, "2": d, yes: e}
  binary: !!binary aGVsbG8=
  folded: >-
    a
    b
  literal: |
    a
     ---
  base: &base {x: 1, y: {z: 2}}
  merged: {<<: *base, x: 3}
  empty: {}
  none: []
`
	var want unstructured.Unstructured
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := want.UnmarshalJSON(json); err != nil {
		t.Fatal(err)
	}
	got, err := Parse(text)
	if err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	if !reflect.DeepEqual(got[0].Object.Object, want.Object) {
		t.Errorf("got\n%#v\nwant\n%#v", got[0].Object.Object["spec"], want.Object["spec"])
	}
}

func TestParseTakesTheLastOfRepeatedKeys(t *testing.T) {
	got, err := Parse("---\n# Source: x/a.yaml\n" + object("A", "a") + "data:\n  k: one\n  k: two\n")
	if err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	if v, _, _ := unstructured.NestedString(got[0].Object.Object, "data", "k"); v != "two" {
		t.Errorf("data.k = %q, want two", v)
	}
}

func TestParseTellsAllBadDocuments(t *testing.T) {
	manifest := "---\n# Source: x/syntax.yaml\nkind: A\nmetadata:\n  name: [\n" +
		"---\n# Source: x/good.yaml\n" + object("A", "a") +
		"---\n# Source: x/noname.yaml\napiVersion: v1\nkind: A\nmetadata: {}\n" +
		"---\n# Source: x/nokind.yaml\nmetadata:\n  name: a\n" +
		"---\n# Source: x/generated.yaml\napiVersion: v1\nkind: A\nmetadata:\n  generateName: a-\n" +
		"---\n# Source: x/number.yaml\napiVersion: v1\nkind: A\nmetadata:\n  name: 12\n" +
		"---\n# Source: x/text.yaml\njust text\n" +
		"---\n# Source: x/metadata.yaml\napiVersion: v1\nkind: A\nmetadata: [a]\n" +
		"---\n# Source: x/nan.yaml\n" + object("A", "a") + "spec: .nan\n" +
		"---\n# Source: x/list.yaml\napiVersion: v1\nkind: List\nitems: [1, {kind: B, apiVersion: v1}]\n"
	_, err := Parse(manifest)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"x/syntax.yaml (line 3 of the manifest): line 3 of what it rendered: did not find expected node content",
		"x/noname.yaml (line 14 of the manifest): A has no metadata.name",
		"x/nokind.yaml (line 19 of the manifest): the object has no apiVersion, no kind",
		"x/generated.yaml (line 23 of the manifest): A has generateName only",
		"x/number.yaml (line 29 of the manifest): its metadata.name is not text",
		"x/text.yaml (line 35 of the manifest): it is not an object",
		"x/metadata.yaml (line 38 of the manifest): its metadata is not a map",
		"x/nan.yaml (line 43 of the manifest): unsupported value: NaN",
		"x/list.yaml (line 50 of the manifest): item 1 of List is not an object\nitem 2 of List: B has no metadata.name",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks\n%s\nin\n%v", want, err)
		}
	}
	var bad *DocumentError
	if !errors.As(err, &bad) || bad.Source != "x/syntax.yaml" || bad.Hint() == "" {
		t.Errorf("errors.As finds %#v", bad)
	}
	if strings.Contains(err.Error(), "good") {
		t.Errorf("the good document is in the error:\n%v", err)
	}
}

// What YAML refuses may be a password that isn't in quotes.
func TestYAMLErrorsTellNoValues(t *testing.T) {
	for value, want := range map[string]string{
		"*hunter2":         "unknown anchor (hidden) referenced: put text that begins with * in quotes",
		"&a [*a, hunter2]": "anchor (hidden) value contains itself",
		"!!int hunter2":    "cannot decode !!str (hidden) as a !!int",
		"{[hunter2]: 1}":   "invalid map key: (hidden)",
		"{{hunter2}: 1}":   "invalid map key: (hidden)",
	} {
		_, inManifest := Parse("---\n# Source: x/a.yaml\n" + object("Secret", "a") + "stringData:\n  password: " + value + "\n")
		_, inValues := Values(context.Background(), []ValuesSource{{ValuesFile, "-"}}, ValuesOptions{Stdin: strings.NewReader("password: " + value + "\n")})
		for _, err := range []error{inManifest, inValues} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: error %v, want %q", value, err, want)
			}
		}
	}
}

func TestParseHookKnowsItsTemplate(t *testing.T) {
	got, err := ParseHook(&helmrelease.Hook{Path: "x/hook.yaml", Manifest: strings.TrimSpace(object("Job", "a"))})
	if err != nil || len(got) != 1 || got[0].Source != "x/hook.yaml" || got[0].Object.GetName() != "a" {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = ParseHook(&helmrelease.Hook{Path: "x/hook.yaml", Manifest: "kind: Job\n"})
	if err == nil || !strings.HasPrefix(err.Error(), "x/hook.yaml (line 1 of the manifest): Job has no apiVersion") {
		t.Errorf("of a hook without name: %v", err)
	}
}

// thousand is a manifest of a thousand Deployments of the usual length.
func thousand() string {
	var out strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&out, `---
# Source: big/templates/d%d.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: d%d
  labels: {app.kubernetes.io/name: big, app.kubernetes.io/instance: big, helm.sh/chart: big-1.0.0}
spec:
  replicas: 3
  selector:
    matchLabels:
      app: d%d
  template:
    metadata:
      labels:
        app: d%d
    spec:
      containers:
        - name: main
          image: registry.k8s.io/pause:3.10
          ports:
            - containerPort: 8080
              name: http
          env:
            - name: A
              value: "1"
            - name: B
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
          resources:
            limits:
              cpu: 100m
              memory: 64Mi
`, i, i, i, i)
	}
	return out.String()
}

func TestParseAThousandObjects(t *testing.T) {
	got, err := Parse(thousand())
	if err != nil || len(got) != 1000 || got[999].Source != "big/templates/d999.yaml" {
		t.Fatalf("got %d objects, %v", len(got), err)
	}
}

func BenchmarkParse(b *testing.B) {
	manifest := thousand()
	for b.Loop() {
		if _, err := Parse(manifest); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzParse: whatever a chart renders is read or refused, and what was read and
// is written again reads as the same.
func FuzzParse(f *testing.F) {
	a, b := object("A", "a"), object("B", "b")
	for _, seed := range []string{
		"", "---", a, a + "---\n" + b, "--- # x\n# Source: t.yaml\n" + a + "...\n", "\xef\xbb\xbf" + a, strings.ReplaceAll(a, "\n", "\r\n"),
		"apiVersion: v1\nkind: List\nitems: [{kind: A}, null, 1]\n", "a: &x {b: *x}\n", "? [1]\n: 2\n", "1e400: .nan\n", a + "data: {1: 0x10, true: ~, k: 012, l: 1_0}\n",
		"- a\n- b\n", "text", a + "x: |\n  ---\n  y\n---\t\n" + b, "%YAML 1.1\n---\n" + a, "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Parse(text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, m := range first {
			data, err := yaml.Marshal(m.Object.Object)
			if err != nil {
				t.Fatalf("Parse(%q) gives what can't be written: %v", text, err)
			}
			again.WriteString("---\n" + string(data))
		}
		second, err := Parse(again.String())
		if err != nil || len(second) != len(first) {
			t.Fatalf("Parse(%q) gives %d objects, again %d: %v\n%s", text, len(first), len(second), err, again.String())
		}
		for i := range first {
			if !reflect.DeepEqual(first[i].Object, second[i].Object) {
				t.Fatalf("Parse(%q) gives\n%v\nagain\n%v", text, first[i].Object, second[i].Object)
			}
		}
	})
}
