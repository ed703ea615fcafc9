package chart

import (
	"testing"
	"time"
)

func TestGeneratedName(t *testing.T) {
	at := time.Unix(1763718000, 0)
	for ref, want := range map[string]string{
		"./charts/web":         "web-1763718000",
		"my/web":               "web-1763718000",
		"web-1.2.0.tgz":        "web-1-1763718000",
		".":                    "chart-1763718000",
		"..":                   "chart-1763718000",
		"oci://host/a/web:1.0": "web:1-1763718000", // Helm's too, and refused as a name
	} {
		if got := GenerateReleaseName(ref, at); got != want {
			t.Errorf("GeneratedName(%q) = %s, want %s", ref, got, want)
		}
	}
}

func TestNameFromTemplate(t *testing.T) {
	if got, err := ReleaseNameFromTemplate(`web-{{ "ABC" | lower }}`); err != nil || got != "web-abc" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"{{", "{{ nosuch }}", `{{ fail "x" }}`} {
		if got, err := ReleaseNameFromTemplate(bad); err == nil {
			t.Errorf("%s gives %q", bad, got)
		}
	}
}

func TestAllValues(t *testing.T) {
	c := load(t, map[string]string{"values.yaml": "a: 1\nb: {c: 2, d: 3}\n"})
	got, err := AllValues(c.Helm, map[string]any{"b": map[string]any{"c": 5, "d": nil}})
	if err != nil || jsonOf(t, got) != `[{"a":1,"b":{"c":5}}]` {
		t.Errorf("got %s, %v", jsonOf(t, got), err)
	}
}
