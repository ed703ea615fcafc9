#!/bin/sh
# Runs a command beside a real node: bin/devcluster run --nodes 0 -- sh scripts/realnode.sh COMMAND…
#
# Node/real-0 is a kubelet with a containerd of its own, in a PID and a mount namespace: when their first
# process ends, in whatever way, the kernel ends the others and removes the mounts. It needs Linux, root, and
# Debian's containerd, runc, containernetworking-plugins, busybox-static, iproute2 and util-linux.
set -eu
name=dc-$$ # of the bridge and of the cgroups

if [ "${1-}" != --inside ]; then
	command -v containerd runc ctr busybox ip setpriv unshare >/dev/null || { echo "realnode: programs are missing; make test-node installs them" >&2; exit 1; }
	subnet=10.245.$(($$ % 256)) dir=$(mktemp -d)
	cleanup() {
		[ -z "$node" ] || kill -KILL "$node" 2>/dev/null || true # unshare ignores the other signals
		wait 2>/dev/null || true
		ip link delete "$name" 2>/dev/null || true
		for _ in 1 2 3 4 5 6 7 8 9 10; do # the kernel takes a moment
			find /sys/fs/cgroup -depth -type d -path "*/$name*" -exec rmdir {} + 2>/dev/null && break
			sleep 0.3
		done
		rm -rf "$dir"
	}
	node=
	trap cleanup EXIT
	trap 'exit 143' INT TERM
	ip link add "$name" type bridge
	ip address add "$subnet.1/24" dev "$name"
	ip link set "$name" up
	setpriv --pdeathsig KILL unshare --pid --fork --kill-child --mount --mount-proc sh "$0" --inside "$dir" "$name" "$subnet" >"$dir/log" 2>&1 &
	node=$!
	kubectl() { bin/devcluster kubectl --kubeconfig "$KUBECONFIG" "$@"; }
	tries=0
	until [ "$(kubectl get node real-0 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}{.spec.taints}' 2>/dev/null)" = True ]; do
		tries=$((tries + 1))
		if ! kill -0 "$node" 2>/dev/null || [ $tries -gt 120 ]; then
			tail -n 30 "$dir/log" >&2
			echo 'realnode: no container can run here, see above; a sandbox or a container around this may forbid it' >&2
			exit 1
		fi
		sleep 0.5
	done
	code=0
	DEPLOYER_TEST_NODE=1 "$@" || code=$?
	exit $code
fi
dir=$2 name=$3 subnet=$4

# Empty directories where containerd and kubelet write at fixed places, but for the file that names servers.
mount --make-rshared / # volumes may ask for propagation
resolv=$(readlink -f /etc/resolv.conf) && cp "$resolv" "$dir/resolv.conf"
for d in /run /var/lib /var/log; do mount -t tmpfs tmpfs $d; done
[ -e "$resolv" ] || { mkdir -p "$(dirname "$resolv")" && cp "$dir/resolv.conf" "$resolv"; }
# What a kubelet wants of the machine, which keeps its own.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	file=/proc/sys/${setting%=*}
	[ -e "$file" ] || continue
	echo "${setting#*=}" >"$dir/setting" && cp "$dir/setting" "/run/$(basename "$file")" && mount --bind "/run/$(basename "$file")" "$file"
done

# The images are the machine's busybox, whatever their names say.
mkdir -p "$dir/root/bin" "$dir/root/etc" "$dir/root/proc" "$dir/root/root" "$dir/root/sys" "$dir/root/dev" "$dir/root/tmp" "$dir/images"
chmod 1777 "$dir/root/tmp"
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$dir/root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$dir/root/etc/group"
cp "$(command -v busybox)" "$dir/root/bin/busybox"
for c in $(busybox --list); do [ "$c" = busybox ] || ln -s busybox "$dir/root/bin/$c"; done
chmod -R a+rX "$dir/root"
tar -C "$dir/root" --owner=0 --group=0 -cf "$dir/images/layer.tar" .
layer=$(sha256sum <"$dir/images/layer.tar") arch=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/') manifest=
image() { # NAME COMMAND
	printf '{"architecture":"%s","os":"linux","config":{"Cmd":%s,"Env":["PATH=/bin"],"Labels":{"name":"%s"}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
		"$arch" "$2" "$1" "${layer%% *}" >"$dir/config"
	config=$(sha256sum <"$dir/config")
	mv "$dir/config" "$dir/images/${config%% *}.json"
	manifest="$manifest${manifest:+,}{\"Config\":\"${config%% *}.json\",\"RepoTags\":[\"$1\"],\"Layers\":[\"layer.tar\"]}"
}
image docker.io/library/busybox:1.37 '["sh"]'
image deployer.test/busybox:1 '["sh"]'
image registry.k8s.io/pause:3.10 '["sleep","2147483647"]'
echo "[$manifest]" >"$dir/images/manifest.json"
tar -C "$dir/images" -cf "$dir/images.tar" .

# Pods reach each other and the machine. A machine without CAP_SYS_RESOURCE refuses the negative scores that a kubelet asks for.
plugins=/usr/lib/cni
[ -e $plugins/bridge ] || plugins=/opt/cni/bin
mkdir -p "$dir/cni" "$dir/tmp"
cat >"$dir/cni/10-real.conflist" <<END
{"cniVersion": "0.4.0", "name": "$name", "plugins": [{"type": "bridge", "bridge": "$name",
  "ipam": {"type": "host-local", "dataDir": "$dir/ipam", "ranges": [[{"subnet": "$subnet.0/24", "gateway": "$subnet.1"}]]}}]}
END
cat >"$dir/containerd.toml" <<END
version = 2
root = "$dir/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "$dir/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$plugins"
    conf_dir = "$dir/cni"
END
# A kubelet that takes nothing from the machine but its cgroup, and never evicts pods because the machine is full.
cat >"$dir/kubelet.json" <<END
{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
  "containerRuntimeEndpoint": "unix://$dir/containerd.sock", "address": "$subnet.1", "healthzPort": 0,
  "authentication": {"x509": {"clientCAFile": "$DEPLOYER_TEST_DIR/pki/ca.crt"}}, "podLogsDir": "$dir/pod-logs",
  "volumePluginDir": "$dir/volume-plugins", "resolvConf": "", "clusterDNS": ["10.96.0.10"], "clusterDomain": "cluster.local",
  "cgroupDriver": "cgroupfs", "cgroupRoot": "/$name", "cgroupsPerQOS": false, "failCgroupV1": false, "failSwapOn": false,
  "oomScoreAdj": 0, "serializeImagePulls": false, "makeIPTablesUtilChains": false, "enforceNodeAllocatable": ["none"],
  "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
  "imageGCHighThresholdPercent": 100, "syncFrequency": "10s"}
END
export TMPDIR="$dir/tmp"
containerd --config "$dir/containerd.toml" &
until [ -S "$dir/containerd.sock" ]; do sleep 0.1; done
ctr="ctr --address=$dir/containerd.sock --namespace=k8s.io"
$ctr images import --no-unpack "$dir/images.tar"
# containerd and kubelet would start where no container can run, and tell it in the Events of pods only.
$ctr run --rm --snapshotter=native "--cgroup=/$name/first" deployer.test/busybox:1 first true
# A role of devcluster ends when its standard input closes.
tail -f /dev/null | bin/devcluster kubelet --config="$dir/kubelet.json" --kubeconfig="$DEPLOYER_TEST_DIR/conf/kubelet" \
	--root-dir="$dir/kubelet" --cert-dir="$dir/kubelet/pki" --hostname-override=real-0 --node-ip="$subnet.1" --node-labels=deployer.dev/node=real
