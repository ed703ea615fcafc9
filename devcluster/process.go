package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// process is a running component.
type process struct {
	component
	cmd      *exec.Cmd
	lifeline io.Closer     // closing it ends the process, see controlplane.ExitWithSupervisor
	ended    chan struct{} // closed when the process has ended
	err      error         // how it ended; read it after ended
}

// start starts a component with its output in its log. The calling goroutine
// must be locked to its thread and live as long as the supervisor: on Linux the
// kernel kills the child when the thread that started it ends.
func start(l layout, c component) (*process, error) {
	executable, err := programOf(c.name)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(l.log(c.name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", c.name, err)
	}
	defer log.Close() // the child has its own copy

	cmd := exec.Command(executable, append([]string{c.name}, c.args...)...)
	cmd.Dir = l.dir
	cmd.Env = componentEnv(l)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent()
	// A group of its own: Ctrl-C in a terminal reaches the supervisor only, which
	// then stops the components in order.
	cmd.SysProcAttr.Setpgid = true
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	p := &process{component: c, cmd: cmd, lifeline: lifeline, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// componentEnv is the environment without what would configure a component
// behind our back: proxies, and kwok's own configuration files.
func componentEnv(l layout) []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		upper := strings.ToUpper(name)
		if strings.HasSuffix(upper, "_PROXY") || strings.HasPrefix(upper, "KWOK_") || name == "KUBECONFIG" {
			continue
		}
		env = append(env, variable)
	}
	return append(env, "KWOK_WORKDIR="+l.conf("kwok.d"))
}

// kill ends the process. Nothing a component would do on its way out matters: the
// next start is a new cluster, and of the audit log, which is written after requests
// are answered, at most the end is missing.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
	_ = p.lifeline.Close()
}

// endedError explains why a process that should run has ended.
func (p *process) endedError(l layout) error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s has ended (%s); the end of %s:\n%s", p.name, how, l.log(p.name), tail(l.log(p.name), 15))
}

// tail gives the last lines of a file, indented, as far as it can be read.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "  " + err.Error()
	}
	all := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return "  " + string(bytes.Join(all, []byte("\n  ")))
}
