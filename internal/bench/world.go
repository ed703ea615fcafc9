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
)

// A world is the cluster and the programs that are compared on it.
type world struct {
	client         *kubernetes.Clientset
	metadata       metadata.Interface
	deployer, helm string           // paths
	home           string           // of Helm's files
	auditLog       string           // "" when there is none
	farConfig      string           // a kubeconfig whose API server is far away
	count          int              // of namespaces that were made
	foreign        sets.Set[string] // names of the definitions that were there before
}

func newWorld(ctx context.Context, o options, dir string) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, fmt.Errorf("the cluster of KUBECONFIG: %w", err)
	}
	config.QPS = -1
	w := &world{home: dir, auditLog: o.auditLog}
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if w.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	for path, into := range map[string]*string{o.deployer: &w.deployer, o.helm: &w.helm} {
		if *into, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		if _, err := os.Stat(*into); err != nil {
			return nil, fmt.Errorf("%s is missing: run make bench", path)
		}
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
		proxy, err := startDelayProxy(ctx, server.Host, oneWay)
		if err != nil {
			return "", err
		}
		server.Host = proxy.address()
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
	requests        // -1 when they weren't counted
	figures         // how many figures there are
)

var figureNames = [figures]string{"seconds", "CPU seconds", "server CPU seconds", "peak MiB", "requests"}

// A measurement is what one command took.
type measurement [figures]float64

// changesPlanned is the exit code of a plan that has changes.
const changesPlanned = 2

// run runs a program in a namespace. With settle the API server is idle before and after, so that its work for
// others isn't counted, and what it does later is.
func (w *world) run(ctx context.Context, path, namespace string, s step, settle bool, args []string) (m measurement, err error) {
	before, err := w.serverSeconds(ctx, settle)
	if err != nil {
		return m, err
	}
	from, err := w.auditEnd()
	if err != nil {
		return m, err
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append(args, "--namespace", namespace)...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+w.home, "HELM_CONFIG_HOME="+w.home, "HELM_DATA_HOME="+w.home)
	if s.far {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+w.farConfig)
	}
	cmd.Stdout, cmd.Stderr = &output, &output
	began := time.Now()
	if err := cmd.Run(); err != nil && !(args[0] == "plan" && cmd.ProcessState.ExitCode() == changesPlanned) {
		return m, fmt.Errorf("%v: %w\n%s", args, err, output.Bytes())
	}
	m[wall] = time.Since(began).Seconds()
	m[cpu] = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m[memory] = float64(usage.Maxrss) / 1024 // Linux counts in KiB
	}
	after, err := w.serverSeconds(ctx, settle)
	if err != nil {
		return m, err
	}
	m[server] = after - before
	m[requests], err = w.requestsSince(ctx, from, filepath.Base(path))
	return m, err
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

// createNamespace makes a namespace for one life of a program.
func (w *world) createNamespace(ctx context.Context, program string) (string, error) {
	w.count++
	name := fmt.Sprintf("bench-%s-%d-%d", program, os.Getpid(), w.count)
	_, err := w.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return name, err
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
