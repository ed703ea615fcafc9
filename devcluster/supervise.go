package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// bootTimeout is how long a start may take; it takes seconds on an idle machine.
const bootTimeout = 3 * time.Minute

// bootAttempts is how often a start is tried when another program takes a port
// between our look and our use.
const bootAttempts = 3

// poll is the pause between two looks at something that can't be waited for.
const poll = 50 * time.Millisecond

// supervisor runs the components of one cluster.
type supervisor struct {
	layout    layout
	nodes     int // simulated
	began     time.Time
	processes []*process
}

// say tells how the start goes.
func (s *supervisor) say(progress string) {
	fmt.Fprintf(os.Stderr, "devcluster: %4.1fs  %s\n", time.Since(s.began).Seconds(), progress)
}

// stop ends all components, the last started first.
func (s *supervisor) stop() {
	for i := len(s.processes) - 1; i >= 0; i-- {
		s.processes[i].kill()
	}
	s.processes = nil
	_ = os.RemoveAll(s.layout.etcd()) // the next start does it again, and complains. With --dir the logs stay, for whoever wonders why.
}

// boot starts the components until the cluster can be used.
func (s *supervisor) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bootTimeout,
		fmt.Errorf("the cluster was not ready after %s; with --dir DIR the logs of its components stay, in DIR/logs", bootTimeout))
	defer cancel()
	s.began = time.Now()
	if err := s.bootServer(ctx); err != nil {
		return err
	}
	client, err := newClient(s.layout.kubeconfig())
	if err != nil {
		return err
	}
	s.say("starting controllers, scheduler and nodes")
	for _, c := range []component{controllerManager(s.layout), kubeScheduler(s.layout), simulatedNodes(s.layout)} {
		if err := s.start(c); err != nil {
			return err
		}
	}
	if err := createNodes(ctx, client, s.nodes); err != nil {
		return err
	}
	if err := s.waitFor(ctx, func() (string, error) { return usable(ctx, client, s.nodes) }); err != nil {
		return err
	}
	s.say("ready, Kubernetes " + version() + ", KUBECONFIG=" + s.layout.kubeconfig())
	return nil
}

// bootServer starts etcd and the API server on free ports, and waits until the
// API server answers.
func (s *supervisor) bootServer(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		s.say("starting etcd and kube-apiserver")
		err := s.tryServer(ctx)
		if err == nil || attempt == bootAttempts || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
		s.stop()
	}
}

func (s *supervisor) tryServer(ctx context.Context) error {
	if err := s.layout.reset(); err != nil {
		return err
	}
	var p ports
	var ofEtcd, ofServer error
	p.etcd, ofEtcd = freePort()
	p.server, ofServer = freePort()
	if err := cmp.Or(ofEtcd, ofServer); err != nil {
		return err
	}
	if err := writeConf(s.layout, p); err != nil {
		return err
	}
	for _, c := range []component{etcd(s.layout, p), apiServer(s.layout, p)} {
		if err := s.start(c); err != nil {
			return err
		}
	}
	client, err := newClient(s.layout.kubeconfig())
	if err != nil {
		return err
	}
	return s.waitFor(ctx, func() (string, error) { return serverProblem(ctx, client), nil })
}

func (s *supervisor) start(c component) error {
	p, err := start(s.layout, c)
	if err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	return nil
}

// ended returns an error for the first component that doesn't run any more.
func (s *supervisor) ended() error {
	for _, p := range s.processes {
		select {
		case <-p.ended:
			return p.endedError(s.layout)
		default:
		}
	}
	return nil
}

// waitFor waits until problem finds none. It fails when ctx ends, telling the
// last problem, and when a component ends.
func (s *supervisor) waitFor(ctx context.Context, problem func() (string, error)) error {
	for {
		what, err := problem()
		if ctx.Err() == nil && err != nil {
			return err
		}
		if err == nil && what == "" {
			return nil
		}
		if err := s.ended(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%s)", context.Cause(ctx), what)
		case <-time.After(poll):
		}
	}
}

// watch keeps the cluster until ctx ends, or a component.
func (s *supervisor) watch(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.ended(); err != nil {
			return err
		}
	}
}

// serverProblem says why the API server can't be used yet.
func serverProblem(ctx context.Context, client kubernetes.Interface) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return "the API server is not ready: " + err.Error()
	}
	return ""
}

// usable says what a user of the cluster would still miss, "" for nothing.
func usable(ctx context.Context, client kubernetes.Interface, nodes int) (string, error) {
	_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "ServiceAccount/default/default doesn't exist yet", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading ServiceAccount/default/default: %w", err)
	}
	return nodeProblem(ctx, client, nodes)
}
