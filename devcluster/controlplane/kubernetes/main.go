// Command kubernetes is a control plane of another version than devcluster's own. Its first
// argument says which part of it, as of devcluster.
package main

import (
	"fmt"
	"os"

	"deployer/devcluster/controlplane"
)

func main() {
	if len(os.Args) > 1 {
		if role, ok := controlplane.Roles()[os.Args[1]]; ok {
			controlplane.ExitWithSupervisor()
			os.Exit(role(os.Args[2:]))
		}
	}
	fmt.Fprintln(os.Stderr, "devcluster runs this program; it is not for use by hand")
	os.Exit(2)
}
