package chart

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const printValues = "kind: Values\nvalues: {{ toJson .Values }}\n"

func TestValuesPrecedenceIsHelms(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	a := file("a.yaml", "who: a\nmap: {a: 1, b: {c: 2, d: [1, 2]}}\nlist: [1, 2, 3]\nyes: on\nfloat: 1.0\nbig: 12345678901234567890\n")
	b := file("b.yaml", "who: b\nmap: {b: {c: 3, e: null}}\nlist: [9]\n")
	raw := file("raw.txt", "from file\nand more\n")
	chart := chartDir(t, map[string]string{"templates/v.yaml": printValues,
		"values.yaml": "who: chart\nmap: {z: 26, b: {c: 0}}\nnone: {of: this}\n"})
	for name, sources := range map[string][]ValuesSource{
		"files in order":            {{ValuesFile, a}, {ValuesFile, b}},
		"files the other way round": {{ValuesFile, b}, {ValuesFile, a}},
		"files by comma":            {{ValuesFile, a + "," + b}},
		"file over earlier set":     {{Set, "who=set"}, {ValuesFile, a}},
		"all kinds, last first": {{SetLiteral, "who=literal,not=split"}, {SetFile, "who=" + raw}, {SetString, "who=string"},
			{Set, "who=set"}, {SetJSON, `who="json"`}, {ValuesFile, a}},
		"json over file":    {{SetJSON, `map={"only":true}`}, {ValuesFile, a}},
		"set over json":     {{Set, "map.a=5"}, {SetJSON, `map={"a":1,"x":[1.5,"y"]}`}},
		"string over set":   {{SetString, "n=1"}, {Set, "n=2,m=3"}},
		"file over string":  {{SetFile, "n=" + raw}, {SetString, "n=1"}},
		"set types":         {{Set, "a=true,b=null,c=0,d=012,e=1.5,f=12,g=,h={1,x,true}"}},
		"set paths":         {{Set, `a.b.c=1,l[2]=x,l[0].k=v,dotted\.key=2,comma=a\,b,m[1][1]=z`}},
		"deletion":          {{Set, "none=null,map.b=null"}},
		"deletion by file":  {{ValuesFile, file("null.yaml", "none: null\nmap: null\n")}},
		"literal":           {{SetLiteral, `a.b={x,y}\,=`}},
		"string list":       {{SetString, "a={1,true,}"}},
		"json several":      {{SetJSON, `a=[1,2],b={"c":null},d=,e.f="g"`}},
		"empty file":        {{ValuesFile, file("empty.yaml", "# nothing\n")}},
		"set over file map": {{ValuesFile, a}, {Set, "map.b.c=7"}, {Set, "list[1]=x"}},
		"nothing":           {{Set, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			run{chart: chart, sources: sources}.compare(t, nil)
		})
	}
}

func TestValuesOfHelm4JSONObject(t *testing.T) {
	got, err := Values(context.Background(), []ValuesSource{{SetJSON, `{"a":{"b":1}}`}, {SetJSON, `a.c=2`}}, ValuesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := yaml.Marshal(got); string(text) != "a:\n  b: 1\n  c: 2\n" {
		t.Errorf("got\n%s", text)
	}
}

func TestValuesByStdinAndURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/values.yaml" {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte("a: url\nb: url\n"))
	}))
	defer server.Close()
	ctx := context.Background()
	got, err := Values(ctx, []ValuesSource{{ValuesFile, server.URL + "/values.yaml"}, {ValuesFile, "-"}}, ValuesOptions{Stdin: strings.NewReader("b: stdin\n")})
	if err != nil || got["a"] != "url" || got["b"] != "stdin" {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = Values(ctx, []ValuesSource{{ValuesFile, server.URL + "/none.yaml"}}, ValuesOptions{})
	if err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), "/none.yaml") {
		t.Errorf("of a missing URL: %v", err)
	}
	_, err = Values(ctx, []ValuesSource{{ValuesFile, "-"}, {SetFile, "a=-"}}, ValuesOptions{Stdin: strings.NewReader("b: 1\n")})
	if err == nil || !strings.Contains(err.Error(), "standard input") {
		t.Errorf("of standard input twice: %v", err)
	}
}

// A pipe that never ends took all memory of the machine.
func TestValuesOfEndlessInput(t *testing.T) {
	for _, source := range []ValuesSource{{ValuesFile, "-"}, {ValuesFile, "/dev/zero"}, {SetFile, "a=/dev/zero"}} {
		if source.Value != "-" {
			if _, err := os.Stat("/dev/zero"); err != nil {
				continue
			}
		}
		_, err := Values(t.Context(), []ValuesSource{source}, ValuesOptions{Stdin: endless{}})
		if err == nil || !strings.Contains(err.Error(), "it has more than 64 MiB") {
			t.Errorf("%s %s: %v", source.Kind, source.Value, err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestValuesEndsWithItsContext(t *testing.T) {
	url, ctx := silentServer(t)
	if _, err := Values(ctx, []ValuesSource{{ValuesFile, url}}, ValuesOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	endless, in := io.Pipe()
	t.Cleanup(func() { in.Close() })
	go func() {
		_, _ = in.Write([]byte("a: 1\n")) // returns when it is being read
		cancel()
	}()
	if _, err := Values(ctx, []ValuesSource{{ValuesFile, "-"}}, ValuesOptions{Stdin: endless}); !errors.Is(err, context.Canceled) {
		t.Errorf("Values of a standard input without end: %v, want %v", err, context.Canceled)
	}
}

func TestValuesTellsAllProblemsAndNoSecrets(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "bad.yaml"), "a: 1\nb: [\n")
	write(t, filepath.Join(dir, "list.yaml"), "- a\n")
	_, err := Values(context.Background(), []ValuesSource{
		{ValuesFile, filepath.Join(dir, "none.yaml")},
		{ValuesFile, filepath.Join(dir, "bad.yaml")},
		{ValuesFile, filepath.Join(dir, "list.yaml")},
		{Set, "db.password=hunter2,swordfish"},
		{Set, "hunter2"},
		{Set, "a[hunter2]=swordfish"},
		{SetString, "db.token={hunter2"},
		{SetJSON, `db.key={"swordfish"`},
		{SetJSON, `db.other=swordfish`},
		{SetFile, "db.cert=" + filepath.Join(dir, "none.pem")},
		{Set, "s=swordfish"},
		{Set, "s.t=hunter2"},
	}, ValuesOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	got := err.Error()
	for _, want := range []string{"none.yaml: no such file", "bad.yaml: line 2: ", "list.yaml: the file has no keys", "failed parsing --set data: db.password: part 2",
		"--set-string data: db.token: list must terminate", "--set-json data: db.key", "--set-json data: db.other", "--set-file data: db.cert: file ", "none.pem", "--set data: s.t: "} {
		if !strings.Contains(got, want) {
			t.Errorf("the error lacks %q:\n%s", want, got)
		}
	}
	for _, secret := range []string{"swordfish", "=hunter2", "{hunter2"} {
		if strings.Contains(got, secret) {
			t.Errorf("the error tells %q:\n%s", secret, got)
		}
	}
}

// TestAllValuesWithoutAChart: other tools may have written a record that has no chart. Its values can be shown.
func TestAllValuesWithoutAChart(t *testing.T) {
	got, err := AllValues(nil, map[string]any{"a": 1})
	if want := map[string]any{"a": 1}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("AllValues = %v, %v, want %v", got, err, want)
	}
}
