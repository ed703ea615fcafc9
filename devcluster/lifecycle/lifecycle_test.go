// Package lifecycle tests how clusters come and go, with the built program. It
// is apart from the program's own package, whose tests would have to link all of
// Kubernetes first.
package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything here may take on a busy machine: as long as a start of a cluster may, and more.
const patience = 5 * time.Minute

// program is the path of the built program.
func program(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/devcluster")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no development cluster to test (%v); build it with devcluster/build.sh", err)
	}
	return path
}

// devcluster runs a command of the program and gives its output and exit code.
func devcluster(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program(t), args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// processes finds the processes of the cluster in dir. It looks for the
// directory in their command lines.
func processes(t *testing.T, dir string) []int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(line, []byte(dir)) || !bytes.Contains(line, []byte("devcluster")) {
			continue // others, and those that have just ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

// eventually waits until met.
func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s: not after %s", what, patience)
		case <-tick.C:
		}
	}
}

func none(t *testing.T, dir string) func() bool {
	return func() bool { return len(processes(t, dir)) == 0 }
}

// TestClusterInTheBackground: scripts/cluster.sh starts one cluster, and stops it. It leaves a process alone that has got
// the number of a cluster which has crashed, and Ctrl-C of the script that called it doesn't end the cluster.
func TestClusterInTheBackground(t *testing.T) {
	dir := t.TempDir()
	command := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "sh", append([]string{"../../scripts/cluster.sh"}, args...)...)
		cmd.Env = append(os.Environ(), "DEVCLUSTER_DIR="+dir)
		return cmd
	}
	cluster := func(args ...string) (string, error) {
		out, err := command(t.Context(), args...).CombinedOutput()
		return string(out), err
	}
	_ = program(t)
	t.Cleanup(func() { _ = command(context.Background(), "down").Run() })

	stranger := exec.CommandContext(t.Context(), "sleep", "600")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	crashed := func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(stranger.Process.Pid)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	crashed()
	if out, err := cluster("down"); err != nil {
		t.Errorf("down after a crash: %v: %s", err, out)
	}
	crashed()

	first := command(t.Context(), "up", "--nodes", "1")
	first.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first start", func() bool { return len(processes(t, dir)) > 0 })
	want := "export KUBECONFIG=" + filepath.Join(dir, "kubeconfig") + "\n"
	if out, err := cluster("up"); err != nil || !strings.Contains(out, want) { // waits for the first start
		t.Fatalf("up: %v, %q, want %q", err, out, want)
	}
	if said, err := os.ReadFile(filepath.Join(dir, "run.log")); err != nil || !bytes.Contains(said, []byte("ready,")) {
		t.Errorf("the second start says that the cluster is there: %v, %s", err, said)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("the first start: %v", err)
	}
	if err := syscall.Kill(-first.Process.Pid, syscall.SIGINT); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("Ctrl-C reaches the cluster: %v", err)
	}
	if _, said, code := devcluster(t, "run", "--dir", dir, "--", "true"); code != 1 || !strings.Contains(said, "another cluster runs in "+dir) {
		t.Errorf("run in the directory of a cluster that is up: code %d and %s", code, said)
	}
	for range 2 { // the second finds nothing to do
		if out, err := cluster("down"); err != nil {
			t.Errorf("down: %v: %s", err, out)
		}
	}
	eventually(t, "the end of all processes", none(t, dir))

	if err := stranger.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := stranger.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the other process was ended before the test did it: %v", err)
	}
}

// TestKubectlNeedsACluster: it never takes the user's own.
func TestKubectlNeedsACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	if _, said, code := devcluster(t, "kubectl", "get", "pods"); code != 1 || !strings.Contains(said, "set KUBECONFIG") {
		t.Errorf("kubectl without KUBECONFIG: code %d and %s", code, said)
	}
}

func TestRunPassesOnTheExitCode(t *testing.T) {
	script := `test -s "$KUBECONFIG" && test "$KUBECONFIG" = "$DEPLOYER_TEST_KUBECONFIG" &&
		test -s "$DEPLOYER_TEST_AUDIT_LOG" && echo "$DEPLOYER_TEST_DIR" && exit 7`
	out, said, code := devcluster(t, "run", "--nodes", "1", "--", "sh", "-c", script)
	if code != 7 {
		t.Fatalf("run: code %d, want 7\n%s%s", code, out, said)
	}
	dir := strings.TrimSpace(out)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory %s is still there: %v", dir, err)
	}
	eventually(t, "the end of all processes", none(t, dir))

	if _, _, code := devcluster(t, "run", "--nodes", "1", "--", "sh", "-c", "kill -TERM $$"); code != 128+15 {
		t.Errorf("run of a command that is killed: code %d, want 143", code)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	for name, end := range map[string]func(cmd *exec.Cmd, dir string) error{
		"when run is killed":         func(cmd *exec.Cmd, _ string) error { return cmd.Process.Kill() },
		"when run is interrupted":    func(cmd *exec.Cmd, _ string) error { return cmd.Process.Signal(os.Interrupt) },
		"when a component is killed": killOne(t, "etcd"),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			// A command that waits for ever, in one process that processes finds.
			command := "read forever # devcluster " + dir
			cmd := exec.CommandContext(t.Context(), program(t), "run", "--dir", dir, "--nodes", "1", "--", "sh", "-c", command)
			input, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the command under run", func() bool {
				return slices.ContainsFunc(processes(t, dir), func(pid int) bool {
					line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
					return err == nil && bytes.HasPrefix(line, []byte("sh\x00"))
				})
			})
			if err := end(cmd, dir); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed, interrupted, or left without a cluster
			eventually(t, "the end of all processes", none(t, dir))
		})
	}
}

// killOne kills the process of one component.
func killOne(t *testing.T, name string) func(*exec.Cmd, string) error {
	return func(_ *exec.Cmd, dir string) error {
		for _, pid := range processes(t, dir) {
			line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			if err == nil && bytes.Contains(line, []byte("\x00"+name+"\x00")) {
				return syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		return errors.New("no process of " + name)
	}
}
