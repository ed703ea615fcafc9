package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// background starts a supervisor in a session of its own and waits until its
// cluster is ready. An attached supervisor stops when the returned pipe closes,
// at the latest with this process; others stay.
func background(ctx context.Context, opts options, attached bool) (*supervisorProcess, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	log, err := os.OpenFile(opts.layout.supervisorLog(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the supervisor's log: %w", err)
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	defer read.Close()

	cmd := exec.Command(executable, "supervise", "--dir="+opts.layout.dir, "--nodes="+strconv.Itoa(opts.nodes),
		"--real-node="+strconv.FormatBool(opts.real), "--idle="+opts.idle.String(), "--attached="+strconv.FormatBool(attached))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{write} // reportFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	err = cmd.Start()
	write.Close() // or we would wait for ourselves below
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	s := &supervisorProcess{lifeline: lifeline, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // why it ended is in the reports and in its log
		close(s.ended)
	}()
	// Interrupted: the supervisor stops without its lifeline, and the reports end.
	defer context.AfterFunc(ctx, func() { lifeline.Close() })()
	if err := readReports(read, opts.layout); err != nil {
		s.stop()
		return nil, errors.Join(ctx.Err(), err)
	}
	return s, nil
}

// supervisorProcess is a supervisor this process has started.
type supervisorProcess struct {
	lifeline io.Closer
	ended    chan struct{} // closed when the process has ended
}

// stop ends an attached cluster and returns when it is gone.
func (s *supervisorProcess) stop() {
	_ = s.lifeline.Close()
	<-s.ended
}

// died reports whether the supervisor has ended by itself.
func (s *supervisorProcess) died() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// minFree is what a cluster may write in a long test run, mostly its audit log.
const minFree = 500 << 20

// checkDisk fails early where etcd would fail obscurely later.
func checkDisk(l layout) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(l.dir, &fs); err != nil {
		return fmt.Errorf("looking at the free space of %s: %w", l.dir, err)
	}
	free := fs.Bavail * uint64(fs.Bsize)
	if free < minFree {
		return fmt.Errorf("only %d MiB are free on the disk of %s, a cluster needs %d MiB; free some or name another directory with --dir", free>>20, l.dir, minFree>>20)
	}
	return nil
}
