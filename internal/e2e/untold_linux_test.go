package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// nowhere are files that can be opened and not written to.
var nowhere = map[string]func(*testing.T) *os.File{
	"a full disk": func(t *testing.T) *os.File {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { full.Close() })
		return full
	},
	"a reader that went away": func(t *testing.T) *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		t.Cleanup(func() { w.Close() })
		return w
	},
}

const untoldChart = `
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {said: {{ .Values.said | quote }}}
`

// TestOutputErrorsAreNoDeploymentErrors runs every command that changes a release
// with streams that can't be written to: each does all it was asked for, records
// it, and says by its exit code that it could not say so where that has the result.
func TestOutputErrorsAreNoDeploymentErrors(t *testing.T) {
	t.Parallel()
	for name, open := range nowhere {
		for _, stream := range []string{"stdout", "stderr", "both"} {
			t.Run(name+" as "+stream, func(t *testing.T) { testUntold(newWorld(t), open, stream) })
		}
	}
}

func testUntold(w *world, open func(*testing.T) *os.File, stream string) {
	chart := w.chartOf(map[string]string{
		"templates/x.yaml": untoldChart, "values.yaml": "said: nothing\n",
		"templates/NOTES.txt": "it is there\n",
		"templates/test.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: checked\n  annotations: {helm.sh/hook: test}\n",
	})
	file := filepath.Join(w.TempDir(), "result.json")
	run := func(untold string, args ...string) {
		w.Helper()
		cmd, done := w.command(deployerBinary, args...)
		if stream != "stderr" {
			cmd.Stdout = open(w.T)
		}
		if stream != "stdout" {
			cmd.Stderr = open(w.T)
		}
		want := 0
		// Standard output has the result, if it has anything.
		if stream == "both" || stream == "stdout" && strings.Contains(untold, stream) || stream == "stderr" && !strings.Contains(untold, "stdout") {
			want = 8
		}
		r := done(cmd.Run())
		if r.code != want {
			w.Fatalf("want exit code %d:\n%s", want, r)
		}
		if want == 8 && stream == "stdout" {
			w.says(r, "stderr", "done, but writing standard output: ")
		}
	}
	said := func(want string) {
		w.Helper()
		if got, _, _ := unstructured.NestedString(w.must("configmaps", "x").Object, "data", "said"); got != want {
			w.Errorf("data.said is %v, want %s", got, want)
		}
	}
	run("stdout stderr", "install", "x", chart)
	w.statuses("x", "deployed")
	run("stdout stderr", "upgrade", "--install", "x", chart, "--set", "said=something", "--result-file", file)
	w.statuses("x", "superseded", "deployed")
	said("something")
	var result struct {
		Status string `json:"status"`
		Code   int    `json:"exit_code"`
		Output string `json:"output_error"`
	}
	if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &result) != nil {
		w.Fatalf("the result file: %v: %s", err, text)
	}
	if told := stream == "stderr"; result.Status != "deployed" || (result.Code == 0) != told || strings.Contains(result.Output, "writing standard ") == told {
		w.Errorf("the result file says %+v", result)
	}
	run("stdout", "upgrade", "x", chart, "-o", "json", "--set", "said=events")
	said("events")
	run("stdout stderr", "test", "x")
	run("stderr", "rollback", "x", "1")
	said("nothing")
	saved := filepath.Join(w.TempDir(), "plan")
	w.ok("plan", "x", chart, "--set", "said=planned", "--out", saved)
	run("stdout stderr", "apply", saved, chart, "--set", "said=planned")
	said("planned")
	run("stdout", "recover", "x")
	run("stderr", "uninstall", "x")
	if w.get("configmaps", "x") != nil || len(w.revisions("x")) > 0 {
		w.Error("the release is still there")
	}
}

// TestFailureCountsMoreThanOutput: what failed fails with its own code, whoever reads it.
func TestFailureCountsMoreThanOutput(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(untoldChart, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not-A-Name}\n")
	for name, open := range nowhere {
		cmd, done := w.command(deployerBinary, "install", "x", chart)
		cmd.Stdout, cmd.Stderr = open(t), open(t)
		if r := done(cmd.Run()); r.code != 3 {
			t.Errorf("%s: want exit code 3:\n%s", name, r)
		}
	}
}

// TestReaderGoesAwayInTheMiddle is "upgrade 2>&1 | head -n 2": what has read the
// first lines goes away when the first object is applied.
func TestReaderGoesAwayInTheMiddle(t *testing.T) {
	w := newWorld(t)
	p := w.proxied()
	chart := w.chart(untoldChart)
	w.ok("install", "x", chart)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p.fate = &fate{at: applying, when: before, do: func() { out.Close() }}
	cmd, done := w.command(deployerBinary, "upgrade", "x", chart, "--progress", "plain", "--set", "said=all")
	cmd.Stdout, cmd.Stderr = in, in
	if r := done(cmd.Run()); r.code != 8 {
		t.Errorf("want exit code 8:\n%s", r)
	}
	w.statuses("x", "superseded", "deployed")
}

// applying is the time of the first call that changes the ConfigMap.
func applying(_ int, c call) bool { return c.write() && strings.Contains(c.path, "/configmaps/x") }

// TestUnwritableReportIsNoFailure takes the directory of the reports away while the
// run is on.
func TestUnwritableReportIsNoFailure(t *testing.T) {
	w := newWorld(t)
	p := w.proxied()
	dir := filepath.Join(t.TempDir(), "reports")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.fate = &fate{at: applying, when: before, do: func() { os.Remove(dir) }}
	chart := w.chart(untoldChart)
	r := w.exits(8, "install", "x", chart, "--result-file", filepath.Join(dir, "result.json"), "-o", "json")
	w.statuses("x", "deployed")
	w.says(r, "stdout", `"event":"ended".*"status":"deployed".*"exit_code":8`)
	w.says(r, "stderr", "done, but writing .*result.json: no such file or directory")
}

// TestShowingFailsWhenNobodyCanSee: where showing is all there is to do.
func TestShowingFailsWhenNobodyCanSee(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(untoldChart)
	w.ok("install", "x", chart)
	for _, args := range [][]string{
		{"list"}, {"history", "x"}, {"status", "x"}, {"get", "manifest", "x"}, {"template", chart}, {"show", "chart", chart},
		{"plan", "x", chart}, {"upgrade", "x", chart, "--dry-run"}, {"env"}, {"version"}, {"lint", chart}, {"help"},
	} {
		cmd, done := w.command(deployerBinary, args...)
		cmd.Stdout = nowhere["a full disk"](t)
		r := done(cmd.Run())
		if r.code != 1 {
			t.Errorf("want exit code 1:\n%s", r)
		}
		w.says(r, "stderr", "writing standard output: no space left on device")
	}
}
