//go:build !linux

package release

// thisProcess returns the zero value: only heartbeats show that this process is alive.
func thisProcess() Process { return Process{} }

func (p Process) isDead() bool { return false }
