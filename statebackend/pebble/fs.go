package pebble

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// scratchFS is the file system of a tree. Nothing is synced, as nothing is needed after a crash. The first error of a write is
// kept, for the store to end with: Pebble, which would try again and again or end the process, never hears of it, and goes on
// writing to nowhere.
//
// Pebble writes and compacts by single blocks of 4 KiB. Files that are written, and those that are read from front to back,
// pass through buffers here, which spares most calls of the system.
type scratchFS struct {
	vfs.FS
	first atomic.Pointer[error]

	mu    sync.Mutex
	spare [][]byte
}

const (
	// bufferBytes is how much of a file is written or read at once.
	bufferBytes = 32 << 10
	// spareBuffers is how many buffers are kept for the next files.
	spareBuffers = 4
)

// buffer lends a buffer.
func (f *scratchFS) buffer() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.spare)
	if n == 0 {
		return make([]byte, 0, bufferBytes)
	}
	b := f.spare[n-1]
	f.spare = f.spare[:n-1]
	return b[:0]
}

// giveBack takes a buffer back.
func (f *scratchFS) giveBack(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b != nil && len(f.spare) < spareBuffers {
		f.spare = append(f.spare, b)
	}
}

// broken is the first error of a write; nil: there was none.
func (f *scratchFS) broken() error {
	if err := f.first.Load(); err != nil {
		return *err
	}
	return nil
}

// swallow keeps an error of a write.
func (f *scratchFS) swallow(err error) {
	if err != nil {
		f.first.CompareAndSwap(nil, &err)
	}
}

// made makes the file that a call has made one of the tree's.
func (f *scratchFS) made(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		f.swallow(err)
		file, err = vfs.NewMem().Create("nowhere", vfs.WriteCategoryUnspecified)
		if err != nil {
			return nil, err
		}
	}
	return &scratchFile{File: file, fs: f}, nil
}

// Open implements vfs.FS.
func (f *scratchFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	if err != nil || !slices.Contains(opts, vfs.SequentialReadsOption) {
		return file, err
	}
	return &forwardFile{File: file, fs: f}, nil
}

// Create implements vfs.FS.
func (f *scratchFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.made(f.FS.Create(name, c))
}

// ReuseForWrite implements vfs.FS.
func (f *scratchFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.made(f.FS.ReuseForWrite(from, to, c))
}

// OpenDir implements vfs.FS.
func (f *scratchFS) OpenDir(name string) (vfs.File, error) {
	d, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &scratchFile{File: d, fs: f}, nil
}

// Rename implements vfs.FS.
func (f *scratchFS) Rename(from, to string) error {
	f.swallow(f.FS.Rename(from, to))
	return nil
}

// Unwrap implements vfs.FS.
func (f *scratchFS) Unwrap() vfs.FS { return f.FS }

// scratchFile is a file that is written. What it was given is in the file once it was synced or closed.
type scratchFile struct {
	vfs.File
	fs     *scratchFS
	buffer []byte // nil: nothing is to be written
}

// Write implements io.Writer.
func (f *scratchFile) Write(b []byte) (int, error) {
	if f.buffer == nil {
		f.buffer = f.fs.buffer()
	}
	for rest := b; len(rest) > 0; {
		n := min(len(rest), cap(f.buffer)-len(f.buffer))
		f.buffer = append(f.buffer, rest[:n]...)
		rest = rest[n:]
		if len(f.buffer) == cap(f.buffer) {
			f.pour()
		}
	}
	return len(b), nil
}

// pour writes what is in the buffer.
func (f *scratchFile) pour() {
	if len(f.buffer) > 0 && f.fs.broken() == nil {
		_, err := f.File.Write(f.buffer)
		f.fs.swallow(err)
	}
	f.buffer = f.buffer[:0]
}

// WriteAt implements io.WriterAt.
func (f *scratchFile) WriteAt(b []byte, at int64) (int, error) {
	f.pour()
	if f.fs.broken() == nil {
		_, err := f.File.WriteAt(b, at)
		f.fs.swallow(err)
	}
	return len(b), nil
}

// Preallocate implements vfs.File. The disk's room is looked for when it is written.
func (f *scratchFile) Preallocate(int64, int64) error { return nil }

// Sync implements vfs.File.
func (f *scratchFile) Sync() error { return f.SyncData() }

// SyncData implements vfs.File.
func (f *scratchFile) SyncData() error {
	f.pour()
	return nil
}

// SyncTo implements vfs.File.
func (f *scratchFile) SyncTo(int64) (bool, error) { return true, f.SyncData() }

// Fd implements vfs.File: without one, Pebble does not sync in the background.
func (f *scratchFile) Fd() uintptr { return vfs.InvalidFd }

// Close implements io.Closer.
func (f *scratchFile) Close() error {
	f.pour()
	f.fs.giveBack(f.buffer)
	f.buffer = nil
	f.fs.swallow(f.File.Close())
	return nil
}

// forwardFile is a file that one goroutine reads from front to back.
type forwardFile struct {
	vfs.File
	fs     *scratchFS
	buffer []byte // nil: none yet
	at     int64  // of the buffer in the file
}

// ReadAt implements io.ReaderAt.
func (f *forwardFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.at && off+int64(len(p)) <= f.at+int64(len(f.buffer)) {
		return copy(p, f.buffer[off-f.at:]), nil
	}
	if len(p) > bufferBytes/2 {
		return f.File.ReadAt(p, off)
	}
	if f.buffer == nil {
		f.buffer = f.fs.buffer()
	}
	n, err := f.File.ReadAt(f.buffer[:cap(f.buffer)], off)
	f.buffer, f.at = f.buffer[:n], off
	if n >= len(p) {
		return copy(p, f.buffer), nil
	}
	return copy(p, f.buffer), err
}

// Close implements io.Closer.
func (f *forwardFile) Close() error {
	f.fs.giveBack(f.buffer)
	f.buffer = nil
	return f.File.Close()
}
