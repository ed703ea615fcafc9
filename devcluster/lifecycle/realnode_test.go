package lifecycle

import (
	"bytes"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// needsRealNode skips the test where there can't be a real node.
func needsRealNode(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a real node needs root")
	}
	for _, program := range []string{"containerd", "runc", "busybox"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("a real node needs programs that make test-node installs: %v", err)
		}
	}
	if _, err := os.Stat("/usr/lib/cni/bridge"); err != nil {
		t.Skipf("a real node needs programs that make test-node installs: %v", err)
	}
}

// realTraces finds what the real node of the cluster in dir has on this machine:
// a network bridge, cgroups, and processes of containers that have mark on their
// command line.
func realTraces(t *testing.T, dir, mark string) []string {
	t.Helper()
	var found []string
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		alias, err := os.ReadFile("/sys/class/net/" + i.Name + "/ifalias")
		if err == nil && strings.TrimSpace(string(alias)) == "devcluster "+dir {
			found = append(found, "interface "+i.Name)
			found = append(found, cgroupsNamed(t, i.Name)...)
		}
	}
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if line, err := os.ReadFile(path); err == nil && bytes.HasPrefix(line, []byte("sleep\x00"+mark)) {
			found = append(found, "process "+path)
		}
	}
	return found
}

// cgroupsNamed finds the cgroups with that name, in all hierarchies.
func cgroupsNamed(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == name {
			found = append(found, "cgroup "+path)
			return fs.SkipDir
		}
		return nil // cgroups come and go
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// startSleeper runs a pod on the real node.
func startSleeper(t *testing.T, kubeconfig, mark string) {
	t.Helper()
	kubectl := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), program(t), append([]string{"kubectl", "--kubeconfig", kubeconfig}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	kubectl("run", "sleeper", "--image=deployer.test/busybox:1", "--", "sleep", mark)
	kubectl("wait", "--for=condition=ready", "--timeout=60s", "pod/sleeper")
}

func TestRealNodeLeavesNothingBehind(t *testing.T) {
	needsRealNode(t)
	dir := clusterDir(t)
	const mark = "86399" // seconds to sleep that nobody else would choose
	up := func() string {
		out, said, code := devcluster(t, "up", "--dir", dir, "--real-node")
		if code != 0 {
			t.Fatal(said)
		}
		startSleeper(t, strings.TrimSpace(out), mark)
		// The bridge, cgroups, the process.
		if found := realTraces(t, dir, mark); len(found) < 3 {
			t.Fatalf("of a real node there is only %q", found)
		}
		bridge := strings.TrimPrefix(realTraces(t, dir, mark)[0], "interface ")
		return bridge
	}
	gone := func(bridge string) {
		t.Helper()
		if found := append(realTraces(t, dir, mark), cgroupsNamed(t, bridge)...); len(found) > 0 {
			t.Errorf("left behind: %q", found)
		}
	}

	bridge := up()
	if _, said, code := devcluster(t, "down", "--dir", dir); code != 0 {
		t.Fatal(said)
	}
	gone(bridge)

	up()
	if err := syscall.Kill(supervisor(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of all processes", none(t, dir))
	if _, said, code := devcluster(t, "down", "--dir", dir); code != 0 {
		t.Fatal(said)
	}
	gone(bridge)
}

func TestRealNodeNeedsItsPrograms(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a real node needs root")
	}
	cmd := exec.CommandContext(t.Context(), program(t), "up", "--dir", t.TempDir(), "--real-node")
	cmd.Env = []string{"PATH=/nonexistent", "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if want := "apt-get install --no-install-recommends containerd runc"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("up without containerd: %v\n%s\nwant %q", err, out, want)
	}
}
