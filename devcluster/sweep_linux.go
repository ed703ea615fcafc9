package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// sweepTimeout is how long the kernel may take to be done with the processes of
// a node that was killed.
const sweepTimeout = 5 * time.Second

// sweepNode removes what the kernel leaves of the cluster's real node, which must
// have ended: the bridge, the cgroups and the files. Where there was no node, it
// does nothing and needs no rights.
func sweepNode(l layout) error {
	return errors.Join(deleteBridge(l), removeCgroups(l.realName()), removeNodeFiles(l))
}

func removeNodeFiles(l layout) error {
	if err := os.RemoveAll(l.node("")); err != nil {
		return fmt.Errorf("removing the files of the node: %w", err)
	}
	return nil
}

// removeCgroups removes a cgroup with all below it, in each hierarchy.
func removeCgroups(name string) error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := removeCgroup(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroup removes the cgroup at path, from the leaves up. Its processes have
// ended, or are about to.
func removeCgroup(path string) error {
	var dirs []string
	err := filepath.WalkDir(path, func(p string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // or it has just gone
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, p)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("looking for cgroups: %w", err)
	}
	deadline := time.Now().Add(sweepTimeout)
	for _, dir := range slices.Backward(dirs) {
		err := syscall.Rmdir(dir)
		for errors.Is(err, syscall.EBUSY) && time.Now().Before(deadline) {
			time.Sleep(poll) // nothing tells when the kernel is done
			err = syscall.Rmdir(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// cgroupRoots are the mount points of all hierarchies of cgroups.
func cgroupRoots() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	var roots []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			roots = append(roots, fields[1])
		}
	}
	return roots, nil
}
