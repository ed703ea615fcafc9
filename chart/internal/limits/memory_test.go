package limits

import (
	"math"
	"testing"
	"testing/fstest"
)

// TestMemoryLimitIsTheLeast of the cgroups that the program is in, of both versions.
func TestMemoryLimitIsTheLeast(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"no cgroups": {fstest.MapFS{}, math.MaxInt64},
		"a container of version 2": {fstest.MapFS{
			"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("536870912\n"),
		}, 512 << 20},
		"no limit": {fstest.MapFS{
			"proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/memory.max": file("max\n"),
		}, math.MaxInt64},
		"the one around it is less": {fstest.MapFS{
			"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/memory.max": file("1048576\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"),
		}, 1 << 20},
		"a container of version 1, named as outside": {fstest.MapFS{
			"proc/self/cgroup": file("5:cpu:/docker/1\n4:memory:/docker/1\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("2147483648\n"),
		}, 2 << 30},
		"a path that leads elsewhere": {fstest.MapFS{
			"proc/self/cgroup": file("0::/../../x\n"), "sys/fs/cgroup/memory.max": file("4096\n"),
		}, 4096},
		"rubbish": {fstest.MapFS{
			"proc/self/cgroup": file("x\n::\n0::a\n"), "sys/fs/cgroup/a/memory.max": file("much\n"), "sys/fs/cgroup/memory.max": file("-1\n"),
		}, math.MaxInt64},
	} {
		if got := memoryLimit(c.files); got != c.want {
			t.Errorf("%s: memoryLimit = %d, want %d", name, got, c.want)
		}
	}
}

// TestRenderingMayUseHalfOfItsContainer, and less than that only where it would hardly render anything.
func TestRenderingMayUseHalfOfItsContainer(t *testing.T) {
	const used = 50 << 20
	for name, c := range map[string]struct {
		limit int64
		want  uint64
		says  string
	}{
		"no limit":                         {math.MaxInt64, used + 512<<20, "needs more than 512 MiB of memory"},
		"a large container":                {8 << 30, used + 512<<20, "needs more than 512 MiB of memory"},
		"a container":                      {1 << 30, 512 << 20, "needs more than 462 MiB of the 1024 MiB that this process may use"},
		"a container of next to no memory": {64 << 20, used + 96<<20, "needs more than 96 MiB of the 64 MiB that this process may use"},
	} {
		most, needsMore := heapAllowance(used, c.limit)
		if most != c.want || needsMore != c.says {
			t.Errorf("%s: heapAllowance = %d, %s, want %d: %s", name, most, needsMore, c.want, c.says)
		}
	}
}
