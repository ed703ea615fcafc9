package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// A real node is a kubelet with a containerd of its own. All of its processes,
// those of containers too, are in one PID namespace and one mount namespace,
// whose first process is this program in the role "node". When that process
// ends, in whatever way, the kernel ends all others and removes their mounts and
// network namespaces. What the kernel doesn't remove, a bridge and empty
// cgroups, goes by the name that realName gives; see sweepNode.
const (
	// realNodeName is the name of the real node.
	realNodeName = "real-0"

	// realNodeLabel is how pods ask for the real node when there are others.
	realNodeLabel = "deployer.dev/node=real"

	// nodeRole is the role of the first process of the node.
	nodeRole = "node"

	// nodeRoot is where the processes of the node see layout.node. It is the same
	// for all clusters, and short: paths of sockets may have 107 bytes only.
	nodeRoot = "/run/devcluster"

	containerdSocket = nodeRoot + "/containerd.sock"
)

// realName is the name of everything of the cluster's real node that the whole
// machine sees: its bridge (at most 15 bytes) and its cgroups.
func (l layout) realName() string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(l.dir)) // never fails, see package hash
	return fmt.Sprintf("dc-%012x", hash.Sum64()&0xffffffffffff)
}

// node is a file or directory of the real node.
func (l layout) node(name string) string { return filepath.Join(l.dir, "node", name) }

func realNode(l layout) component {
	return component{nodeRole, []string{"--dir=" + l.dir}}
}

// startRealNode starts the real node. It needs the API server's files.
func (s *supervisor) startRealNode(ctx context.Context) error {
	s.report(message{Progress: "starting containerd and kubelet"})
	// Before anything else is created: this is what sweepLeft looks for.
	if err := os.MkdirAll(s.layout.node(""), 0o700); err != nil {
		return fmt.Errorf("creating the node's directory: %w", err)
	}
	bridge, err := createBridge(s.layout)
	if err != nil {
		return err
	}
	if err := writeNode(ctx, s.layout, bridge); err != nil {
		return err
	}
	err = s.start(realNode(s.layout))
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w\n  a real node needs new PID and mount namespaces, which a sandbox or a container around this program may forbid; leave out --real-node for simulated nodes", err)
	}
	return err
}

// writeNode writes all files of the real node: its configuration and images.
func writeNode(ctx context.Context, l layout, bridge *net.IPNet) error {
	for _, dir := range []string{"cni", "tmp"} {
		if err := os.MkdirAll(l.node(dir), 0o700); err != nil {
			return fmt.Errorf("creating the node's directory: %w", err)
		}
	}
	config, err := kubeletConfig(l, bridge)
	if err != nil {
		return err
	}
	network, err := networkConfig(l, bridge)
	if err != nil {
		return err
	}
	programs, err := findPrograms()
	if err != nil {
		return err
	}
	// Copies, as the node doesn't see the cluster's directory.
	kubeconfig, err := os.ReadFile(l.conf("kubelet"))
	if err != nil {
		return fmt.Errorf("reading the kubelet's kubeconfig: %w", err)
	}
	ca, err := os.ReadFile(l.pki("ca.crt"))
	if err != nil {
		return fmt.Errorf("reading the cluster's authority: %w", err)
	}
	for name, content := range map[string][]byte{
		"containerd.toml":            fmt.Appendf(nil, containerdConfig, programs.plugins),
		"cni/10-devcluster.conflist": network,
		"kubelet.json":               config,
		"kubeconfig":                 kubeconfig,
		"ca.crt":                     ca,
	} {
		if err := os.WriteFile(l.node(name), content, 0o600); err != nil {
			return fmt.Errorf("writing the node's configuration: %w", err)
		}
	}
	return writeImages(ctx, l.node("images.tar"), programs.busybox)
}

