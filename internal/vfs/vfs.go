// Package vfs is the file system as the engine and its connectors see it: few calls, injected everywhere, so that a full
// disk or a crash is a test case. OS is the machine's, Mem one in memory that can forget what was not synced, Faulty
// breaks either on purpose. It knows nothing of what the files hold. Sources, sinks, snapshots and spill files call it.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"syscall"
)

// ErrNoSpace is what a full disk answers.
const ErrNoSpace = syscall.ENOSPC

// FS is a file system. Names are slash-separated paths; errors are those of io/fs (fs.ErrNotExist, ...) in an
// *fs.PathError. Implementations are safe for concurrent use.
type FS interface {
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Create opens a file for writing, empty: it is made or, with how == Truncate, loses what it held.
	Create(name string, how Mode) (Writer, error)
	// ReadDir lists a folder by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat tells about a file or folder; links are followed.
	Stat(name string) (fs.FileInfo, error)
	// Rename moves a file, over one that may be there: at every moment the name to means one of them, whole.
	Rename(from, to string) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	// Truncate cuts a file to size bytes.
	Truncate(name string, size int64) error
	// MkdirAll makes a folder and those above it; it is no error if they exist.
	MkdirAll(name string) error
	// SyncDir makes the names in a folder survive a crash: files made, renamed and removed.
	SyncDir(name string) error
}

// Mode says what Create does with a file that exists.
type Mode uint8

const (
	// Truncate empties it.
	Truncate Mode = iota
	// Exclusive fails with fs.ErrExist.
	Exclusive
	// Append writes behind what is there.
	Append
)

// File is a file open for reading.
type File interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// Writer is a file open for writing.
type Writer interface {
	io.Writer
	io.Closer
	// Sync makes what was written survive a crash; the file's name does so by FS.SyncDir.
	Sync() error
}

// RemoveAll removes a file, or a folder with all that is in it. It is no error if there is none.
func RemoveAll(f FS, name string) error {
	info, err := f.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		entries, err := f.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := removeEntry(f, path.Join(name, e.Name()), e); err != nil {
				return err
			}
		}
	}
	if err := f.Remove(name); !errors.Is(err, fs.ErrNotExist) { // some folders go with the last file in them
		return err
	}
	return nil
}

// removeEntry does not follow links: what they point to is not part of the folder.
func removeEntry(f FS, name string, e fs.DirEntry) error {
	if e.IsDir() {
		return RemoveAll(f, name)
	}
	return f.Remove(name)
}

// ReadFile is the content of a whole file.
func ReadFile(f FS, name string) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(file)
	return data, errors.Join(err, file.Close())
}

// WriteAll writes all of b. A writer that takes less without an error, which io.Writer forbids, gets io.ErrShortWrite: what is
// taken for written must be there.
func WriteAll(w io.Writer, b []byte) (n int, err error) {
	n, err = w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

// WriteFile makes a file with the given content, durably but for its name.
func WriteFile(f FS, name string, data []byte) error {
	w, err := f.Create(name, Truncate)
	if err != nil {
		return err
	}
	_, err = WriteAll(w, data)
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}
