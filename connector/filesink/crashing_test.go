package filesink_test

import (
	"errors"
	"io/fs"

	"github.com/flott-dev/flott/internal/vfs"
)

var errCrash = errors.New("the machine is off")

// crashing is a file system that goes off before its nth operation, counted from 1; a write that is hit gets half through.
type crashing struct {
	vfs.FS
	ops, at int
}

func (c *crashing) op() error {
	if c.ops++; c.at > 0 && c.ops >= c.at {
		return errCrash
	}
	return nil
}

func (c *crashing) Open(name string) (vfs.File, error) {
	if err := c.op(); err != nil {
		return nil, err
	}
	f, err := c.FS.Open(name)
	return crashingFile{f, c}, err
}

func (c *crashing) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	if err := c.op(); err != nil {
		return nil, err
	}
	w, err := c.FS.Create(name, how)
	return crashingWriter{w, c}, err
}

func (c *crashing) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := c.op(); err != nil {
		return nil, err
	}
	return c.FS.ReadDir(name)
}

func (c *crashing) Stat(name string) (fs.FileInfo, error) {
	if err := c.op(); err != nil {
		return nil, err
	}
	return c.FS.Stat(name)
}

func (c *crashing) Rename(from, to string) error {
	return errors.Join(c.op(), unless(c, func() error { return c.FS.Rename(from, to) }))
}

func (c *crashing) Remove(name string) error {
	return errors.Join(c.op(), unless(c, func() error { return c.FS.Remove(name) }))
}

func (c *crashing) MkdirAll(name string) error {
	return errors.Join(c.op(), unless(c, func() error { return c.FS.MkdirAll(name) }))
}

func (c *crashing) SyncDir(name string) error {
	return errors.Join(c.op(), unless(c, func() error { return c.FS.SyncDir(name) }))
}

func unless(c *crashing, f func() error) error {
	if c.at > 0 && c.ops >= c.at {
		return nil
	}
	return f()
}

type crashingFile struct {
	vfs.File
	c *crashing
}

func (f crashingFile) Read(b []byte) (int, error) {
	if err := f.c.op(); err != nil {
		return 0, err
	}
	return f.File.Read(b)
}

func (f crashingFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.c.op(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}

type crashingWriter struct {
	vfs.Writer
	c *crashing
}

func (w crashingWriter) Write(b []byte) (int, error) {
	if err := w.c.op(); err != nil {
		n := 0
		if w.c.ops == w.c.at {
			n, _ = w.Writer.Write(b[:len(b)/2])
		}
		return n, err
	}
	return w.Writer.Write(b)
}

func (w crashingWriter) Sync() error {
	return errors.Join(w.c.op(), unless(w.c, w.Writer.Sync))
}
