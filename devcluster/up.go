package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// upCommand starts "run" in the background, or finds the cluster that runs, and prints the path of its kubeconfig.
func upCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	dir, nodes := dirFlag(flags), nodesFlag(flags)
	l, err := parse(flags, args, dir)
	if err != nil {
		return err
	}
	running, err := l.running()
	if err != nil {
		return err
	}
	if running == nil {
		if err := background(ctx, l, *nodes); err != nil {
			return err
		}
	} else if running.Nodes != *nodes {
		fmt.Fprintf(os.Stderr, "devcluster: the cluster that is up has %d nodes, not %d\n", running.Nodes, *nodes)
	}
	fmt.Println(l.kubeconfig())
	return nil
}

// background starts a cluster in a session of its own and waits until it is ready.
func background(ctx context.Context, l layout, nodes int) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("creating the cluster's directory: %w", err)
	}
	log, err := os.Create(l.runLog())
	if err != nil {
		return fmt.Errorf("opening the cluster's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(executable, "run", "--dir="+l.dir, "--nodes="+strconv.Itoa(nodes))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if running, err := l.running(); err != nil || running != nil {
			return err
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the cluster has ended (%w); the end of %s:\n%s", err, l.runLog(), tail(l.runLog(), 15))
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
			<-ended
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// downCommand stops the cluster of a directory. No cluster is no error.
func downCommand(ctx context.Context, args []string) error {
	l, running, err := find("down", args)
	if err != nil {
		return err
	}
	if running == nil {
		fmt.Fprintln(os.Stderr, "devcluster: nothing runs in", l.dir)
		return nil
	}
	if err := syscall.Kill(running.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping process %d: %w", running.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for isAlive(running.PID) {
		select {
		case <-ctx.Done(): // its children go with it
			return errors.Join(fmt.Errorf("the cluster did not stop within %s, killing it", stopTimeout), syscall.Kill(running.PID, syscall.SIGKILL))
		case <-time.After(poll):
		}
	}
	return nil
}

// statusCommand prints what runs in a directory.
func statusCommand(_ context.Context, args []string) error {
	l, running, err := find("status", args)
	if err != nil {
		return err
	}
	fmt.Println("directory   ", l.dir)
	if running == nil {
		fmt.Println("status       not running")
		return errNotRunning
	}
	fmt.Println("status       running since", running.Started.Local().Format(time.RFC3339))
	fmt.Println("kubeconfig  ", l.kubeconfig())
	fmt.Println("audit log   ", l.auditLog())
	fmt.Println("server      ", running.Server)
	fmt.Println("version     ", running.Version)
	fmt.Println("nodes       ", running.Nodes)
	fmt.Println("process     ", running.PID)
	return nil
}

// find understands the command line of a command that has only --dir, and looks what runs there; nil when nothing does.
func find(command string, args []string) (layout, *state, error) {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	dir := dirFlag(flags)
	l, err := parse(flags, args, dir)
	if err != nil {
		return l, nil, err
	}
	running, err := l.running()
	return l, running, err
}

func dirFlag(flags *flag.FlagSet) *string {
	return flags.String("dir", os.Getenv("DEVCLUSTER_DIR"), "the cluster's directory (default: in the user's cache directory)")
}

func nodesFlag(flags *flag.FlagSet) *int {
	return flags.Int("nodes", defaultNodes, "how many simulated nodes")
}

// parse understands a command line without arguments.
func parse(flags *flag.FlagSet, args []string, dir *string) (layout, error) {
	if err := flags.Parse(args); err != nil {
		return layout{}, errUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "devcluster %s takes no arguments, got %q\n", flags.Name(), flags.Args())
		return layout{}, errUsage
	}
	return newLayout(*dir)
}
