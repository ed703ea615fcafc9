package release

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A process identifies one process of one boot of one machine, so that other processes of the machine can see whether it
// is alive. It has five words: the kernel's identity of the boot, which all containers of a machine share; the PID
// namespace; the PID; when the process started, in the kernel's ticks, because PIDs are used again; and the host, because
// machines restored from one snapshot share the boot's identity, but seldom the name. Empty for none.
type process string

// thisProcess names the calling process; empty if the kernel doesn't tell.
func thisProcess() process {
	boot, ofBoot := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, ofSpace := os.Readlink("/proc/self/ns/pid")
	_, start, ofStart := processState(os.Getpid())
	host, ofHost := os.Hostname()
	if cmp.Or(ofBoot, ofSpace, ofStart, ofHost) != nil || host == "" {
		return ""
	}
	return process(fmt.Sprintf("%s %s %d %s %s", strings.TrimSpace(string(boot)), space, os.Getpid(), start, host))
}

// isDead reports whether p has certainly ended. It can tell only for processes of this host,
// boot and PID namespace. For all others it returns false, also for processes from
// before a reboot: it can't know that the machine is the same.
func (p process) isDead() bool {
	of, self := strings.Split(string(p), " "), strings.Split(string(thisProcess()), " ")
	if len(of) != 5 || len(self) != 5 || of[0] != self[0] || of[1] != self[1] || of[4] != self[4] {
		return false
	}
	pid, err := strconv.Atoi(of[2])
	if err != nil || pid <= 0 {
		return false
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	state, start, err := processState(pid)
	if err != nil {
		return false // it may be another user's, and hidden (mount option hidepid)
	}
	return start != of[3] || state == "Z" || state == "X"
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
