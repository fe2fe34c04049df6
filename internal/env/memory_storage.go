package env

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/flott-dev/flott/internal/vfs"
)

// MemoryStorage keeps snapshots in the memory of this process, as Flink's job manager does: under the URLs jobmanager: and
// mem:. They are lost with it. Each environment has one of its own; environments that are given the same one find each other's
// savepoints.
type MemoryStorage struct{ mem *vfs.Mem }

// NewMemoryStorage returns an empty one.
func NewMemoryStorage() *MemoryStorage { return &MemoryStorage{mem: vfs.NewMem()} }

// The places in memory.
const (
	memoryScheme      = "jobmanager"
	memoryCheckpoints = memoryScheme + "://checkpoints"
	memorySavepoints  = memoryScheme + "://savepoints"
)

// DefaultMemoryLimit is the most that one subtask of an operator may add to a snapshot in memory: Flink's 5 MB.
const DefaultMemoryLimit = 5 << 20

// Schemes implements checkpoint.Opener.
func (*MemoryStorage) Schemes() []string { return []string{memoryScheme, "mem"} }

// Open implements checkpoint.Opener.
func (m *MemoryStorage) Open(_ context.Context, u *url.URL) (vfs.FS, string, error) {
	return m.mem, path.Join("/", u.Host, u.Path+u.Opaque), nil
}

// limited opens memory in which one subtask of an operator may add so many bytes to a snapshot.
type limited struct {
	*MemoryStorage
	most int64
}

// Open implements checkpoint.Opener.
func (l limited) Open(ctx context.Context, u *url.URL) (vfs.FS, string, error) {
	f, dir, err := l.MemoryStorage.Open(ctx, u)
	return &limitedFS{FS: f, most: l.most, sizes: map[string]int64{}}, dir, err
}

// limitedFS refuses what goes beyond the limit. The files of one subtask of an operator have names that differ behind the last
// hyphen only.
type limitedFS struct {
	vfs.FS
	most int64

	mu    sync.Mutex
	sizes map[string]int64 // by folder and name up to that hyphen; until the folder is gone
}

// StateTooLargeError is that of a checkpoint or savepoint in memory to which one subtask of an operator adds more than it may.
type StateTooLargeError struct{ Bytes, Limit int64 }

// Error tells what to do.
func (e *StateTooLargeError) Error() string {
	return fmt.Sprintf("its state has %d bytes or more, and snapshots in memory take %d of each subtask: keep them in files (SetCheckpointStorage, or execution.checkpointing.dir), or raise the limit (WithMemoryStorageLimit, or state.memory-storage.limit)", e.Bytes, e.Limit)
}

// Permanent says that no restart helps: state does not become smaller by it.
func (*StateTooLargeError) Permanent() bool { return true }

// owner is whose state a file holds; "": nobody's.
func owner(name string) string {
	i := strings.LastIndexByte(name, '-')
	if i <= strings.LastIndexByte(name, '/') {
		return ""
	}
	return name[:i]
}

// Create implements vfs.FS.
func (f *limitedFS) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	w, err := f.FS.Create(name, how)
	if err != nil || owner(name) == "" {
		return w, err
	}
	return &limitedWriter{Writer: w, fs: f, owner: owner(name)}, nil
}

// Remove implements vfs.FS: once files of an owner go, its snapshot is over.
func (f *limitedFS) Remove(name string) error {
	f.mu.Lock()
	delete(f.sizes, owner(name))
	f.mu.Unlock()
	return f.FS.Remove(name)
}

// add counts bytes that are about to be written.
func (f *limitedFS) add(owner string, n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sizes[owner] += int64(n)
	if all := f.sizes[owner]; all > f.most {
		return &StateTooLargeError{Bytes: all, Limit: f.most}
	}
	return nil
}

// limitedWriter counts what it writes.
type limitedWriter struct {
	vfs.Writer
	fs    *limitedFS
	owner string
}

// Write implements io.Writer.
func (w *limitedWriter) Write(p []byte) (int, error) {
	if err := w.fs.add(w.owner, len(p)); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}
