package main

import (
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// runKubectl is kubectl as released, for whoever has none. Unless KUBECONFIG or
// a flag names another cluster it talks to the one of scripts/cluster.sh: it never
// takes the user's own by accident.
func runKubectl(args []string) int {
	if os.Getenv("KUBECONFIG") == "" {
		cache, err := os.UserCacheDir()
		if err == nil {
			err = os.Setenv("KUBECONFIG", layout{filepath.Join(cache, "deployer", "devcluster")}.kubeconfig())
		}
		if err != nil {
			return exitCode(err)
		}
	}
	os.Args = append([]string{"kubectl"}, args...)
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		cmdutil.CheckErr(err) // prints err and exits
		return 1
	}
	return 0
}
