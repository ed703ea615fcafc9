package main

import (
	"context"
	"flag"
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
		"etcd": runEtcd,
		"kwok": runKwok,
	}
	maps.Copy(all, controlplane.Roles())
	maps.Copy(all, nodeRoles())
	return all
}

// runEtcd runs a single etcd member that keeps nothing safe: a cluster is new
// at every start, and fsync is what makes etcd slow.
func runEtcd(args []string) int {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	dir := flags.String("data-dir", "", "where the data is")
	client := flags.String("listen-client-url", "", "where the API server connects to")
	_ = flags.Parse(args) // ExitOnError

	if err := serveEtcd(*dir, *client); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
	return 0
}

// serveEtcd runs etcd until the process is told to stop.
func serveEtcd(dir, client string) error {
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

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
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

// runKwok runs the simulated nodes: kwok, and beside it the part of a kubelet
// that serves pod logs.
func runKwok(args []string) int {
	flags := flag.NewFlagSet("kwok", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	stages := flags.String("stages", "", "file with the Stage objects")
	_ = flags.Parse(args) // ExitOnError

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	port, err := serveLogs(ctx, *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kwok: serving pod logs:", err)
		return 1
	}
	if err := simulate(ctx, *kubeconfig, *stages, port); err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		return 1
	}
	return 0
}

// simulate runs kwok until ctx ends. The nodes it initializes tell the API
// server to ask for logs at logPort.
func simulate(ctx context.Context, kubeconfig, stages string, logPort int) error {
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
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		return fmt.Errorf("reading %s: %w", stages, err)
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	command.SetArgs(os.Args[1:])
	return command.ExecuteContext(ctx)
}
