package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	// defaultNodes is enough for pods that must not share a node.
	defaultNodes = 3

	// stopTimeout is how long a command may take to stop when asked.
	stopTimeout = 10 * time.Second

	// minFree is what a cluster may write in a long test run, mostly its audit log.
	minFree = 500 << 20
)

// runCommand runs a command with a cluster of its own and passes its exit code on. Without a command it keeps the
// cluster until it is interrupted.
func runCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	dir := flags.String("dir", "", "where the cluster's files are kept (default: a temporary directory, which is deleted)")
	nodes := flags.Int("nodes", defaultNodes, "how many simulated nodes")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	if *dir == "" {
		temp, err := os.MkdirTemp("", "devcluster-")
		if err != nil {
			return fmt.Errorf("creating the cluster's directory: %w", err)
		}
		*dir = temp
		defer os.RemoveAll(temp)
	}
	l, err := newLayout(*dir)
	if err != nil {
		return err
	}
	if err := cmp.Or(l.take(), checkDisk(l)); err != nil {
		return err
	}
	// See process start: the kernel watches the thread that starts a child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &supervisor{layout: l, nodes: *nodes}
	defer s.stop()
	if err := s.boot(ctx); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	if flags.NArg() == 0 {
		return s.watch(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(s.watch(ctx)) }() // without the cluster, the command can stop
	err = runIn(ctx, l, flags.Args())
	if died := s.ended(); died != nil {
		return fmt.Errorf("the cluster ended before the command did: %w", died)
	}
	return err
}

// runIn runs a command with the environment that points it and its tests to the
// cluster. When ctx ends, the command gets the time to end by itself.
func runIn(ctx context.Context, l layout, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+l.kubeconfig(),
		"DEPLOYER_TEST_KUBECONFIG="+l.kubeconfig(),
		"DEPLOYER_TEST_AUDIT_LOG="+l.auditLog(),
		"DEPLOYER_TEST_DIR="+l.dir,
		"DEPLOYER_TEST_THROWN_AWAY=1",
	)
	cmd.SysProcAttr = dieWithParent()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("running %s: %w", args[0], err)
	}
	return err
}

// checkDisk fails early where etcd would fail obscurely later.
func checkDisk(l layout) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(l.dir, &fs); err != nil {
		return fmt.Errorf("looking at the free space of %s: %w", l.dir, err)
	}
	free := fs.Bavail * uint64(fs.Bsize)
	if free < minFree {
		return fmt.Errorf("only %d MiB are free on the disk of %s, a cluster needs %d MiB; free some or name another directory with --dir", free>>20, l.dir, minFree>>20)
	}
	return nil
}
