package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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
	_ = s.layout.discard() // the next start does it again, and complains
}

// boot starts the components until the cluster can be used.
func (s *supervisor) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bootTimeout,
		fmt.Errorf("the cluster was not ready after %s; the logs are in %s", bootTimeout, filepath.Dir(s.layout.log("x"))))
	defer cancel()
	s.began = time.Now()
	p, err := s.bootServer(ctx)
	if err != nil {
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
	err = s.waitFor(ctx, func() (string, error) { return usable(ctx, client, s.nodes) })
	if err != nil {
		return err
	}
	err = s.layout.writeState(state{
		PID: os.Getpid(), Started: time.Now().UTC(), Server: p.serverURL(), Nodes: s.nodes,
		Version: version(), BootTook: time.Since(s.began).Seconds(),
	})
	if err != nil {
		return err
	}
	s.say("ready")
	return nil
}

// bootServer starts etcd and the API server on free ports, and waits until the
// API server answers.
func (s *supervisor) bootServer(ctx context.Context) (ports, error) {
	for attempt := 1; ; attempt++ {
		s.say("starting etcd and kube-apiserver")
		p, err := s.tryServer(ctx)
		if err == nil || attempt == bootAttempts || !strings.Contains(err.Error(), "address already in use") {
			return p, err
		}
		s.stop()
	}
}

func (s *supervisor) tryServer(ctx context.Context) (ports, error) {
	if err := s.layout.reset(); err != nil {
		return ports{}, err
	}
	p, err := pickPorts()
	if err != nil {
		return ports{}, err
	}
	if err := writeConf(s.layout, p); err != nil {
		return ports{}, err
	}
	for _, c := range []component{etcd(s.layout, p), apiServer(s.layout, p)} {
		if err := s.start(c); err != nil {
			return ports{}, err
		}
	}
	client, err := newClient(s.layout.kubeconfig())
	if err != nil {
		return ports{}, err
	}
	return p, s.waitFor(ctx, func() (string, error) { return serverProblem(ctx, client), nil })
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
	status := 0
	result := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
	if err := result.Error(); err != nil {
		return "the API server is not ready: " + err.Error()
	}
	if status != http.StatusOK {
		return fmt.Sprintf("the API server is not ready: status %d", status)
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
