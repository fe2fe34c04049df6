package localcopy

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"sync"

	"github.com/flott-dev/flott/internal/vfs"
)

// file is a copy that was whole when it was opened. Should its disk fail later, the rest is read from the storage.
type file struct {
	*io.SectionReader
	from *source
}

// source reads the bytes of the copy, or else of the file.
type source struct {
	f    *FS
	name string
	copy vfs.File

	mu   sync.Mutex
	file vfs.File // nil: the copy serves
}

// openCopy opens the copy of a file; nil if it is not there or not whole.
func (f *FS) openCopy(name string) vfs.File {
	c, err := f.opt.Disk.Open(f.place(name))
	if err != nil {
		return nil
	}
	size, ok := whole(c)
	if !ok {
		f.lost.Add(1)
		_ = c.Close()
		f.drop(name)
		return nil
	}
	s := &source{f: f, name: name, copy: c}
	return &file{io.NewSectionReader(s, 0, size), s}
}

// whole reads a copy through and gives the number of bytes that it copies.
func whole(c vfs.File) (size int64, ok bool) {
	i, err := c.Stat()
	if err != nil || i.Size() < trailLen {
		return 0, false
	}
	size = i.Size() - trailLen
	sum := newSum()
	if _, err := io.CopyBuffer(sum, io.NewSectionReader(c, 0, size), make([]byte, verifyStep)); err != nil {
		return 0, false
	}
	end := make([]byte, trailLen)
	if n, err := c.ReadAt(end, size); n < trailLen || err != nil && err != io.EOF {
		return 0, false
	}
	return size, string(end) == string(trail(size, sum.Sum32()))
}

// ReadAt implements io.ReaderAt.
func (s *source) ReadAt(p []byte, at int64) (int, error) {
	s.mu.Lock()
	file := s.file
	s.mu.Unlock()
	if file == nil {
		n, err := s.copy.ReadAt(p, at)
		if n == len(p) || err == io.EOF {
			return n, err
		}
		if file, err = s.storage(); err != nil {
			return n, err
		}
	}
	return file.ReadAt(p, at)
}

// storage opens the file, once.
func (s *source) storage() (vfs.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		s.f.lost.Add(1)
		file, err := s.f.FS.Open(s.name)
		if err != nil {
			return nil, err
		}
		s.file = file
	}
	return s.file, nil
}

// Stat implements vfs.File: it is the file's, and not that of the copy.
func (f *file) Stat() (fs.FileInfo, error) {
	i, err := f.from.copy.Stat()
	if err != nil {
		return nil, err
	}
	return info{FileInfo: i, name: path.Base(f.from.name), size: f.Size()}, nil
}

// Close implements io.Closer.
func (f *file) Close() error {
	err := f.from.copy.Close()
	f.from.mu.Lock()
	defer f.from.mu.Unlock()
	if f.from.file != nil {
		err = errors.Join(err, f.from.file.Close())
	}
	return err
}
