package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"deployer/devcluster/controlplane"
)

// containerdTimeout is how long containerd may take to listen.
const containerdTimeout = time.Minute

// nodeRoles are the parts of a real node this binary can be.
func nodeRoles() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		nodeRole:  runNode,
		"kubelet": controlplane.Role("kubelet", func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	}
}

// runNode is the first process of a real node. It must be alone in new mount and
// PID namespaces, see isolate.
func runNode(args []string) int {
	flags := flag.NewFlagSet(nodeRole, flag.ExitOnError)
	dir := flags.String("dir", "", "the cluster's directory")
	_ = flags.Parse(args) // ExitOnError

	if err := keepNode(layout{dir: *dir}); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		return 1
	}
	return 0
}

// keepNode starts the node and returns when a part of it has ended, which is
// always an error.
func keepNode(l layout) error {
	if os.Getpid() != 1 {
		return errors.New("this role is for the first process of a PID namespace; start it with: devcluster up --real-node")
	}
	n := &node{children: newChildren()}
	var err error
	// Before the mounts: they may hide the cluster's directory.
	if n.containerdLog, err = openLog(l, "containerd"); err != nil {
		return err
	}
	if n.kubeletLog, err = openLog(l, "kubelet"); err != nil {
		return err
	}
	if err := mountNode(l); err != nil {
		return err
	}
	if err := n.startContainerd(); err != nil {
		return err
	}
	if err := n.prepareImages(l.realName()); err != nil {
		return err
	}
	if err := n.startKubelet(); err != nil {
		return err
	}
	// Not before the end: a pipe that nobody holds is closed by the garbage collector.
	defer func() { _ = n.lifeline.Close() }()
	select {
	case status := <-n.containerd:
		return endedWith("containerd", status, n.containerdLog)
	case status := <-n.kubelet:
		return endedWith("kubelet", status, n.kubeletLog)
	}
}

// node is what the first process of a real node knows of the others.
type node struct {
	children                  *children
	containerd, kubelet       <-chan syscall.WaitStatus
	containerdLog, kubeletLog *os.File
	lifeline                  io.Closer // of the kubelet; closing it ends the kubelet
}

// startContainerd starts containerd and waits until it listens.
func (n *node) startContainerd() error {
	cmd := nodeCommand(n.containerdLog, "containerd", "--config="+nodeRoot+"/containerd.toml")
	var err error
	if n.containerd, err = n.children.start(cmd); err != nil {
		return fmt.Errorf("starting containerd: %w", err)
	}
	deadline := time.After(containerdTimeout)
	for {
		connection, err := net.Dial("unix", containerdSocket)
		if err == nil {
			return connection.Close()
		}
		select {
		case status := <-n.containerd:
			return endedWith("containerd", status, n.containerdLog)
		case <-deadline:
			return fmt.Errorf("containerd doesn't listen after %s: %w; the end of its log:\n%s", containerdTimeout, err, tailOf(n.containerdLog))
		case <-time.After(poll):
		}
	}
}

// prepareImages imports the images and runs a container, because containerd and
// the kubelet would start as well where no container can, and would then tell
// why in the Events of pods only.
func (n *node) prepareImages(name string) error {
	imported, err := n.children.run(ctr("images", "import", "--no-unpack", nodeRoot+"/images.tar"))
	if err != nil || !imported {
		return errors.Join(errors.New("importing the node's images: ctr has failed, see above"), err)
	}
	unpacked, err := n.children.run(ctr("run", "--rm", "--snapshotter=native", "--cgroup=/"+name+"/first", testImage, "first", "true"))
	if err != nil || !unpacked {
		return errors.Join(fmt.Errorf("no container can run on this machine, see above; a sandbox or a container around this program may forbid it. "+
			"Leave out --real-node for simulated nodes. The end of containerd's log:\n%s", tailOf(n.containerdLog)), err)
	}
	return nil
}

// startKubelet starts the kubelet; that it is ready is seen in its Node.
func (n *node) startKubelet() error {
	var config struct {
		Address string `json:"address"`
	}
	data, err := os.ReadFile(nodeRoot + "/kubelet.json")
	if err != nil {
		return fmt.Errorf("starting the kubelet: %w", err)
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("reading the kubelet's configuration: %w", err)
	}
	// The path of this program may be hidden by the mounts.
	cmd := nodeCommand(n.kubeletLog, "/proc/self/exe", append([]string{"kubelet"}, kubeletArgs(config.Address)...)...)
	// Roles end when their standard input closes.
	if n.lifeline, err = cmd.StdinPipe(); err != nil {
		return fmt.Errorf("starting the kubelet: %w", err)
	}
	if n.kubelet, err = n.children.start(cmd); err != nil {
		return fmt.Errorf("starting the kubelet: %w", err)
	}
	return nil
}

// ctr is a command for the node's containerd, in the kubelet's part of it.
func ctr(args ...string) *exec.Cmd {
	return nodeCommand(os.Stderr, "ctr", append([]string{"--address=" + containerdSocket, "--namespace=k8s.io"}, args...)...)
}

// nodeCommand is a command that writes to log and keeps its temporary files in
// the node's directory.
func nodeCommand(log *os.File, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = nodeRoot
	cmd.Env = append(os.Environ(), "TMPDIR="+nodeRoot+"/tmp")
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

func openLog(l layout, name string) (*os.File, error) {
	log, err := os.OpenFile(l.log(name), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	return log, nil
}

// endedWith explains why a part of the node that should run has ended.
func endedWith(name string, status syscall.WaitStatus, log *os.File) error {
	how := fmt.Sprintf("exit status %d", status.ExitStatus())
	if status.Signaled() {
		how = "signal " + status.Signal().String()
	}
	return fmt.Errorf("%s has ended (%s); the end of its log:\n%s", name, how, tailOf(log))
}

// tailOf gives the end of an open log, whose path may be hidden.
func tailOf(log *os.File) string { return tail(fmt.Sprintf("/proc/self/fd/%d", log.Fd()), 8) }
