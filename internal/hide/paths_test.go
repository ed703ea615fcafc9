package hide

import "testing"

// TestPathsNameNoConfidentialItems: a path names items of lists by their keys and values, which may be
// confidential, and stays as it is otherwise.
func TestPathsNameNoConfidentialItems(t *testing.T) {
	var texts Texts
	texts.AddValues(map[string]any{"password": `hunter2"]x`, "token": "sidecar-1"})
	texts.AddObject(custom("apps/v1", "Deployment", `{"spec":{"containers":[{"name":"sidecar-1"}]}}`))
	for path, want := range map[string]string{
		`spec.replicas`:                             `spec.replicas`,
		`spec."x.y[z"[host="a",port=80].b`:          `spec."x.y[z"[host="a",port=80].b`,
		`spec.x[=true]`:                             `spec.x[=true]`,
		`spec.other[="hunter2\"]x"]`:                `spec.other[=(hidden)]`,
		`spec.other[id="see hunter2\"]x"].v`:        `spec.other[id="see (hidden)"].v`,
		`spec.containers[name="sidecar-1"].image`:   `spec.containers[name="sidecar-1"].image`,
		`spec.containers[name="app"].env[name="A"]`: `spec.containers[name="app"].env[name="A"]`,
	} {
		if got := texts.HidePath(path); got != want {
			t.Errorf("HidePath(%s) = %s, want %s", path, got, want)
		}
	}
}
