package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// programs are programs of other projects that a real node needs.
type programs struct {
	plugins string // the directory of the network plugins
	busybox string // linked statically, to be the content of images
}

// checkRealNode says what has to be done before a real node can run here.
func checkRealNode() error {
	if os.Geteuid() != 0 {
		return errors.New("a real node needs root, for containers: run this as root, or leave out --real-node for simulated nodes")
	}
	_, err := findPrograms()
	return err
}

// findPrograms finds what a real node needs, or says what to install.
func findPrograms() (programs, error) {
	var found programs
	var missing, packages []string
	miss := func(what, from string) {
		missing = append(missing, what)
		if !slices.Contains(packages, from) {
			packages = append(packages, from)
		}
	}
	for _, p := range []struct{ name, from string }{
		{"containerd", "containerd"}, {"containerd-shim-runc-v2", "containerd"}, {"ctr", "containerd"}, {"runc", "runc"},
	} {
		if _, err := exec.LookPath(p.name); err != nil {
			miss(p.name, p.from)
		}
	}
	if found.plugins = findPlugins(); found.plugins == "" {
		miss("network plugins", "containernetworking-plugins")
	}
	if found.busybox = findBusybox(); found.busybox == "" {
		miss("busybox (statically linked)", "busybox-static")
	}
	if missing != nil {
		return programs{}, fmt.Errorf("a real node needs programs that are missing here: %s\n  to install them on Debian:   apt-get update && apt-get install --no-install-recommends %s",
			strings.Join(missing, ", "), strings.Join(packages, " "))
	}
	return found, nil
}

// findPlugins looks where Debian and where the project itself install them.
func findPlugins() string {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"} {
		complete := true
		for _, plugin := range []string{"bridge", "host-local", "loopback"} {
			if _, err := os.Stat(filepath.Join(dir, plugin)); err != nil {
				complete = false
			}
		}
		if complete {
			return dir
		}
	}
	return ""
}

// findBusybox gives the path of a busybox that runs without libraries, or "".
func findBusybox() string {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return ""
	}
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return ""
		}
	}
	return path
}
