//go:build !linux

package release

// thisProcess gives the zero value: nobody can tell whether this process lives
// but by its heartbeat.
func thisProcess() Process { return Process{} }

func (p Process) isDead() bool { return false }
