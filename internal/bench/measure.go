package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"deployer/internal/kubetest"
)

// The programs that are compared, as their namespaces are called.
const (
	deployer = "deployer"
	helm     = "helm"
)

// programs are where make bench builds them, and how their user agents begin.
var programs = map[string]struct{ path, agent string }{
	deployer: {"bin/deployer", "deployer/"},
	helm:     {"bin/helm3/helm", "Helm/"},
}

// A world is the cluster that the programs are compared on.
type world struct {
	client    *kubernetes.Clientset
	metadata  metadata.Interface
	home      string           // of Helm's files
	farConfig string           // a kubeconfig whose API server is far away
	count     int              // of namespaces that were made
	foreign   sets.Set[string] // names of the definitions that were there before
}

func newWorld(ctx context.Context, dir string) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, fmt.Errorf("the cluster of KUBECONFIG: %w", err)
	}
	config.QPS = -1
	w := &world{home: dir}
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if w.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	if w.farConfig, err = writeFarConfig(ctx, dir); err != nil {
		return nil, err
	}
	w.foreign, err = w.definitions(ctx)
	return w, err
}

// writeFarConfig starts a proxy that delays what is sent, and writes a kubeconfig that leads through it.
func writeFarConfig(ctx context.Context, dir string) (string, error) {
	config, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		return "", err
	}
	for _, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			return "", err
		}
		cluster.TLSServerName = server.Hostname()
		if server.Host, err = startDelayProxy(ctx, server.Host, oneWay); err != nil {
			return "", err
		}
		cluster.Server = server.String()
	}
	path := filepath.Join(dir, "far.kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// The figures of a measurement.
const (
	wall     = iota // seconds
	cpu             // seconds of the program
	server          // seconds of processor time of the API server, until it is idle again
	memory          // MiB at most
	requests        // -1 when there is no audit log to count them in
	figures         // how many figures there are
)

var figureNames = [figures]string{"seconds", "CPU seconds", "server CPU seconds", "peak MiB", "requests"}

// A measurement is what one command took.
type measurement [figures]float64

// results are the measurements of a section, by program and name of the step.
type results map[string]map[string][]measurement

// measure lets both programs live through a section. They take turns in being first, because each life leaves the API
// server with more to collect.
func (w *world) measure(ctx context.Context, s section) (results, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range s.busy {
		if err := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Start(); err != nil {
			return nil, err
		}
	}
	r := results{deployer: {}, helm: {}}
	turns := []string{helm, deployer}
	if s.waits > 0 {
		turns = []string{deployer}
	}
	for range s.lives {
		for _, program := range turns {
			if err := w.live(ctx, s, program, r[program]); err != nil {
				return nil, fmt.Errorf("%s: %w", program, err)
			}
		}
		slices.Reverse(turns)
	}
	return r, nil
}

// live lets one program live through a section once, in a namespace of its own. What it leaves is removed, definitions
// too: they belong to the cluster, so one program has it to itself at a time.
func (w *world) live(ctx context.Context, s section, program string, into map[string][]measurement) (err error) {
	w.count++
	namespace := fmt.Sprintf("bench-%s-%d-%d", program, os.Getpid(), w.count)
	if _, err := w.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.cleanUp(ctx, namespace)) }()
	for _, st := range s.steps {
		by, args := program, st.deployer
		if program == helm || st.byHelm {
			by, args = helm, st.helm
		}
		m, err := w.run(ctx, by, st, namespace, s.busy == 0 && !s.offline && st.from == nil, append(slices.Clone(args), "--namespace", namespace))
		if err != nil {
			return err
		}
		if st.name != "" {
			into[st.name] = append(into[st.name], m)
		}
	}
	return nil
}

// changesPlanned is the exit code of a plan that has changes.
const changesPlanned = 2

