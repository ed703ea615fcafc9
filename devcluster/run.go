package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// runCommand runs a command with a cluster of its own and passes its exit code on.
func runCommand(ctx context.Context, args []string) error {
	var opts options
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	dir := flags.String("dir", "", "where the cluster is kept (default: a temporary directory)")
	keep := flags.Bool("keep", false, "keep the temporary directory, for its logs")
	nodesFlags(flags, &opts)
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	if flags.NArg() == 0 {
		fmt.Fprintf(os.Stderr, "devcluster run: which command?\n\n%s", usage)
		return errUsage
	}
	if err := opts.settleNodes(flags); err != nil {
		return err
	}
	if *dir == "" {
		temp, err := os.MkdirTemp("", "devcluster-")
		if err != nil {
			return fmt.Errorf("creating the cluster's directory: %w", err)
		}
		*dir = temp
		if *keep {
			fmt.Fprintln(os.Stderr, "devcluster: the cluster's files are in", temp)
		} else {
			defer os.RemoveAll(temp)
		}
	}
	var err error
	if opts.layout, err = newLayout(*dir); err != nil {
		return err
	}
	if err := os.MkdirAll(opts.layout.dir, 0o700); err != nil {
		return fmt.Errorf("creating the cluster's directory: %w", err)
	}
	if err := checkDisk(opts.layout); err != nil {
		return err
	}
	cluster, err := background(ctx, opts, true)
	if err != nil {
		return err
	}
	defer func() {
		cluster.stop()
		if err := sweepDead(opts.layout); err != nil { // it has been killed, maybe
			fmt.Fprintln(os.Stderr, "devcluster:", err)
		}
	}()
	err = runIn(ctx, opts, flags.Args())
	if cluster.died() {
		fmt.Fprintf(os.Stderr, "devcluster: the cluster ended before the command did; the end of %s:\n%s\n",
			opts.layout.supervisorLog(), tail(opts.layout.supervisorLog(), 15))
	}
	return err
}

// runIn runs a command with the environment that points it and its tests to the
// cluster. When ctx ends, the command gets the time to end by itself.
func runIn(ctx context.Context, opts options, args []string) error {
	// See process start: the kernel watches the thread that starts the command.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), clusterEnv(opts)...)
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

// clusterEnv are the variables that point to the cluster: KUBECONFIG for any
// program, the others for package kubetest and, of a real node, package nodetest.
func clusterEnv(opts options) []string {
	l := opts.layout
	env := []string{
		"KUBECONFIG=" + l.kubeconfig(),
		"DEPLOYER_TEST_KUBECONFIG=" + l.kubeconfig(),
		"DEPLOYER_TEST_AUDIT_LOG=" + l.auditLog(),
		"DEPLOYER_TEST_DIR=" + l.dir,
		"DEPLOYER_TEST_THROWN_AWAY=1",
	}
	if opts.real {
		env = append(env, "DEPLOYER_TEST_NODE=1")
	}
	return env
}
