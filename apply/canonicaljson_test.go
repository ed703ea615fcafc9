package apply

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

func canonical(t *testing.T, object map[string]any) string {
	t.Helper()
	var got strings.Builder
	w := canonicalWriter{to: &got}
	if err := w.writeObject(object); err != nil {
		t.Fatal(err)
	}
	return got.String()
}

// Fingerprints in records were made from what json.Marshal writes.
func TestCanonicalJSONIsThatOfMarshal(t *testing.T) {
	long := map[string]any{}
	for _, key := range strings.Fields(strings.Repeat("a b c ", 10)) {
		long[strings.Repeat(key, len(long)+1)] = []any{strings.Repeat("x\n", canonicalPiece), map[string]any{"deep": long[key]}}
	}
	for _, object := range []map[string]any{
		{}, nil, long,
		{"b": int64(-1), "a": true, "c": 1.5, "d": nil, "B": math.MaxInt64, "": ""},
		{"list": []any{}, "none": []any(nil), "map": map[string]any{}, "noMap": map[string]any(nil)},
		{"float": []any{1e21, 1e-7, 0.1, float64(3), math.Copysign(0, -1), 100000000000000000000.0}, "number": json.Number("1.50")},
		{"text": []any{"\"q\"\\", "\n\r\t\b\f\x00\x7f", "<b>&amp;", "é\u2028\u2029", "\xff\xfe", "~ "}, "ключ": "é", "<": ">", "\xff": "", "a\n": ""},
	} {
		want, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if got := canonical(t, object); got != string(want) {
			t.Errorf("%.200q\nis written as %.200s\nwant          %.200s", object, got, want)
		}
	}
}

func FuzzCanonicalJSON(f *testing.F) {
	f.Add(`{"a":[1,"b",{"c":null}],"é":"<\u2028>"}`, "\xff\t")
	f.Fuzz(func(t *testing.T, text, more string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil || object == nil {
			return
		}
		object[more] = []any{more, int64(len(more))}
		want, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if got := canonical(t, object); got != string(want) {
			t.Errorf("%q is written as %s, want %s", object, got, want)
		}
	})
}

// What JSON can't express has no fingerprint.
func TestCanonicalJSONRefusesWhatMarshalDoes(t *testing.T) {
	for _, v := range []any{math.NaN(), math.Inf(1), func() {}} {
		for _, object := range []map[string]any{{"a": v}, {"a": []any{map[string]any{"b": v}}}} {
			var got strings.Builder
			w := canonicalWriter{to: &got}
			if err := w.writeObject(object); err == nil {
				t.Errorf("%v is written as %s, want an error", reflect.TypeOf(v), got.String())
			}
		}
	}
}
