// Command devcluster runs a real Kubernetes control plane with simulated nodes
// on one machine, for development and tests. The same binary is every part of
// the cluster: etcd, kube-apiserver, kube-controller-manager, kube-scheduler
// and kwok, by its first argument.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"deployer/devcluster/controlplane"
)

const usage = `devcluster runs a real Kubernetes API server, its controllers and nodes.

  devcluster run     [--dir D] [--nodes N] [-- COMMAND [ARGUMENT…]]
  devcluster kubectl ARGUMENT…

"run" starts an empty cluster for COMMAND, with KUBECONFIG set, and exits as
COMMAND does; without COMMAND the cluster runs until it is interrupted.
"kubectl" is kubectl, for the cluster of KUBECONFIG, which has to be set.
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	name, args := os.Args[1], os.Args[2:]
	if role, ok := roles()[name]; ok {
		controlplane.ExitWithSupervisor()
		os.Exit(role(args))
	}
	switch name {
	case "kubectl":
		os.Exit(runKubectl(args))
	case "run":
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := runCommand(ctx, args)
		stop()
		os.Exit(exitCode(err))
	case "help", "--help", "-h":
		fmt.Print(usage)
	default:
		fmt.Fprintf(os.Stderr, "devcluster: there is no command %q\n\n%s", name, usage)
		os.Exit(2)
	}
}

// errUsage is returned when the command line can't be understood; the flag
// package has printed why.
var errUsage = errors.New("usage")

// exitCode prints err, if it has something to tell, and gives the exit code.
// The exit code of a command under "run" is passed on.
func exitCode(err error) int {
	var command *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		return 2
	case errors.As(err, &command):
		return commandCode(command)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "devcluster: interrupted")
		return 130
	}
	fmt.Fprintln(os.Stderr, "devcluster:", err)
	return 1
}

// commandCode is the exit code of a command, in the way of a shell if it was
// ended by a signal.
func commandCode(ended *exec.ExitError) int {
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return ended.ExitCode()
}
