package nodetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/deployertest"
	"deployer/internal/kubetest"
)

// A world is what one test has for itself: a namespace and a chart.
type world struct {
	*testing.T
	cluster    *kubetest.Cluster
	ns         string
	kubeconfig string
	chart      string // its directory
}

// newWorld gives the test a world, in parallel with other tests: they mostly wait
// for the kubelet.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newQuietWorld(t)
}

// newQuietWorld is for tests that need the kubelet to be in time: nothing else
// runs beside them.
func newQuietWorld(t *testing.T) *world {
	t.Helper()
	if os.Getenv(nodeEnv) == "" {
		t.Skipf("no real node for tests (%s isn't set); run make test-node", nodeEnv)
	}
	cluster := kubetest.Start(t)
	real, err := cluster.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "deployer.dev/node=real"})
	if err != nil {
		t.Fatal(err)
	}
	if len(real.Items) == 0 {
		t.Fatal("the cluster has no real node; run make test-node")
	}
	ns := cluster.Namespace(t)
	w := &world{T: t, cluster: cluster, ns: ns, kubeconfig: cluster.Kubeconfig(t, ns), chart: filepath.Join(t.TempDir(), "app")}
	w.write("Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n")
	return w
}

// write writes a file of the chart.
func (w *world) write(name, content string) {
	w.Helper()
	path := filepath.Join(w.chart, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.Fatal(err)
	}
}

// A line is a line on standard error, and when it came.
type line struct {
	text string
	at   time.Duration // since the start
}

// A result is how a command ended.
type result struct {
	args []string
	code int
	out  string
	err  []line
	took time.Duration
}

func (r result) stderr() string {
	var all strings.Builder
	for _, l := range r.err {
		all.WriteString(l.text + "\n")
	}
	return all.String()
}

func (r result) String() string {
	return fmt.Sprintf("$ deployer %s\nexit code %d after %s\n--- stdout\n%s--- stderr\n%s",
		strings.Join(r.args, " "), r.code, r.took.Round(time.Millisecond), r.out, r.stderr())
}

// when says when the first line with text came.
func (r result) when(text string) (time.Duration, bool) {
	for _, l := range r.err {
		if strings.Contains(l.text, text) {
			return l.at, true
		}
	}
	return 0, false
}

// limit bounds a command: more than any of them takes on a busy node, and less than the timeout of a run.
const limit = 3 * time.Minute

// deployer runs the program under test; it has to end with the code and to say
// all of the texts on standard error.
func (w *world) deployer(code int, texts []string, args ...string) result {
	w.Helper()
	r := w.run(args...)
	if r.code != code {
		w.Fatalf("want exit code %d:\n%s", code, r)
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr(), text) {
			w.Errorf("stderr doesn't say %q:\n%s", text, r)
		}
	}
	return r
}

func (w *world) run(args ...string) result {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, deployerBinary, args...)
	cmd.Dir = w.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "KUBECONFIG=" + w.kubeconfig, deployertest.RaceReports(w)}
	var out bytes.Buffer
	cmd.Stdout = &out
	pipe, err := cmd.StderrPipe()
	if err != nil {
		w.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	r := result{args: args}
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r.err = append(r.err, line{lines.Text(), time.Since(began)})
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	r.code, r.out, r.took = cmd.ProcessState.ExitCode(), out.String(), time.Since(began)
	return r
}

// page gives what the application behind Service/web answers.
func (w *world) page() string {
	w.Helper()
	body, err := w.cluster.Client().CoreV1().Services(w.ns).ProxyGet("http", "web", "80", "/index.html", nil).DoRaw(w.Context())
	if err != nil {
		w.Fatalf("asking Service/%s/web: %v", w.ns, err)
	}
	return strings.TrimSpace(string(body))
}

// deployment is a Deployment whose pods are the lines of a pod's spec, which are
// indented here.
func deployment(pod string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {deployer.dev/node: real}
      terminationGracePeriodSeconds: 0
` + indent(pod, 6)
}

// hookJob is a Job that runs before an install or upgrade, with one attempt.
func hookJob(pod string) string {
	return `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
spec:
  backoffLimit: 0
  template:
    spec:
      nodeSelector: {deployer.dev/node: real}
      terminationGracePeriodSeconds: 0
      restartPolicy: Never
` + indent(pod, 6)
}

func indent(text string, by int) string {
	var all strings.Builder
	for l := range strings.Lines(strings.TrimPrefix(text, "\n")) {
		all.WriteString(strings.Repeat(" ", by) + l)
	}
	return all.String()
}

// shell is a container that runs a script.
func shell(name, script string) string {
	return fmt.Sprintf("- name: %s\n  image: deployer.test/busybox:1\n  command: [sh, -c, %q]\n", name, script)
}

// lateProbe keeps a container from being ready in its first seconds.
const lateProbe = "  readinessProbe: {exec: {command: [\"true\"]}, initialDelaySeconds: 5}\n"
