package pebble

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// scratchFS is the file system of a tree. Nothing is synced, as nothing is needed after a crash. The first error of a write is
// kept, for the store to end with: Pebble, which would try again and again or end the process, never hears of it, and goes on
// writing to nowhere.
type scratchFS struct {
	vfs.FS
	first atomic.Pointer[error]
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
	return &scratchFile{file, f}, nil
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
	return &scratchFile{d, f}, nil
}

// Rename implements vfs.FS.
func (f *scratchFS) Rename(from, to string) error {
	f.swallow(f.FS.Rename(from, to))
	return nil
}

// Unwrap implements vfs.FS.
func (f *scratchFS) Unwrap() vfs.FS { return f.FS }

// scratchFile is a file that is written.
type scratchFile struct {
	vfs.File
	fs *scratchFS
}

// Write implements io.Writer.
func (f *scratchFile) Write(b []byte) (int, error) {
	if f.fs.broken() == nil {
		_, err := f.File.Write(b)
		f.fs.swallow(err)
	}
	return len(b), nil
}

// WriteAt implements io.WriterAt.
func (f *scratchFile) WriteAt(b []byte, at int64) (int, error) {
	if f.fs.broken() == nil {
		_, err := f.File.WriteAt(b, at)
		f.fs.swallow(err)
	}
	return len(b), nil
}

// Preallocate implements vfs.File. The disk's room is looked for when it is written.
func (f *scratchFile) Preallocate(int64, int64) error { return nil }

// Sync implements vfs.File.
func (f *scratchFile) Sync() error { return nil }

// SyncData implements vfs.File.
func (f *scratchFile) SyncData() error { return nil }

// SyncTo implements vfs.File.
func (f *scratchFile) SyncTo(int64) (bool, error) { return true, nil }

// Fd implements vfs.File: without one, Pebble does not sync in the background.
func (f *scratchFile) Fd() uintptr { return vfs.InvalidFd }

// Close implements io.Closer.
func (f *scratchFile) Close() error {
	f.fs.swallow(f.File.Close())
	return nil
}
