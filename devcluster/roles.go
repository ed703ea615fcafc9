package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"

	"deployer/devcluster/controlplane"
)

// roles are the parts of the cluster this binary can be. Each runs until it is
// stopped and returns the exit code.
func roles() map[string]func(args []string) int {
	all := map[string]func(args []string) int{
		"etcd": role("etcd", runEtcd),
		"kwok": role("kwok", runKwok),
	}
	maps.Copy(all, controlplane.Roles())
	maps.Copy(all, nodeRoles())
	return all
}

// role is a part that run is, of two arguments, until the process is told to stop.
func role(name string, run func(ctx context.Context, first, second string) error) func(args []string) int {
	return func(args []string) int {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := run(ctx, args[0], args[1]); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			return 1
		}
		return 0
	}
}

// runEtcd runs a single etcd member that keeps nothing safe: a cluster is new
// at every start, and fsync is what makes etcd slow.
func runEtcd(ctx context.Context, dir, client string) error {
	clientURL, err := url.Parse(client)
	if err != nil {
		return fmt.Errorf("the client URL %q: %w", client, err)
	}
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.UnsafeNoFsync = true
	cfg.LogLevel = "warn"
	// Compaction is done by the API server; this is room for a long-lived cluster.
	cfg.QuotaBackendBytes = 4 << 30
	peerURL := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenPeerUrls = []url.URL{peerURL}
	cfg.AdvertisePeerUrls = []url.URL{peerURL}
	cfg.ListenClientUrls = []url.URL{*clientURL}
	cfg.AdvertiseClientUrls = []url.URL{*clientURL}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)

	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("starting on %s: %w", client, err)
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return err
	}
}

// runKwok runs the simulated nodes: kwok by a file of Stage objects, and beside it the part of a kubelet that serves pod
// logs. The nodes it initializes tell the API server to ask for logs there.
func runKwok(ctx context.Context, kubeconfig, stages string) error {
	logPort, err := serveLogs(ctx, kubeconfig)
	if err != nil {
		return fmt.Errorf("serving pod logs: %w", err)
	}
	os.Args = []string{
		"kwok",
		"--kubeconfig=" + kubeconfig,
		"--config=" + stages,
		"--manage-nodes-with-annotation-selector=" + simulatedNodeKey + "=" + simulatedNodeValue,
		// Without a lease the node lifecycle controller takes a node for dead
		// between two of kwok's status updates.
		"--node-lease-duration-seconds=40",
		"--node-ip=127.0.0.1",
		fmt.Sprintf("--node-port=%d", logPort),
		// kwok's own server isn't used; without an address it would take logPort.
		"--server-address=127.0.0.1:0",
		"--cidr=10.244.0.1/16",
	}
	// component-base, linked in by the other roles, has registered a --version
	// on the global flag set that clashes with kwok's.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)

	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ = kwoklog.InitFlags(ctx, flags)
	if ctx, err = config.InitFlags(ctx, flags); err != nil {
		return fmt.Errorf("reading %s: %w", stages, err)
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	command.SetArgs(os.Args[1:])
	return command.ExecuteContext(ctx)
}
