package host

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The limit is the cgroup's where there is one, else all of the machine's memory.
func TestCgroupLimitIsWhatTheProcessMayUse(t *testing.T) {
	var want int64
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		line, _, _ := strings.Cut(string(b), "\n")
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &want); err != nil {
			t.Fatal(err)
		}
		want *= 1024
	}
	for _, path := range []string{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"} {
		var n int64
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if _, err := fmt.Sscanf(string(b), "%d\n", &n); err == nil && n < 1<<50 {
			want = n
		}
	}
	if got := CgroupLimit(); got != want {
		t.Errorf("the process may use %d bytes, want %d", got, want)
	}
}
