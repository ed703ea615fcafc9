package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A phase is one thing that both programs do.
type phase struct {
	name    string
	changed int // objects whose value is new
	first   bool
	plan    bool // by deployer only: compared with Helm's upgrade without a change
}

// The names of phases that targets are about.
const (
	install    = "install"
	noop       = "no-op upgrade"
	oneChanged = "one changed"
	planOfNoop = "plan of a no-op"
)

// phases of a run with n objects. Each but the first is measured from a release
// in which nothing is changed.
func phases(n int) []phase {
	return []phase{
		{name: install, first: true},
		{name: noop},
		{name: oneChanged, changed: 1},
		{name: fmt.Sprintf("%d changed", n/4), changed: n / 4},
		{name: "all changed", changed: n},
		{name: planOfNoop, plan: true},
	}
}

// A program is one of the two that are compared, with a namespace of its own.
type program struct {
	helm      bool
	path      string
	agent     string // how its user agent begins
	namespace string
	home      string
	auditLog  string
	config    string // a KUBECONFIG of its own; empty for that of the environment
}

// A measurement is what one command took.
type measurement struct {
	wall, cpu time.Duration
	peak      int64 // bytes of memory
	asked     requestCounts
}

// programs finds both binaries. Their namespaces end with suffix.
func programs(o options, dir, suffix string) ([]*program, error) {
	out := []*program{
		{helm: true, path: o.helm, agent: "Helm/", namespace: "helm"},
		{path: o.deployer, agent: "deployer/", namespace: "deployer"},
	}
	for _, p := range out {
		var err error
		if p.path, err = filepath.Abs(p.path); err != nil {
			return nil, err
		}
		if _, err := os.Stat(p.path); err != nil {
			return nil, fmt.Errorf("%s is missing: run make bench", p.path)
		}
		p.home, p.auditLog = filepath.Join(dir, p.namespace), o.auditLog
		p.namespace = fmt.Sprintf("bench-%s-%s-%d", p.namespace, suffix, os.Getpid())
		if err := os.MkdirAll(p.home, 0o755); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// measure runs a phase for the i-th time, and then brings the release back to
// where the next one begins.
func (p *program) measure(ctx context.Context, ph phase, chart string, i int) (measurement, error) {
	if ph.first && i > 0 {
		if _, err := p.run(ctx, "uninstall", "bench", "--wait"); err != nil {
			return measurement{}, err
		}
	}
	if err := p.awaitIdle(ctx); err != nil {
		return measurement{}, err
	}
	m, err := p.run(ctx, p.arguments(ph, chart, i)...)
	if err != nil || ph.changed == 0 {
		return m, err
	}
	_, err = p.run(ctx, "upgrade", "bench", chart, "--set", "changed=0", "--wait=false")
	return m, err
}

// arguments of a phase. Nothing is waited for: Helm doesn't unless told.
func (p *program) arguments(ph phase, chart string, i int) []string {
	switch {
	case ph.plan:
		return []string{"plan", "bench", chart, "--set", "changed=0"}
	case ph.first:
		return []string{"install", "bench", chart, "--wait=false"}
	}
	return []string{"upgrade", "bench", chart, "--set", "changed=" + strconv.Itoa(ph.changed), "--set", "generation=" + strconv.Itoa(i), "--wait=false"}
}

func (p *program) run(ctx context.Context, args ...string) (measurement, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, p.path, append(args, "--namespace", p.namespace)...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+p.home, "HELM_CONFIG_HOME="+p.home, "HELM_DATA_HOME="+p.home)
	if p.config != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+p.config)
	}
	cmd.Stdout, cmd.Stderr = &said, &said
	from, err := p.auditEnd()
	if err != nil {
		return measurement{}, err
	}
	began := time.Now()
	if err := cmd.Run(); err != nil && !(args[0] == "plan" && cmd.ProcessState.ExitCode() == changesPlanned) {
		return measurement{}, fmt.Errorf("%s %v: %w\n%s", filepath.Base(p.path), args, err, said.Bytes())
	}
	m := measurement{wall: time.Since(began), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.peak = usage.Maxrss * 1024 // Linux counts in KiB
	}
	m.asked, err = p.requestsSince(ctx, from)
	return m, err
}

// changesPlanned is the exit code of a plan that has changes.
const changesPlanned = 2

// connect reads the configuration of the cluster of KUBECONFIG.
func connect() (*rest.Config, *kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, nil, fmt.Errorf("the cluster of KUBECONFIG: %w", err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("the cluster of KUBECONFIG: %w", err)
	}
	return config, client, nil
}

// prepare creates the program's namespace.
func (p *program) prepare(ctx context.Context) error { return createNamespace(ctx, p.namespace) }

func createNamespace(ctx context.Context, name string) error {
	_, client, err := connect()
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating Namespace/%s: %w", name, err)
	}
	return nil
}

// removeNamespace deletes a namespace and waits for it to be gone while ctx lasts:
// the deletion of thousands of objects would slow down what is measured next.
func removeNamespace(ctx context.Context, name string) {
	_, client, err := connect()
	if err != nil {
		return
	}
	namespaces := client.CoreV1().Namespaces()
	// It is the user's cluster, and a measurement that is over: nothing depends on it.
	_ = namespaces.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		return err != nil, nil
	})
}
