package hide

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPathsNameNoConfidentialItems: a path names items of lists by their keys and values, which may be
// confidential, and stays as it is otherwise.
func TestPathsNameNoConfidentialItems(t *testing.T) {
	fields := ConfidentialFields(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Account",
		"metadata": map[string]any{"annotations": map[string]any{"deployer.io/sensitive-paths": "spec.tokens[*],spec.users[*].pin,spec.people"}},
	}})
	var texts Texts
	texts.AddValues(map[string]any{"password": `hunter2"]x`, "token": "sidecar"})
	for path, want := range map[string]string{
		`spec.replicas`:                             `spec.replicas`,
		`spec.tokens[="ab"]`:                        `spec.tokens[=(hidden)]`,
		`spec.tokens[=12].x`:                        `spec.tokens[=(hidden)].x`,
		`spec.tokens[3]`:                            `spec.tokens[3]`,
		`spec.users[name="me",pin="1]\",x"].n`:      `spec.users[name="me",pin=(hidden)].n`,
		`spec.people[name="me"].n`:                  `spec.people[name=(hidden)].n`,
		`spec."x.y[z"[host="a",port=80].b`:          `spec."x.y[z"[host="a",port=80].b`,
		`spec.x[=true]`:                             `spec.x[=true]`,
		`spec.other[="hunter2\"]x"]`:                `spec.other[=(hidden)]`,
		`spec.other[id="see hunter2\"]x"].v`:        `spec.other[id=(hidden)].v`,
		`spec.containers[name="sidecar"].image`:     `spec.containers[name="sidecar"].image`,
		`spec.containers[name="app"].env[name="A"]`: `spec.containers[name="app"].env[name="A"]`,
	} {
		if got := fields.HidePath(path, &texts); got != want {
			t.Errorf("HidePath(%s) = %s, want %s", path, got, want)
		}
	}
	if got := (Fields{}).HidePath(`a[="x"]`, nil); got != `a[="x"]` {
		t.Errorf("without anything confidential: %s", got)
	}
}

// FuzzHidePath holds that what isn't confidential stays as it is, whatever its form.
func FuzzHidePath(f *testing.F) {
	f.Add(`spec.x[name="a",port=80]."b.c"[="d"][0]`)
	f.Add(`a[`)
	f.Add(`"a`)
	f.Add(`a[b="`)
	f.Add(`a[="0"=`)
	f.Add(`[="a"="b"],c=`)
	f.Fuzz(func(t *testing.T, path string) {
		if got := (Fields{}).HidePath(path, &Texts{}); got != path {
			t.Errorf("HidePath(%q) = %q", path, got)
		}
	})
}
