package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTemplateIsHelmsWithSwitchesTurned turns switches in the values of the
// real charts, one at a time: what one of them refuses, the other must refuse,
// and what they render must be the same. It takes every eleventh switch;
// DEPLOYER_TEST_ALL=1 takes all.
func TestTemplateIsHelmsWithSwitchesTurned(t *testing.T) {
	step := 11
	if os.Getenv("DEPLOYER_TEST_ALL") != "" {
		step = 1
	}
	for _, path := range sharedCharts(t) {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			c, err := Load(t.Context(), path, LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			turned := switches("", c.Helm.Values)
			slices.Sort(turned)
			for i := 0; i < len(turned); i += step {
				r := run{chart: path, sources: append([]ValuesSource{{Set, turned[i]}}, fixed[name]...)}
				if _, err := r.helm(t); err == nil {
					r.compare(t, random[name])
				} else if _, _, err := r.ours(t); err == nil {
					t.Errorf("helm refuses %s with %s, we don't", name, turned[i])
				}
			}
		})
	}
}

// switches are the booleans in values, each as a --set that turns it.
func switches(prefix string, values map[string]any) []string {
	var out []string
	for key, value := range values {
		switch v := value.(type) {
		case bool:
			out = append(out, fmt.Sprintf("%s%s=%t", prefix, key, !v))
		case map[string]any:
			out = append(out, switches(prefix+key+".", v)...)
		}
	}
	return out
}
