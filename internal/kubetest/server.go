package kubetest

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
)

// A Server is one more API server of the cluster, which a test may kill and
// start again without taking the cluster away from others.
type Server struct {
	cluster  *Cluster
	command  []string
	address  string
	storage  *gate // its way to etcd
	process  *exec.Cmd
	lifeline io.Closer // the process ends when it is closed, also with the test process
}

// Server starts another API server of the cluster, with the same rights and
// data, and stops it with the test. It is found by its process, so it needs
// Linux and the development cluster on this machine; without, the test is
// skipped.
func (c *Cluster) Server(t testing.TB) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("looking for a free port: %v", err)
	}
	address := listener.Addr().String()
	listener.Close()
	_, port, _ := net.SplitHostPort(address)
	command := c.serverCommand(t)
	s := &Server{cluster: c, command: command, address: address}
	for i, arg := range command {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "--etcd-servers":
			s.storage = openGate(t, strings.TrimPrefix(value, "http://"))
			command[i] = name + "=http://" + s.storage.address
		case "--secure-port":
			command[i] = name + "=" + port
		case "--audit-log-path":
			command[i] = name + "=" + filepath.Join(t.TempDir(), "audit.log")
		}
	}
	t.Cleanup(s.Kill)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// serverCommand is how the cluster's own API server was started.
func (c *Cluster) serverCommand(t testing.TB) []string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(c.config.Host, "https://"))
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

// Start starts the server, at the same address as before, and returns when it
// answers.
func (s *Server) Start(ctx context.Context) error {
	s.process = exec.Command(s.command[0], s.command[1:]...)
	lifeline, err := s.process.StdinPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		return fmt.Errorf("starting another API server: %w", err)
	}
	s.lifeline = lifeline
	client, err := kubernetes.NewForConfig(s.Config(s.cluster.Config()))
	if err != nil {
		return err
	}
	err = eventually(ctx, time.Minute, func(ctx context.Context) error {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("waiting for another API server to answer: %w", err)
	}
	return nil
}

// Kill kills the server as kill -9 does. It may be started again.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // it may have ended
	_ = s.process.Wait()         // it was killed
	s.lifeline.Close()
	s.process = nil
}

// KillStorage takes etcd away from the server, which then sees what it sees when
// etcd is killed: connections that end and can't be made again. The cluster's own
// API server keeps it.
func (s *Server) KillStorage() { s.storage.close() }

// StartStorage gives etcd back, at the same address.
func (s *Server) StartStorage() error { return s.storage.open() }

// Config is a configuration with this server in place of the cluster's own.
func (s *Server) Config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = "https://" + s.address
	return config
}