// run runs a program. With settle the API server is idle before and after, so that its work for
// others isn't counted, and what it does later is.
func (w *world) run(ctx context.Context, program string, st step, namespace string, settle bool, args []string) (m measurement, err error) {
	before, err := w.serverSeconds(ctx, settle)
	if err != nil {
		return m, err
	}
	var audit *kubetest.AuditReader
	if log := os.Getenv("DEPLOYER_TEST_AUDIT_LOG"); log != "" {
		if audit, err = kubetest.NewAuditReader(log, programs[program].agent); err != nil {
			return m, err
		}
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, programs[program].path, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+w.home, "HELM_CONFIG_HOME="+w.home, "HELM_DATA_HOME="+w.home)
	if st.far {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+w.farConfig)
	}
	cmd.Stdout, cmd.Stderr = &output, &output
	var lastSeen func() (time.Time, error)
	if st.from != nil {
		if lastSeen, err = w.lastToCome(ctx, namespace, st.from.isSeen); err != nil {
			return m, err
		}
	}
	began := time.Now()
	if err := cmd.Run(); (err != nil) != (st.from != nil && st.from.fails) && !(args[0] == "plan" && cmd.ProcessState.ExitCode() == changesPlanned) {
		return m, fmt.Errorf("%v: %w\n%s", args, err, output.Bytes())
	}
	ended := time.Now()
	if st.from != nil {
		if began, err = lastSeen(); err != nil {
			return m, fmt.Errorf("%v: %w\n%s", args, err, output.Bytes())
		}
	}
	m[wall] = max(0, ended.Sub(began).Seconds())
	m[cpu] = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m[memory] = float64(usage.Maxrss) / 1024 // Linux counts in KiB
	}
	after, err := w.serverSeconds(ctx, settle)
	if err != nil {
		return m, err
	}
	m[server], m[requests] = after-before, -1
	if audit != nil {
		m[requests], err = countRequests(ctx, audit)
	}
	return m, err
}

// auditQuiet is how long the audit log has to bring nothing new from a program that has ended before its
// requests are taken to be all there.
const auditQuiet = 300 * time.Millisecond

func countRequests(ctx context.Context, audit *kubetest.AuditReader) (float64, error) {
	for last := -1; ; {
		events, err := audit.Read()
		if err != nil || len(events) == last {
			return float64(len(events)), err
		}
		last = len(events)
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(auditQuiet):
		}
	}
}

var cpuSeconds = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`)

// idle is how much of a processor an API server uses that nobody asks anything but its metrics.
const idle = 0.25

// serverSeconds is the processor time that the API server has used since it started, when it is idle if
// that is wanted: controllers work for many seconds on thousands of objects.
func (w *world) serverSeconds(ctx context.Context, whenIdle bool) (seconds float64, err error) {
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		text, err := w.client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			return false, fmt.Errorf("reading the API server's metrics: %w", err)
		}
		found := cpuSeconds.FindSubmatch(text)
		if found == nil {
			return false, errors.New("the API server's metrics have no process_cpu_seconds_total")
		}
		last := seconds
		seconds, err = strconv.ParseFloat(string(found[1]), 64)
		return !whenIdle || seconds-last < idle, err
	})
	return seconds, err
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definitions returns the names of the cluster's CustomResourceDefinitions.
func (w *world) definitions(ctx context.Context) (sets.Set[string], error) {
	list, err := w.metadata.Resource(crds).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	names := sets.New[string]()
	for _, item := range list.Items {
		names.Insert(item.Name)
	}
	return names, nil
}

// cleanUp deletes a namespace, and the definitions that the bench brought, and waits until they are
// gone: their deletion would slow down what is measured next.
func (w *world) cleanUp(ctx context.Context, namespace string) error {
	namespaces := w.client.CoreV1().Namespaces()
	if err := namespaces.Delete(context.WithoutCancel(ctx), namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		now, err := w.definitions(ctx)
		if err != nil {
			return false, err
		}
		ours := now.Difference(w.foreign)
		for name := range ours {
			_ = w.metadata.Resource(crds).Delete(ctx, name, metav1.DeleteOptions{}) // looked at again
		}
		_, err = namespaces.Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && len(ours) == 0, nil
	})
}
