// Package localcopy keeps a second copy of the files of checkpoints on a disk of this machine, so that a restart need not read
// them from a store far away. It owns the copies and nothing else: the storage alone decides which checkpoints exist, no manifest
// is copied, and whatever is wrong with a copy or its disk is no error: the file in the storage is read instead. The runtime
// (internal/env) puts it between a job and its storage.
package localcopy

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
)

// Options say where copies lie and what they serve.
type Options struct {
	// Disk and Folders are where: folders of this job alone, at least one, made when the first copy is. Files are spread
	// over them.
	Disk    vfs.FS
	Folders []string
	// Write has what is written copied; Read has copies read before the storage.
	Write, Read bool
}

// FS is a storage with copies. All goroutines may use it.
type FS struct {
	checkpoint.FS
	opt  Options
	lost atomic.Int64
	read atomic.Int64
}

// New gives a storage copies, of earlier processes too: Sweep removes those that are not needed any more.
func New(storage checkpoint.FS, o Options) *FS { return &FS{FS: storage, opt: o} }

const (
	suffix  = ".copy"
	writing = ".part"
)

// copied reports whether a file belongs to a part of a snapshot.
func copied(name string) bool {
	return strings.HasSuffix(name, ".chunk") || strings.HasSuffix(name, ".file")
}

// place is where the copy of a file lies.
func (f *FS) place(name string) string {
	sum := sha256.Sum256([]byte(path.Clean(name)))
	return path.Join(f.opt.Folders[int(sum[0])%len(f.opt.Folders)], hex.EncodeToString(sum[:20])+suffix)
}

// WholeFiles implements checkpoint.WholeFS: it is the storage that counts.
func (f *FS) WholeFiles(folder string) bool {
	w, ok := f.FS.(checkpoint.WholeFS)
	return ok && w.WholeFiles(folder)
}

// Create implements vfs.FS: what is written to the file is copied as well.
func (f *FS) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	w, err := f.FS.Create(name, how)
	if err != nil || !copied(name) {
		return w, err
	}
	f.drop(name)
	if !f.opt.Write || how == vfs.Append {
		return w, nil
	}
	return &writer{Writer: w, copy: f.newCopy(f.place(name))}, nil
}

// Open implements vfs.FS: the copy is opened if it is whole, else the file.
func (f *FS) Open(name string) (vfs.File, error) {
	if f.opt.Read && copied(name) {
		if c := f.openCopy(name); c != nil {
			f.read.Add(1)
			return c, nil
		}
	}
	return f.FS.Open(name)
}

// Remove implements vfs.FS: the copy goes first.
func (f *FS) Remove(name string) error {
	if copied(name) {
		f.drop(name)
	}
	return f.FS.Remove(name)
}

// Rename implements vfs.FS: copies of both names go.
func (f *FS) Rename(from, to string) error {
	f.drop(from)
	f.drop(to)
	return f.FS.Rename(from, to)
}

// Truncate implements vfs.FS: the copy goes.
func (f *FS) Truncate(name string, size int64) error {
	f.drop(name)
	return f.FS.Truncate(name, size)
}

// drop removes the copy of a file.
func (f *FS) drop(name string) { _ = f.opt.Disk.Remove(f.place(name)) }

// Sweep removes the copies of all files but these, and what was being copied when a process ended.
func (f *FS) Sweep(keep []string) {
	kept := map[string]bool{}
	for _, name := range keep {
		kept[f.place(name)] = true
	}
	f.each(func(copy string) {
		if !kept[copy] {
			_ = f.opt.Disk.Remove(copy)
		}
	})
}

// Clear removes all copies and the folders.
func (f *FS) Clear() {
	f.Sweep(nil)
	for _, dir := range f.opt.Folders {
		_ = f.opt.Disk.Remove(dir) // fails, as it should, if there is something else
	}
}

// each calls do for all copies, those that are being written included.
func (f *FS) each(do func(copy string)) {
	for _, dir := range f.opt.Folders {
		entries, err := f.opt.Disk.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if name := e.Name(); !e.IsDir() && (strings.HasSuffix(name, suffix) || strings.HasSuffix(name, suffix+writing)) {
				do(path.Join(dir, name))
			}
		}
	}
}

// Counts are how many files were read from their copies, and how many copies could not be written or were not whole.
func (f *FS) Counts() (read, lost int64) { return f.read.Load(), f.lost.Load() }

// info is that of a file, as its copy knows it.
type info struct {
	fs.FileInfo
	name string
	size int64
}

func (i info) Name() string { return i.name }
func (i info) Size() int64  { return i.size }
