package main

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// children are the processes of the node. Its first process inherits those whose
// parents have ended, such as containerd's shims, and is the only one that can
// wait for them; os/exec can't do that beside its own waiting.
type children struct {
	mu    sync.Mutex
	ended map[int]chan syscall.WaitStatus
}

func newChildren() *children {
	c := &children{ended: map[int]chan syscall.WaitStatus{}}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go func() {
		for range signals {
			c.reap()
		}
	}()
	return c
}

// start starts a command. How it ended can be read once from the channel.
func (c *children) start(cmd *exec.Cmd) (<-chan syscall.WaitStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan syscall.WaitStatus, 1)
	c.ended[cmd.Process.Pid] = ended
	return ended, nil
}

// run runs a command and says whether it ended with exit code 0.
func (c *children) run(cmd *exec.Cmd) (bool, error) {
	ended, err := c.start(cmd)
	if err != nil {
		return false, err
	}
	status := <-ended
	return status.Exited() && status.ExitStatus() == 0, nil
}

// reap takes notice of all processes that have ended.
func (c *children) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if ended, ok := c.ended[pid]; ok {
			ended <- status
			delete(c.ended, pid)
		}
	}
}
