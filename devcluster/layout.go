package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// layout is the directory of one cluster. The names in it are a promise: tests
// use kubeconfig, audit.log and conf/kubelet.
type layout struct{ dir string }

func (l layout) kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }
func (l layout) auditLog() string   { return filepath.Join(l.dir, "audit.log") }
func (l layout) state() string      { return filepath.Join(l.dir, "state.json") }
func (l layout) etcd() string       { return filepath.Join(l.dir, "etcd") }
func (l layout) pki(name string) string {
	return filepath.Join(l.dir, "pki", name)
}
func (l layout) conf(name string) string { return filepath.Join(l.dir, "conf", name) }
func (l layout) log(name string) string {
	return filepath.Join(l.dir, "logs", name+".log")
}

// runLog is outside of logs/, which the cluster itself clears.
func (l layout) runLog() string { return filepath.Join(l.dir, "run.log") }

// newLayout makes dir absolute, which everything that ends up in a kubeconfig
// needs; "" is the user's default cluster.
func newLayout(dir string) (layout, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return layout{}, fmt.Errorf("finding the cache directory: %w; name a directory with --dir", err)
		}
		dir = filepath.Join(cache, "deployer", "devcluster")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return layout{}, fmt.Errorf("the directory %q: %w", dir, err)
	}
	return layout{dir: abs}, nil
}

// reset makes the directory ready for a new cluster. It removes what an earlier
// cluster left and nothing else, as the directory may be any the user named.
func (l layout) reset() error {
	for _, path := range []string{
		l.etcd(), l.kubeconfig(), l.auditLog(), l.state(), l.pki(""), l.conf(""), filepath.Join(l.dir, "logs"),
	} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing what an earlier cluster left: %w", err)
		}
	}
	for _, path := range []string{l.pki(""), l.conf(""), filepath.Join(l.dir, "logs")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("creating the cluster's directory: %w", err)
		}
	}
	return nil
}

// discard removes what nobody can use any more once the cluster has stopped. The
// logs stay, for whoever wonders why.
func (l layout) discard() error {
	return errors.Join(os.Remove(l.state()), os.RemoveAll(l.etcd()))
}

// state is what is known about a running cluster.
type state struct {
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Server   string    `json:"server"`
	Nodes    int       `json:"nodes"`
	Version  string    `json:"version"`
	BootTook float64   `json:"boot_seconds"`
}

// running gives the state of the cluster that is ready in the directory; nil without one.
func (l layout) running() (*state, error) {
	data, err := os.ReadFile(l.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's state: %w", err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("reading %s: %w", l.state(), err)
	}
	if !isAlive(s.PID) {
		return nil, nil
	}
	return &s, nil
}

// isAlive reports whether a process runs.
func isAlive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// writeState says that the cluster is ready: readers see the whole file or none.
func (l layout) writeState(s state) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the cluster's state: %w", err)
	}
	next := l.state() + ".new"
	if err := os.WriteFile(next, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the cluster's state: %w", err)
	}
	return os.Rename(next, l.state())
}
