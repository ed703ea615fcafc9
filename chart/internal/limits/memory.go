package limits

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// ProcessMemory is how many bytes of memory this program may use. It is read once.
var ProcessMemory = sync.OnceValue(func() int64 { return memoryLimit(os.DirFS("/")) })

// memoryLimit is how many bytes of memory the program may use: the least of GOMEMLIMIT and the limits of its
// cgroup and of those around it, in a container the container's. Without one, it is math.MaxInt64. root is the
// file system of the machine.
func memoryLimit(root fs.FS) int64 {
	least := debug.SetMemoryLimit(-1) // a negative number only reads it
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least // not Linux
	}
	for _, line := range strings.Split(string(groups), "\n") {
		fields := strings.SplitN(line, ":", 3) // https://man7.org/linux/man-pages/man7/cgroups.7.html, /proc/pid/cgroup
		if len(fields) < 3 {
			continue
		}
		switch group := path.Clean("/" + fields[2]); {
		case fields[0] == "0": // version 2
			least = min(least, leastLimit(root, "sys/fs/cgroup", group, "memory.max"))
		case fields[1] == "memory": // version 1
			least = min(least, leastLimit(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
		}
	}
	return least
}

// leastLimit reads the limits of a cgroup and of those around it. A container may see its own as the
// outermost, whatever its name is outside.
func leastLimit(root fs.FS, mount, group, file string) int64 {
	least := int64(math.MaxInt64)
	for {
		data, err := fs.ReadFile(root, path.Join(mount, group, file))
		if limit, bad := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && bad == nil && limit > 0 { // not "max"
			least = min(least, limit)
		}
		if group == "/" || group == "." {
			return least
		}
		group = path.Dir(group)
	}
}
