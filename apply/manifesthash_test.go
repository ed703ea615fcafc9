package apply

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/provenance"
)

func manifestHash(object map[string]any) string {
	r := resolver{p: &planning{a: &Applier{requester: &requester{opts: Options{}.withDefaults()}, owner: provenance.Owner{Release: "web", Namespace: "prod"}}}}
	return r.hash(&target{obj: &unstructured.Unstructured{Object: object}})
}

// The hashes are part of the fingerprints in records: if one changes, hashFormat has to.
func TestManifestHashesOfRecordsHold(t *testing.T) {
	long := map[string]any{}
	for _, key := range strings.Fields(strings.Repeat("a b c ", 10)) {
		long[strings.Repeat(key, len(long)+1)] = []any{strings.Repeat("x\n", 16<<10), map[string]any{"deep": long[key]}}
	}
	for _, c := range []struct {
		name   string
		object map[string]any
		want   string
	}{
		{"empty", map[string]any{}, "jQ6Ti+i1y1WmtBzD"},
		{"nil", nil, "drxD14IuzBfRLJrV"},
		{"long", long, "IryzjpcAZwxWdKEe"},
		{"scalars", map[string]any{"b": int64(-1), "a": true, "c": 1.5, "d": nil, "B": math.MaxInt64, "": ""}, "iWynIK3dSvU4BtNn"},
		{"empty lists and maps", map[string]any{"list": []any{}, "none": []any(nil), "map": map[string]any{}, "noMap": map[string]any(nil)}, "8UTO5Pd10QlPzOBu"},
		{"numbers", map[string]any{"float": []any{1e21, 1e-7, 0.1, float64(3), math.Copysign(0, -1), 100000000000000000000.0}, "number": json.Number("1.50")}, "d15N01iUFiqDpkRa"},
		{"texts", map[string]any{"text": []any{"\"q\"\\", "\n\r\t\b\f\x00\x7f", "<b>&amp;", "é\u2028\u2029", "\xff\xfe", "~ "}, "ключ": "é", "<": ">", "\xff": "", "a\n": ""}, "BlbbxAFn/CudtIWk"},
		{"mixed", map[string]any{"a": []any{int64(1), "b", map[string]any{"c": nil}}, "é": "<\u2028>", "\xff\t": []any{"\xff\t", int64(2)}}, "5pBn3z/1bi+W6p15"},
	} {
		if got := manifestHash(c.object); got != c.want {
			t.Errorf("object %q has the hash %q, want %q", c.name, got, c.want)
		}
	}
}

// What JSON can't express has no fingerprint.
func TestNoManifestHash(t *testing.T) {
	for _, v := range []any{math.NaN(), math.Inf(1), func() {}} {
		for _, object := range []map[string]any{{"a": v}, {"a": []any{map[string]any{"b": v}}}} {
			if got := manifestHash(object); got != "" {
				t.Errorf("%v has the hash %q, want none", reflect.TypeOf(v), got)
			}
		}
	}
}
