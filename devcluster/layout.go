package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// layout is the directory of one cluster. The names in it are a promise: tests
// use kubeconfig, audit.log, pki/ca.crt and conf/kubelet.
type layout struct{ dir string }

func (l layout) kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }
func (l layout) auditLog() string   { return filepath.Join(l.dir, "audit.log") }
func (l layout) etcd() string       { return filepath.Join(l.dir, "etcd") }
func (l layout) pki(name string) string {
	return filepath.Join(l.dir, "pki", name)
}
func (l layout) conf(name string) string { return filepath.Join(l.dir, "conf", name) }
func (l layout) log(name string) string {
	return filepath.Join(l.dir, "logs", name+".log")
}

// newLayout makes dir absolute, which everything that ends up in a kubeconfig
// needs, and creates it.
func newLayout(dir string) (layout, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(abs, 0o700)
	}
	if err != nil {
		return layout{}, fmt.Errorf("creating the cluster's directory: %w", err)
	}
	return layout{dir: abs}, nil
}

// take makes the directory this process's until it ends.
func (l layout) take() error {
	lock, err := syscall.Open(filepath.Join(l.dir, "lock"), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err == nil {
		err = syscall.Flock(lock, syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another cluster runs in %s", l.dir)
	}
	if err != nil {
		return fmt.Errorf("locking the cluster's directory %s: %w", l.dir, err)
	}
	return nil
}

// reset makes the directory ready for a new cluster. It removes what an earlier
// cluster left and nothing else, as the directory may be any the user named.
func (l layout) reset() error {
	dirs := []string{l.pki(""), l.conf(""), filepath.Join(l.dir, "logs")}
	for _, path := range append(dirs, l.etcd(), l.kubeconfig(), l.auditLog()) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing what an earlier cluster left: %w", err)
		}
	}
	for _, path := range dirs {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("creating the cluster's directory: %w", err)
		}
	}
	return nil
}
