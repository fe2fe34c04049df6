package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// OS is the machine's file system.
type OS struct{}

// Stdin is the name under which OS opens the process's standard input. It is not closed with the File, as it is the
// process's, and cannot be read from an offset.
const Stdin = "/dev/stdin"

type stdin struct{ *os.File }

func (stdin) Close() error { return nil }

// Open implements FS.
func (OS) Open(name string) (File, error) {
	if name == Stdin {
		return stdin{os.Stdin}, nil
	}
	f, err := os.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Create implements FS. Files are made with the permissions 0666 before umask.
func (OS) Create(name string, how Mode) (Writer, error) {
	flags := os.O_WRONLY | os.O_CREATE
	switch how {
	case Truncate:
		flags |= os.O_TRUNC
	case Exclusive:
		flags |= os.O_EXCL
	case Append:
		flags |= os.O_APPEND
	}
	f, err := os.OpenFile(filepath.FromSlash(name), flags, 0o666)
	if err != nil {
		return nil, err
	}
	return writer{f}, nil
}

type writer struct{ *os.File }

// Sync does nothing where there is nothing to sync: pipes, terminals.
func (w writer) Sync() error { return unlessImpossible(w.File.Sync()) }

// unlessImpossible forgives what can't be synced.
func unlessImpossible(err error) error {
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// ReadDir implements FS.
func (OS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(filepath.FromSlash(name)) }

// Stat implements FS.
func (OS) Stat(name string) (fs.FileInfo, error) { return os.Stat(filepath.FromSlash(name)) }

// Rename implements FS.
func (OS) Rename(from, to string) error {
	return os.Rename(filepath.FromSlash(from), filepath.FromSlash(to))
}

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(filepath.FromSlash(name)) }

// Truncate implements FS.
func (OS) Truncate(name string, size int64) error {
	return os.Truncate(filepath.FromSlash(name), size)
}

// MkdirAll implements FS. Folders are made with the permissions 0777 before umask.
func (OS) MkdirAll(name string) error { return os.MkdirAll(filepath.FromSlash(name), 0o777) }

// SyncDir implements FS. Windows has no such call and needs none.
func (OS) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	return errors.Join(unlessImpossible(d.Sync()), d.Close())
}
