package file

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/flott-dev/flott/internal/vfs"
)

// opener opens the splits of one reader.
type opener struct {
	*settings
	count  func(name string, n int64)
	wake   func()
	report func(Bad)
}

// open opens a split at its position.
func (o *opener) open(s *Split) (*Input, error) {
	if o.waits(s) {
		return o.pumped(s)
	}
	f, err := o.fs.Open(s.Path)
	if err != nil {
		return nil, fmt.Errorf("open a file to read: %w", err)
	}
	in, err := o.stored(s, f)
	if err != nil {
		_ = f.Close() // a second time, it may be; the first error is the one to tell
		return nil, err
	}
	return in, nil
}

// input is the Input of a split, without its text.
func (o *opener) input(s *Split) *Input {
	return &Input{
		path: s.Path, start: s.Start, skip: s.Skip, stop: s.end(), size: math.MaxInt64, block: blockSize,
		faults: &faulty{opener: o, path: s.Path},
	}
}

// stored opens a split of a file on a disk.
func (o *opener) stored(s *Split, f vfs.File) (*Input, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open a file to read: %w", err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("open a file to read: %s is a folder", s.Path)
	}
	in := o.input(s)
	raw := &stored{file: f, path: s.Path, offsets: true}
	shorter := fmt.Errorf("go on at %d of %s: the file has become shorter", s.Position, s.Path)
	if o.plain(s.Path) {
		if s.Position > info.Size() {
			return nil, fmt.Errorf("%w: it has %d bytes", shorter, info.Size())
		}
		in.base, in.size = s.Position, info.Size()
		if s.Position == s.Start {
			in.base = max(0, s.Start-Lookback)
		}
		raw.at, in.src = in.base, raw
		return in, nil
	}
	src, err := o.decode(raw)
	if err != nil {
		return nil, raw.name(err)
	}
	in.src, in.base = src, s.Position
	if _, err := io.CopyN(io.Discard, src, s.Position); err == io.EOF {
		return nil, errors.Join(shorter, src.Close())
	} else if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return in, nil
}

// stored is a file as it lies on the disk, or comes out of a pipe.
type stored struct {
	file    vfs.File
	path    string
	at      int64
	offsets bool // the file can be read from anywhere
}

// Read implements io.Reader.
func (s *stored) Read(p []byte) (n int, err error) {
	if s.offsets {
		n, err = s.file.ReadAt(p, s.at)
	} else {
		n, err = s.file.Read(p)
	}
	s.at += int64(n)
	if err != nil && err != io.EOF {
		return n, s.name(err)
	}
	return n, err
}

// Close implements io.Closer.
func (s *stored) Close() error { return s.file.Close() }

// name adds file and place to an error that has none.
func (s *stored) name(err error) error {
	if _, ok := errors.AsType[*Error](err); ok || err == io.EOF {
		return err
	}
	return &Error{Path: s.path, Offset: s.at, Err: err}
}
