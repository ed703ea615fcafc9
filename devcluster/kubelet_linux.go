package main

import (
	"context"

	"github.com/spf13/cobra"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"deployer/devcluster/controlplane"
)

// nodeRoles has the kubelet that scripts/realnode.sh runs.
func nodeRoles() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		"kubelet": controlplane.Role("kubelet", func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	}
}
