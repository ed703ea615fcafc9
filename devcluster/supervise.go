package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
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

// options are what a cluster is started with.
type options struct {
	layout layout
	nodes  int           // simulated ones
	real   bool          // a real node, beside the simulated ones
	idle   time.Duration // stop when unused for so long; 0 is never
}

// allNodes is how many nodes the cluster has.
func (o options) allNodes() int {
	if o.real {
		return o.nodes + 1
	}
	return o.nodes
}

// supervisor runs the components of one cluster and stops all when one ends.
type supervisor struct {
	options
	report    func(message)
	processes []*process
}

// superviseCommand is the background process behind "up" and "run".
func superviseCommand(ctx context.Context, args []string) error {
	var opts options
	flags := flag.NewFlagSet("supervise", flag.ContinueOnError)
	dir := flags.String("dir", "", "")
	attached := flags.Bool("attached", false, "stop when standard input closes, also after the start")
	flags.IntVar(&opts.nodes, "nodes", 0, "")
	flags.BoolVar(&opts.real, "real-node", false, "")
	flags.DurationVar(&opts.idle, "idle", 0, "")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	var err error
	if opts.layout, err = newLayout(*dir); err != nil {
		return err
	}
	pipe := os.NewFile(reportFD, "report")
	report := writeReports(pipe)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // any error means that the pipe is gone, too
		select {
		case <-started:
			if !*attached {
				return // whoever started us has got what they wanted
			}
		default:
		}
		cancel()
	}()
	err = supervise(ctx, opts, func(m message) {
		if m.Ready {
			close(started)
		}
		report(m)
		if m.Ready {
			pipe.Close()
		}
	})
	if err != nil {
		report(message{Error: err.Error()})
	}
	return err
}

// supervise starts a cluster and keeps it until ctx ends, it has been idle for
// long enough, or a component ends by itself, which is the only error after the
// start. When it returns, all components have ended.
func supervise(ctx context.Context, opts options, report func(message)) error {
	// See process start: the thread that starts children must not end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	alive, err := tryLock(opts.layout.aliveLock())
	if errors.Is(err, errLocked) {
		return fmt.Errorf("another cluster runs in %s; stop it with: devcluster down --dir %s", opts.layout.dir, opts.layout.dir)
	}
	if err != nil {
		return err
	}
	defer alive.Close()
	s := &supervisor{options: opts, report: report}
	defer s.stop()
	if err := s.boot(ctx); err != nil {
		return err
	}
	return s.watch(ctx)
}

// stop ends all components, the last started first.
func (s *supervisor) stop() {
	for i := len(s.processes) - 1; i >= 0; i-- {
		s.processes[i].kill()
	}
	s.processes = nil
	_ = sweepLeft(s.layout)
	_ = s.layout.discard() // the next start does it again, and complains
}

// boot starts the components until the cluster can be used.
func (s *supervisor) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bootTimeout,
		fmt.Errorf("the cluster was not ready after %s; the logs are in %s", bootTimeout, filepath.Dir(s.layout.log("x"))))
	defer cancel()
	began := time.Now()
	p, err := s.bootServer(ctx)
	if err != nil {
		return err
	}
	client, err := newClient(s.layout.kubeconfig())
	if err != nil {
		return err
	}
	s.report(message{Progress: "starting controllers, scheduler and nodes"})
	for _, c := range []component{controllerManager(s.layout), kubeScheduler(s.layout), simulatedNodes(s.layout)} {
		if err := s.start(c); err != nil {
			return err
		}
	}
	if s.real {
		if err := s.startRealNode(ctx); err != nil {
			return err
		}
	}
	if err := createNodes(ctx, client, s.nodes); err != nil {
		return err
	}
	err = s.waitFor(ctx, func() (string, error) { return usable(ctx, client, s.allNodes()) })
	if err != nil {
		return err
	}
	err = s.layout.writeState(state{
		PID: os.Getpid(), Started: time.Now().UTC(), Server: p.serverURL(), Nodes: s.nodes, RealNode: s.real, Idle: idleText(s.idle),
		Version: version(), BootTook: time.Since(began).Seconds(),
	})
	if err != nil {
		return err
	}
	s.report(message{Progress: fmt.Sprintf("ready after %.1fs", time.Since(began).Seconds())})
	s.report(message{Ready: true})
	return nil
}

// bootServer starts etcd and the API server on free ports, and waits until the
// API server answers.
func (s *supervisor) bootServer(ctx context.Context) (ports, error) {
	for attempt := 1; ; attempt++ {
		s.report(message{Progress: "starting etcd and kube-apiserver"})
		p, err := s.tryServer(ctx)
		if err == nil || attempt == bootAttempts || !strings.Contains(err.Error(), "address already in use") {
			return p, err
		}
		s.stop()
	}
}

func (s *supervisor) tryServer(ctx context.Context) (ports, error) {
	// What the last cluster here has left if it couldn't stop by itself.
	if err := sweepLeft(s.layout); err != nil {
		return ports{}, err
	}
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

// watch keeps the cluster until there is a reason to stop.
func (s *supervisor) watch(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	unusedSince := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.ended(); err != nil {
			return err
		}
		if s.idle == 0 {
			continue
		}
		unused, err := tryLock(s.layout.usersLock())
		if errors.Is(err, errLocked) {
			unusedSince = time.Now()
			continue
		}
		if err != nil {
			return err
		}
		if time.Since(unusedSince) >= s.idle {
			// Whoever comes now waits for the lock until this process has ended
			// with it, and then finds no cluster rather than a dying one.
			s.stop()
			// Nobody asked for the log of a cluster that stops by itself, and there
			// may be one for each build of this program.
			return os.Remove(s.layout.auditLog())
		}
		unused.Close()
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

func idleText(idle time.Duration) string {
	if idle == 0 {
		return ""
	}
	return idle.String()
}
