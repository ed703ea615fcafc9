package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// isolate puts a process into new PID and mount namespaces. As their first
// process it takes all others with it when it ends.
func isolate(attributes *syscall.SysProcAttr) {
	attributes.Cloneflags |= syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
}

// sysctls are what a kubelet wants of the machine. The node gets files that have
// these values, and the machine keeps its own.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/staging/src/k8s.io/component-helpers/node/util/sysctl/sysctl.go
func sysctls() map[string]int {
	return map[string]int{
		"vm/overcommit_memory":      1,
		"vm/panic_on_oom":           0,
		"kernel/panic":              10,
		"kernel/panic_on_oops":      1,
		"kernel/keys/root_maxkeys":  1000000,
		"kernel/keys/root_maxbytes": 25000000,
	}
}

// mountNode gives the node, in its own mount namespace, its own process list, its
// directory at nodeRoot, and empty directories where containerd, network plugins
// and kubelets write at fixed places. An empty /run also keeps the machine's
// systemd out of it.
func mountNode(l layout) error {
	own, err := os.Open(l.node("")) // the new mounts may hide its path
	if err != nil {
		return fmt.Errorf("opening the node's directory: %w", err)
	}
	defer own.Close()
	resolver := resolverFile()
	mounts := []mount{
		{"", "/", "", syscall.MS_REC | syscall.MS_PRIVATE},
		{"", "/", "", syscall.MS_REC | syscall.MS_SHARED}, // volumes may ask for propagation
		{"proc", "/proc", "proc", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
		{"tmpfs", "/run", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV},
		{"tmpfs", "/var/lib", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV},
		{"tmpfs", "/var/log", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV},
		{fmt.Sprintf("/proc/self/fd/%d", own.Fd()), nodeRoot, "", syscall.MS_BIND},
	}
	for _, m := range mounts {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := resolver.restore(); err != nil {
		return err
	}
	return coverSysctls()
}

// mount is one mount of the node.
type mount struct {
	source, target, kind string
	flags                uintptr
}

func (m mount) do() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return fmt.Errorf("preparing the node's %s: %w", m.target, err)
	}
	if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
		return fmt.Errorf("mounting the node's %s: %w", m.target, err)
	}
	return nil
}

// coverSysctls mounts a file of its own over each of sysctls that exists.
func coverSysctls() error {
	for name, value := range sysctls() {
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(target); err != nil {
			continue // the kubelet will say if it matters
		}
		source := filepath.Join("/run", strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(source, []byte(strconv.Itoa(value)+"\n"), 0o644); err != nil {
			return fmt.Errorf("preparing the node's %s: %w", target, err)
		}
		if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting the node's %s: %w", target, err)
		}
	}
	return nil
}

// resolver is the file that /etc/resolv.conf leads to, if that is below /run.
type resolver struct {
	path    string
	content []byte
}

// resolverFile reads it; where it can't be read, names are not resolved anyway.
func resolverFile() resolver {
	path, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil || !strings.HasPrefix(path, "/run/") {
		return resolver{}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return resolver{}
	}
	return resolver{path, content}
}

// restore writes the file below the new /run.
func (r resolver) restore() error {
	if r.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
		return fmt.Errorf("preparing the node's resolv.conf: %w", err)
	}
	if err := os.WriteFile(r.path, r.content, 0o644); err != nil {
		return fmt.Errorf("preparing the node's resolv.conf: %w", err)
	}
	return nil
}
