package chart

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"deployer/internal/helmtest"
)

// A run is one `helm template`, and the same by this package.
type run struct {
	chart     string // path
	sources   []ValuesSource
	upgrade   bool
	crds      bool
	skipTests bool
	noHooks   bool
	showOnly  []string
	kube      string
	apis      []string
	outputDir string
	byRelease bool
	post      []string
}

func (r run) args() []string {
	args := []string{"template", "shop", r.chart, "--namespace", "store"}
	for _, s := range r.sources {
		args = append(args, string(s.Kind), s.Value)
	}
	for flag, on := range map[string]bool{
		"--is-upgrade": r.upgrade, "--include-crds": r.crds, "--skip-tests": r.skipTests, "--no-hooks": r.noHooks,
		"--release-name": r.byRelease,
	} {
		if on {
			args = append(args, flag)
		}
	}
	for _, s := range r.showOnly {
		args = append(args, "--show-only", s)
	}
	for _, a := range r.apis {
		args = append(args, "--api-versions", a)
	}
	if r.kube != "" {
		args = append(args, "--kube-version", r.kube)
	}
	if r.outputDir != "" {
		args = append(args, "--output-dir", r.outputDir)
	}
	if len(r.post) > 0 {
		args = append(args, "--post-renderer", r.post[0])
		for _, a := range r.post[1:] {
			args = append(args, "--post-renderer-args", a)
		}
	}
	return args
}

// helm gives what the real binary prints.
func (r run) helm(t *testing.T) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(helmtest.Helm3(t), r.args()...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG="+filepath.Join(home, "none"))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		t.Logf("helm %s: %v\n%s", strings.Join(r.args(), " "), err, stderr.String())
	}
	return stdout.String(), err
}

// ours gives what this package makes of it.
func (r run) ours(t *testing.T) (*TemplateOutput, *Rendered, error) {
	t.Helper()
	ctx := context.Background()
	c, err := Load(ctx, r.chart, LoadOptions{})
	if err != nil {
		return nil, nil, err
	}
	values, err := Values(ctx, r.sources, ValuesOptions{})
	if err != nil {
		return nil, nil, err
	}
	server, err := OfflineServerInfo(r.kube, r.apis...)
	if err != nil {
		return nil, nil, err
	}
	rendered, err := c.Render(ctx, Input{Release: "shop", Namespace: "store", Upgrade: r.upgrade,
		Values: values, Server: server, IncludeCRDs: r.crds, PostRenderer: r.post})
	if err != nil {
		return nil, rendered, err
	}
	opts := TemplateOptions{NoHooks: r.noHooks, SkipTests: r.skipTests, ShowOnly: r.showOnly, OutputDir: r.outputDir}
	if r.byRelease {
		opts.Release = "shop"
	}
	out, err := FormatTemplateOutput(rendered, opts)
	return out, rendered, err
}

// compare runs both and wants the same bytes, but for what normalise evens out.
func (r run) compare(t *testing.T, normalise func(string) string) *Rendered {
	t.Helper()
	want, err := r.helm(t)
	if err != nil {
		t.Fatalf("helm can't render %s", r.chart)
	}
	got, rendered, err := r.ours(t)
	if err != nil {
		t.Fatalf("rendering %s: %v", r.chart, err)
	}
	if normalise != nil {
		want, got.Stdout = normalise(want), normalise(got.Stdout)
	}
	if len(want) < 20 {
		t.Fatalf("helm printed next to nothing for %s: %q", r.chart, want)
	}
	if want != got.Stdout {
		t.Errorf("helm %s\ndiffers (- helm, + ours):\n%s", strings.Join(r.args(), " "), firstDifference(want, got.Stdout))
	}
	return rendered
}

// firstDifference shows where two texts part.
func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	from := max(i-5, 0)
	return strings.Join(w[from:i], "\n") + "\n- " + strings.Join(w[i:min(i+5, len(w))], "\n- ") +
		"\n+ " + strings.Join(g[i:min(i+5, len(g))], "\n+ ")
}

// sharedCharts lists real charts kept beside the repository; the test is
// skipped where they are absent.
func sharedCharts(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("DEPLOYER_TEST_CHARTS")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "charts")
	}
	charts := chartsIn(t, dir)
	if len(charts) == 0 {
		t.Skipf("there are no charts in %s; set DEPLOYER_TEST_CHARTS to a directory that has some", dir)
	}
	return charts
}

func chartsIn(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range found {
		if found[i], err = filepath.Abs(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// fixed are the values with which a chart renders the same each time.
var fixed = map[string][]ValuesSource{
	"redis":     {{Set, "auth.password=secret"}},
	"sonarqube": {{Set, "postgresql.postgresqlPassword=secret,mysql.mysqlRootPassword=secret"}},
}

// random evens out what a chart draws by lot whatever its values.
var random = map[string]func(string) string{
	"podinfo": func(text string) string {
		return regexp.MustCompile(`-test-[a-z0-9]{5}\b`).ReplaceAllString(text, "-test-xxxxx")
	},
}

// parsesAsHelm compares Parse with what Helm's client makes of each document:
// YAML by way of JSON.
func parsesAsHelm(t *testing.T, r *Rendered) {
	t.Helper()
	got, err := Parse(r.Manifest)
	if err != nil {
		t.Fatalf("parsing the manifest: %v", err)
	}
	at := 0
	for _, d := range r.Documents {
		// With its newline, as in the manifest: a block scalar at the end has it too.
		text, err := yaml.YAMLToJSON([]byte(d.Text + "\n"))
		if err != nil || string(text) == "null" {
			continue
		}
		var want unstructured.Unstructured
		if err := want.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		if want.IsList() {
			t.Skip("a list is compared elsewhere")
		}
		if at >= len(got) || got[at].Source != d.Source || !reflect.DeepEqual(got[at].Object.Object, want.Object) {
			t.Fatalf("document %d, of %s, is not what was parsed: want\n%s", at, d.Source, text)
		}
		at++
	}
	if at != len(got) {
		t.Errorf("there are %d documents, %d were parsed", at, len(got))
	}
}

func TestTemplateIsHelmsForSharedCharts(t *testing.T) {
	for _, path := range sharedCharts(t) {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			for _, r := range []run{
				{},
				{crds: true, upgrade: true},
				{skipTests: true, kube: "1.31.4", apis: []string{"monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor"}},
			} {
				r.chart, r.sources = path, fixed[name]
				rendered := r.compare(t, random[name])
				parsesAsHelm(t, rendered)
				if _, _, err := CRDs(rendered.Chart); err != nil {
					t.Errorf("parsing the CRDs of %s: %v", name, err)
				}
			}
		})
	}
}

// chartDir writes a chart of the given files; a Chart.yaml is added when there
// is none.
func chartDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "probe")
	if _, ok := files["Chart.yaml"]; !ok {
		write(t, filepath.Join(dir, "Chart.yaml"), "apiVersion: v2\nname: probe\nversion: 1.0.0\n")
	}
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
