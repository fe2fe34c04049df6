package hdfs

import (
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"
)

// file reads a file. The client has one position, which goes on where it is read from front to back and otherwise costs a
// connection; several goroutines take turns.
type file struct {
	name    string
	timeout time.Duration

	mu   sync.Mutex
	r    *hdfs.FileReader
	next int64 // where Read goes on
}

// Read reads the next bytes.
func (f *file) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.readAt(p, f.next)
	f.next += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// ReadAt reads the bytes from an offset on. It may be called by several goroutines.
func (f *file) ReadAt(p []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readAt(p, at)
}

// readAt reads; the caller holds the lock.
func (f *file) readAt(p []byte, at int64) (int, error) {
	size := f.r.Stat().Size()
	switch {
	case at < 0:
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrInvalid}
	case len(p) == 0:
		return 0, nil
	case at >= size:
		return 0, io.EOF
	}
	var end error
	if int64(len(p)) > size-at {
		p, end = p[:size-at], io.EOF
	}
	err := f.r.SetDeadline(time.Now().Add(f.timeout))
	n := 0
	if err == nil {
		n, err = f.r.ReadAt(p, at)
	}
	if err != nil {
		return n, &fs.PathError{Op: "read", Path: f.name, Err: err}
	}
	return n, end
}

// Stat tells about the file as it was when it was opened.
func (f *file) Stat() (fs.FileInfo, error) { return f.r.Stat(), nil }

// Close ends the reading.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.r.Close()
}
