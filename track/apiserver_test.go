package track_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"deployer/internal/kubetest"
)

// An apiServer is one more API server of the cluster, which a test kills and starts
// again without taking the cluster away from others.
type apiServer struct {
	cluster  *kubetest.Cluster
	command  []string
	address  string
	storage  *gate // its way to etcd
	process  *exec.Cmd
	lifeline io.Closer // the process ends when it is closed, also with the test process
}

// startServer starts another API server of the cluster, with the same rights and
// data, and stops it with the test. It is found by its process, so it needs
// Linux and the development cluster on this machine; without, the test is
// skipped.
func startServer(t *testing.T, c *kubetest.Cluster) *apiServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("looking for a free port: %v", err)
	}
	address := listener.Addr().String()
	listener.Close()
	_, port, _ := net.SplitHostPort(address)
	s := &apiServer{cluster: c, command: serverCommand(t, c.Config().Host), address: address}
	for i, arg := range s.command {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "--etcd-servers":
			s.storage = &gate{address: "127.0.0.1:0", to: strings.TrimPrefix(value, "http://")}
			if err := s.storage.open(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.storage.close() })
			s.command[i] = name + "=http://" + s.storage.address
		case "--secure-port":
			s.command[i] = name + "=" + port
		case "--audit-log-path":
			s.command[i] = name + "=" + filepath.Join(t.TempDir(), "audit.log")
		}
	}
	t.Cleanup(s.kill)
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// serverCommand is how the cluster's own API server was started.
func serverCommand(t *testing.T, host string) []string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(host, "https://"))
	if err != nil {
		t.Skipf("the API server has no port: %v", err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		args := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
		if len(args) > 1 && args[1] == "kube-apiserver" && slices.Contains(args, "--secure-port="+port) {
			return args
		}
	}
	t.Skip("the API server of the cluster doesn't run on this machine, or its processes can't be seen")
	return nil
}

// start starts the server, at the same address as before, and returns when it
// answers.
func (s *apiServer) start(ctx context.Context) error {
	s.process = exec.Command(s.command[0], s.command[1:]...)
	lifeline, err := s.process.StdinPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		return fmt.Errorf("starting another API server: %w", err)
	}
	s.lifeline = lifeline
	client, err := kubernetes.NewForConfig(s.config(s.cluster.Config()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for another API server to answer: %w", err)
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// kill kills the server as kill -9 does. It may be started again.
func (s *apiServer) kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // it may have ended
	_ = s.process.Wait()         // it was killed
	s.lifeline.Close()
	s.process = nil
}

// config is a configuration with this server in place of the cluster's own.
func (s *apiServer) config(config *rest.Config) *rest.Config {
	config.Host = "https://" + s.address
	return config
}

// A gate passes on connections to another address while it is open. Closed, it is what a killed
// process is: connections end and can't be made again.
type gate struct {
	address, to string
	close       func()
}

// open opens the gate, at the same address as before.
func (g *gate) open() error {
	listener, err := net.Listen("tcp", g.address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.address, g.close = listener.Addr().String(), func() {
		cancel()
		listener.Close()
	}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			go g.pass(ctx, from)
		}
	}()
	return nil
}

// pass carries what both ends say, until one of them or the gate is closed.
func (g *gate) pass(ctx context.Context, from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", g.to)
	if err != nil {
		return // the other side finds its connection closed
	}
	defer to.Close()
	defer context.AfterFunc(ctx, func() {
		from.Close()
		to.Close()
	})()
	go func() {
		_, _ = io.Copy(to, from)
		to.Close()
	}()
	_, _ = io.Copy(from, to)
}
