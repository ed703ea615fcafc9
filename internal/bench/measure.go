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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// A program is one of the two that are compared, with a namespace of its own.
type program struct {
	name      string
	path      string
	agent     string // how its user agent begins
	namespace string
	home      string
	auditLog  string
}

// A measurement is what one command took.
type measurement struct {
	wall, cpu time.Duration
	peak      int64 // bytes of memory
	requests  int   // to the API server; -1 when not known
}

// programs finds both binaries.
func programs(o options, dir string) ([]*program, error) {
	out := []*program{
		{name: "helm", path: o.helm, agent: "Helm/"},
		{name: "deployer", path: o.deployer, agent: "deployer/"},
	}
	for _, p := range out {
		var err error
		if p.path, err = filepath.Abs(p.path); err != nil {
			return nil, err
		}
		if _, err := os.Stat(p.path); err != nil {
			return nil, fmt.Errorf("%s is missing: run make bench", p.path)
		}
		p.namespace = fmt.Sprintf("bench-%s-%d", p.name, os.Getpid())
		p.home, p.auditLog = filepath.Join(dir, p.name), o.auditLog
		if err := os.MkdirAll(p.home, 0o755); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// measure runs a phase as often as told, each time from the release without
// changes, and gives the fastest.
func (p *program) measure(ctx context.Context, ph phase, chart string, repeat int) (measurement, error) {
	if ph.first {
		return p.run(ctx, "install", "bench", chart, p.unwaited())
	}
	var best measurement
	for i := range repeat {
		m, err := p.run(ctx, p.arguments(ph, chart, i)...)
		if err != nil {
			return m, err
		}
		if i == 0 || m.wall < best.wall {
			best = m
		}
		if ph.changed == 0 {
			continue
		}
		if _, err := p.run(ctx, "upgrade", "bench", chart, "--set", "changed=0", p.unwaited()); err != nil {
			return m, err
		}
	}
	return best, nil
}

// arguments of the i-th run of a phase that isn't the first.
func (p *program) arguments(ph phase, chart string, i int) []string {
	if ph.plan {
		return []string{"plan", "bench", chart, "--set", "changed=0"}
	}
	return []string{"upgrade", "bench", chart, "--set", "changed=" + strconv.Itoa(ph.changed), "--set", "generation=" + strconv.Itoa(i), p.unwaited()}
}

// unwaited is the flag that lets the program wait for nothing, as Helm does
// unless told otherwise.
func (p *program) unwaited() string { return "--wait=false" }

func (p *program) run(ctx context.Context, args ...string) (measurement, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, p.path, append(args, "--namespace", p.namespace)...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+p.home, "HELM_CONFIG_HOME="+p.home, "HELM_DATA_HOME="+p.home)
	cmd.Stdout, cmd.Stderr = &said, &said
	from, err := p.auditEnd()
	if err != nil {
		return measurement{}, err
	}
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return measurement{}, fmt.Errorf("%s %v: %w\n%s", p.name, args, err, said.Bytes())
	}
	m := measurement{wall: time.Since(began), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.peak = usage.Maxrss * 1024 // Linux counts in KiB
	}
	m.requests, err = p.requestsSince(ctx, from)
	return m, err
}

// prepare creates the program's namespace. Nobody removes it: the cluster goes,
// or is somebody's to look at.
func (p *program) prepare(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("the cluster of KUBECONFIG: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("the cluster of KUBECONFIG: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating Namespace/%s: %w", p.namespace, err)
	}
	return nil
}
