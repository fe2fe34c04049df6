package checkpoint

import (
	"errors"
	"sync"

	"github.com/flott-dev/flott/internal/vfs"
)

// DirectFiles lets Writers write files of this machine past its cache, and Storages remove them, beside the goroutine that calls
// them. It keeps what that takes from one snapshot to the next, as the kernel is slow to take it back: one writer of files for each
// Write at a time, with 2 MiB of memory while it writes much, and up to 7 more from the Writer's budget. The zero value is ready; it may be used by several goroutines
// at a time.
type DirectFiles struct {
	mu     sync.Mutex
	idle   []vfs.DirectWriter
	closed bool
	none   bool // the machine has none
}

// take gives a writer of files in a folder.
func (d *DirectFiles) take(f vfs.FS, folder string) vfs.DirectWriter {
	plain := &syncedFiles{fs: f}
	if d == nil || !vfs.IsOnDisk(f, folder) {
		return plain
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.none {
		return plain
	}
	if n := len(d.idle); n > 0 {
		w := d.idle[n-1]
		d.idle = d.idle[:n-1]
		return w
	}
	w, err := vfs.NewDirectWriter()
	if errors.Is(err, errors.ErrUnsupported) {
		d.none = true
	}
	if err != nil {
		return plain
	}
	return w
}

// give takes a writer back that has nothing under way.
func (d *DirectFiles) give(w vfs.DirectWriter) {
	if _, plain := w.(*syncedFiles); plain {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.idle = append(d.idle, w)
		return
	}
	go func() { _ = w.Close() }()
}

// Close gives everything back, beside the caller; files that are being written are not harmed.
func (d *DirectFiles) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, w := range d.idle {
		go func() { _ = w.Close() }()
	}
	d.idle = nil
}
