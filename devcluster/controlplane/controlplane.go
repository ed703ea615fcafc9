// Package controlplane are the parts of a control plane that have a version: Kubernetes' own
// commands. It is built into devcluster, and by kubernetes.sh from the modules of other
// versions, so it takes of Kubernetes only what all of them have.
package controlplane

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Roles gives the parts by name. Each runs until it is stopped and returns the exit code.
func Roles() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		"kube-apiserver":          Role("kube-apiserver", apiserver.NewAPIServerCommand),
		"kube-controller-manager": Role("kube-controller-manager", controllers.NewControllerManagerCommand),
		"kube-scheduler": Role("kube-scheduler", func() *cobra.Command {
			return scheduler.NewSchedulerCommand()
		}),
	}
}

// Role runs one of Kubernetes' own commands as it would run by itself.
func Role(name string, command func() *cobra.Command) func(args []string) int {
	return func(args []string) int {
		os.Args = append([]string{name}, args...)
		return cli.Run(command())
	}
}

// ExitWithSupervisor ends this process as soon as its standard input closes.
// The supervisor holds the other end of that pipe, so a part of the cluster
// can't outlive it, whatever way the supervisor ended.
func ExitWithSupervisor() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // any error means that the pipe is gone, too
		os.Exit(1)
	}()
}
