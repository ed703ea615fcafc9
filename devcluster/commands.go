package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// defaultNodes is enough for pods that must not share a node.
const defaultNodes = 3

// stopTimeout is how long a cluster may take to stop when asked; killing its
// processes takes a moment.
const stopTimeout = 10 * time.Second

// upCommand starts a cluster in the background, or finds the one that runs, and
// prints the path of its kubeconfig.
func upCommand(ctx context.Context, args []string) error {
	var opts options
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	dir := dirFlag(flags)
	nodesFlags(flags, &opts)
	flags.DurationVar(&opts.idle, "idle", 0, "stop when no test has used the cluster for so long (0: never)")
	foreground := flags.Bool("foreground", false, "run here until interrupted, not in the background")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := opts.settleNodes(flags); err != nil {
		return err
	}
	var err error
	if opts.layout, err = newLayout(*dir); err != nil {
		return err
	}
	starting, err := lock(ctx, opts.layout.startLock())
	if err != nil {
		return err
	}
	defer starting.Close()
	running, err := findRunning(ctx, opts.layout)
	if err != nil {
		return err
	}
	if running != nil {
		if opts.real && !running.RealNode {
			return fmt.Errorf("the cluster that is up has no real node; stop it with: devcluster down --dir %s", opts.layout.dir)
		}
		if running.Nodes != opts.nodes {
			fmt.Fprintf(os.Stderr, "devcluster: the cluster that is up has %d nodes, not %d\n", running.Nodes, opts.nodes)
		}
		fmt.Println(opts.layout.kubeconfig())
		return nil
	}
	if err := checkDisk(opts.layout); err != nil {
		return err
	}
	if *foreground {
		return superviseHere(ctx, opts, starting)
	}
	if _, err := background(ctx, opts, false); err != nil {
		return err
	}
	fmt.Println(opts.layout.kubeconfig())
	return nil
}

// findRunning gives the cluster that is ready in the directory, or nil. It
// waits for one that is just stopping.
func findRunning(ctx context.Context, l layout) (*state, error) {
	deadline := time.Now().Add(stopTimeout)
	for {
		alive, err := l.alive()
		if err != nil || !alive {
			return nil, err
		}
		running, err := l.readState()
		if err != nil || running != nil {
			return running, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("a cluster in %s is neither ready nor gone; see %s", l.dir, l.supervisorLog())
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(poll):
		}
	}
}

// superviseHere runs the cluster in this process until ctx ends.
func superviseHere(ctx context.Context, opts options, starting io.Closer) error {
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	report := writeReports(write)
	go func() {
		if readReports(read, opts.layout) == nil {
			fmt.Println(opts.layout.kubeconfig())
		}
		starting.Close() // others may now find the cluster
	}()
	defer write.Close()
	return supervise(ctx, opts, report)
}

// downCommand stops the cluster of a directory. No cluster is no error.
func downCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	dir := dirFlag(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	l, err := newLayout(*dir)
	if err != nil {
		return err
	}
	running, err := findRunning(ctx, l)
	if err != nil {
		return err
	}
	if running == nil {
		fmt.Fprintln(os.Stderr, "devcluster: nothing runs in", l.dir)
		return sweepDead(l)
	}
	if err := syscall.Kill(running.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping process %d: %w", running.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	gone, err := lock(ctx, l.aliveLock())
	if err != nil {
		// Its children go with it.
		return errors.Join(fmt.Errorf("the cluster did not stop within %s, killing it", stopTimeout),
			syscall.Kill(running.PID, syscall.SIGKILL))
	}
	return gone.Close()
}

// sweepDead removes what is left of the cluster of a directory if it ended
// without being asked.
func sweepDead(l layout) error {
	if _, err := os.Stat(l.aliveLock()); os.IsNotExist(err) {
		return nil // there never was one
	}
	dead, err := tryLock(l.aliveLock())
	if errors.Is(err, errLocked) {
		return nil // somebody starts one
	}
	if err != nil {
		return err
	}
	defer dead.Close()
	return sweepLeft(l)
}

// statusCommand prints what runs in a directory.
func statusCommand(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("status", flag.ContinueOnError)
	dir := dirFlag(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	l, err := newLayout(*dir)
	if err != nil {
		return err
	}
	alive, err := l.alive()
	if err != nil {
		return err
	}
	fmt.Println("directory   ", l.dir)
	running, err := l.readState()
	if err != nil {
		return err
	}
	if !alive || running == nil {
		fmt.Println("status      ", map[bool]string{true: "starting or stopping", false: "not running"}[alive])
		return errNotRunning
	}
	fmt.Println("status       running since", running.Started.Local().Format(time.RFC3339))
	fmt.Println("kubeconfig  ", l.kubeconfig())
	fmt.Println("audit log   ", l.auditLog())
	fmt.Println("server      ", running.Server)
	fmt.Println("version     ", running.Version)
	fmt.Println("nodes       ", running.Nodes, map[bool]string{true: "simulated and " + realNodeName}[running.RealNode])
	fmt.Println("supervisor   process", running.PID)
	if running.Idle != "" {
		fmt.Println("stops        when unused for", running.Idle)
	}
	return nil
}

func dirFlag(flags *flag.FlagSet) *string {
	return flags.String("dir", os.Getenv("DEVCLUSTER_DIR"), "the cluster's directory (default: in the user's cache directory)")
}

func nodesFlags(flags *flag.FlagSet, opts *options) {
	flags.IntVar(&opts.nodes, "nodes", defaultNodes, "how many simulated nodes; by default none with --real-node")
	flags.BoolVar(&opts.real, "real-node", false, "run a real kubelet and real containers (Linux, root)")
}

// settleNodes checks what the command line says about nodes, and fills in what it
// leaves open.
func (o *options) settleNodes(flags *flag.FlagSet) error {
	if !o.real {
		return nil
	}
	given := false
	flags.Visit(func(f *flag.Flag) { given = given || f.Name == "nodes" })
	if !given {
		o.nodes = 0
	}
	return checkRealNode()
}

// parse understands a command line without arguments.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "devcluster %s takes no arguments, got %q\n", flags.Name(), flags.Args())
		return errUsage
	}
	return nil
}
