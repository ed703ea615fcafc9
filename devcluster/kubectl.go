package main

import (
	"errors"
	"os"

	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// runKubectl is kubectl as released, for whoever has none. It needs KUBECONFIG: it
// never takes the user's own cluster by accident.
func runKubectl(args []string) int {
	if os.Getenv("KUBECONFIG") == "" {
		return exitCode(errors.New("set KUBECONFIG; scripts/cluster.sh up prints it"))
	}
	os.Args = append([]string{"kubectl"}, args...)
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		cmdutil.CheckErr(err) // prints err and exits
		return 1
	}
	return 0
}
