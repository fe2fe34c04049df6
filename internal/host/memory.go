package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// Memory is the process's one budget: state, frames in flight, sorts and caches draw on it. Safe for concurrent use. Of a nil
// one anything may be reserved.
type Memory struct {
	limit int64
	used  atomic.Int64
}

// NewMemory returns a budget of limit bytes; 0 means without limit.
func NewMemory(limit int64) *Memory { return &Memory{limit: limit} }

// Reserve takes n bytes, or says by how much the budget would be exceeded.
func (m *Memory) Reserve(n int64) error {
	if m == nil {
		return nil
	}
	used := m.used.Add(n)
	if m.limit > 0 && used > m.limit {
		m.used.Add(-n)
		return fmt.Errorf("reserve %d bytes: %d of %d bytes are in use; raise the memory setting or use a disk state backend", n, used-n, m.limit)
	}
	return nil
}

// Release gives n bytes back.
func (m *Memory) Release(n int64) {
	if m != nil {
		m.used.Add(-n)
	}
}

// Used is what is taken now.
func (m *Memory) Used() int64 { return m.used.Load() }

// Limit is the budget; 0: without limit.
func (m *Memory) Limit() int64 { return m.limit }

// CgroupLimit is the memory that this process may use by its cgroup (v2, then v1), else the machine's; 0 if unknown.
func CgroupLimit() int64 {
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n < 1<<50 {
			return n
		}
	}
	return machineMemory()
}

func machineMemory() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}
