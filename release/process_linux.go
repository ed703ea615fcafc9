package release

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// thisProcess names the calling process; the zero value if the kernel doesn't tell.
func thisProcess() Process {
	boot, ofBoot := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, ofSpace := os.Readlink("/proc/self/ns/pid")
	_, start, ofStart := processState(os.Getpid())
	host, ofHost := os.Hostname()
	if cmp.Or(ofBoot, ofSpace, ofStart, ofHost) != nil || host == "" {
		return Process{}
	}
	return Process{Boot: strings.TrimSpace(string(boot)), PIDNamespace: space, PID: os.Getpid(), Start: start, Host: host}
}

// isDead reports whether p has certainly ended. It can tell only for processes of this host,
// boot and PID namespace. For all others it returns false, also for processes from
// before a reboot: it can't know that the machine is the same.
func (p Process) isDead() bool {
	self := thisProcess()
	if p.Boot == "" || p.Boot != self.Boot || p.PIDNamespace != self.PIDNamespace || p.Host != self.Host {
		return false
	}
	if errors.Is(syscall.Kill(p.PID, 0), syscall.ESRCH) {
		return true
	}
	state, start, err := processState(p.PID)
	if err != nil {
		return false // it may be another user's, and hidden (mount option hidepid)
	}
	return start != p.Start || state == "Z" || state == "X"
}

// processState reads state and start time of a process.
// https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
func processState(pid int) (state, start string, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", err
	}
	// The second field is the program's name in parentheses and may hold anything.
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return "", "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields)+2)
	}
	return fields[0], fields[19], nil
}
