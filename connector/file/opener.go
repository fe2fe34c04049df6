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
	report func(Bad)
}

// open opens a split at its position.
func (o *opener) open(s *Split) (*Input, error) {
	f, err := o.fs.Open(s.Path)
	if err != nil {
		return nil, fmt.Errorf("open a file to read: %w", err)
	}
	in, err := o.input(s, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	in.faults = &faulty{opener: o, path: s.Path}
	return in, nil
}

func (o *opener) input(s *Split, f vfs.File) (*Input, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open a file to read: %w", err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("open a file to read: %s is a folder", s.Path)
	}
	in := &Input{path: s.Path, start: s.Start, stop: s.end(), size: math.MaxInt64, block: blockSize}
	raw := &stored{file: f, path: s.Path, regular: info.Mode().IsRegular()}
	if o.plain(s.Path) && raw.regular {
		in.base, in.size = s.Position, info.Size()
		if s.Position == s.Start {
			in.base = max(0, s.Start-Lookback)
		}
		raw.at, in.src = in.base, raw
		return in, nil
	}
	if in.src, err = o.decode(raw); err != nil {
		return nil, raw.name(err)
	}
	if _, err := io.CopyN(io.Discard, in.src, s.Position); err == io.EOF {
		return nil, fmt.Errorf("go on at %d of %s: the file has become shorter", s.Position, s.Path)
	} else if err != nil {
		return nil, err
	}
	in.base = s.Position
	return in, nil
}

// stored is a file as it lies on the disk.
type stored struct {
	file    vfs.File
	path    string
	at      int64
	regular bool
}

// Read implements io.Reader.
func (s *stored) Read(p []byte) (n int, err error) {
	if s.regular {
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

// faulty deals with the bad records of a file.
type faulty struct {
	*opener
	path  string
	lines *lineCounter
}

// BadRecords is the metric that counts records that were skipped.
const BadRecords = "numRecordsInErrors"

func (f *faulty) bad(_ *Input, at int64, record []byte, cause func(line int64) error) error {
	if f.lenient {
		f.count(BadRecords, 1)
		if f.report == nil {
			return nil
		}
	}
	line := f.line(at)
	err := cause(line)
	if !f.lenient {
		return err
	}
	f.report(Bad{Path: f.path, Line: line, Offset: at, Record: string(record), Err: err})
	return nil
}

// line is the number of the line at an offset, 0 if it can't be told. It reads the file a second time, up to there, as
// counting lines while all is well would cost every reader.
func (f *faulty) line(at int64) int64 {
	if f.lines == nil || f.lines.at > at {
		f.done()
		in, err := f.head()
		if err != nil {
			return 0
		}
		f.lines = &lineCounter{in: in, line: 1}
	}
	return f.lines.to(at)
}

func (f *faulty) head() (*Input, error) {
	if f.path == vfs.Stdin {
		return nil, errNoFile
	}
	return f.open(&Split{Path: f.path, Length: -1})
}

func (f *faulty) done() {
	if f.lines != nil {
		_ = f.lines.in.Close() // it was only read
		f.lines = nil
	}
}