// containerdConfig is the configuration of the node's containerd; %q is the
// directory of the network plugins. Its snapshotter works on any file system.
// oom_score_adj is restricted because a machine without CAP_SYS_RESOURCE refuses
// the negative scores that a kubelet asks for.
const containerdConfig = `version = 2
root = "` + nodeRoot + `/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs"]

[grpc]
  address = "` + containerdSocket + `"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  restrict_oom_score_adj = true
  disable_apparmor = true

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = "` + nodeRoot + `/cni"
`

// networkConfig puts pods on the bridge. They reach each other and the machine,
// and nothing else: without a route there is nothing to forward and to
// masquerade, and the machine's own settings stay as they are.
func networkConfig(l layout, bridge *net.IPNet) ([]byte, error) {
	subnet := net.IPNet{IP: bridge.IP.Mask(bridge.Mask), Mask: bridge.Mask}
	data, err := json.Marshal(map[string]any{
		"cniVersion": "0.4.0",
		"name":       l.realName(),
		"plugins": []any{map[string]any{
			"type":   "bridge",
			"bridge": l.realName(),
			"ipam": map[string]any{
				"type":    "host-local",
				"dataDir": nodeRoot + "/ipam",
				"ranges":  [][]any{{map[string]any{"subnet": subnet.String(), "gateway": bridge.IP.String()}}},
			},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the network's configuration: %w", err)
	}
	return data, nil
}

// kubeletConfig is a kubelet that takes nothing from the machine but its cgroup,
// and never evicts pods because the machine is full.
func kubeletConfig(l layout, bridge *net.IPNet) ([]byte, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	config := kubeletconfig.KubeletConfiguration{
		TypeMeta:                 metav1.TypeMeta{Kind: "KubeletConfiguration", APIVersion: kubeletconfig.SchemeGroupVersion.String()},
		ContainerRuntimeEndpoint: "unix://" + containerdSocket,
		// The API server asks for logs there; others can't reach it.
		Address:             bridge.IP.String(),
		Port:                int32(port),
		HealthzPort:         new(int32(0)),
		Authentication:      kubeletconfig.KubeletAuthentication{X509: kubeletconfig.KubeletX509Authentication{ClientCAFile: nodeRoot + "/ca.crt"}},
		PodLogsDir:          nodeRoot + "/pod-logs",
		VolumePluginDir:     nodeRoot + "/volume-plugins",
		ResolverConfig:      new(""),
		ClusterDNS:          []string{clusterDNS}, // nobody answers there; without, each pod gets a warning
		ClusterDomain:       "cluster.local",
		CgroupDriver:        "cgroupfs",
		CgroupRoot:          "/" + l.realName(),
		CgroupsPerQOS:       new(false),
		FailCgroupV1:        new(false),
		FailSwapOn:          new(false),
		OOMScoreAdj:         new(int32(0)),
		SerializeImagePulls: new(false),
		// The rules of iptables that a kubelet makes are for kube-proxy.
		MakeIPTablesUtilChains:      new(false),
		EnforceNodeAllocatable:      []string{"none"},
		EvictionHard:                map[string]string{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
		ImageGCHighThresholdPercent: new(int32(100)), // never remove images: they can't be pulled
		SyncFrequency:               metav1.Duration{Duration: 10 * time.Second},
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("writing the kubelet's configuration: %w", err)
	}
	return data, nil
}

// kubeletArgs is the command line of the kubelet.
func kubeletArgs(address string) []string {
	return []string{
		"--config=" + nodeRoot + "/kubelet.json",
		"--kubeconfig=" + nodeRoot + "/kubeconfig",
		"--root-dir=" + nodeRoot + "/kubelet",
		"--cert-dir=" + nodeRoot + "/kubelet/pki",
		"--hostname-override=" + realNodeName,
		"--node-ip=" + address,
		"--node-labels=" + realNodeLabel,
	}
}

// sweepLeft removes what is left of the cluster's real node, if there was one and
// it ended without being asked. The caller holds the lock of a living cluster.
func sweepLeft(l layout) error {
	if _, err := os.Stat(l.node("")); os.IsNotExist(err) {
		return nil
	}
	return sweepNode(l)
}
