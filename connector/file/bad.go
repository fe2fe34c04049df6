package file

import (
	"bytes"
)

// BadRecords is the metric that counts records that were skipped.
const BadRecords = "numRecordsInErrors"

// Bad is a record that its format refused and that the source skipped.
type Bad struct {
	Path   string // of the file
	Line   int64  // from 1, of the file; 0: not known
	Offset int64  // where the record begins
	Record string // as it stands in the file, without its delimiter
	Err    error  // what a source that is not lenient would have failed with
}

// faulty deals with the bad records of a file.
type faulty struct {
	*opener
	path  string
	lines *lineCounter
}

func (f *faulty) bad(at int64, record []byte, cause func(line int64) error) error {
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
	whole := Split{Path: f.path, Length: -1}
	if f.waits(&whole) {
		return nil, errNoFile
	}
	return f.open(&whole)
}

func (f *faulty) done() {
	if f.lines != nil {
		_ = f.lines.in.Close() // it was only read
		f.lines = nil
	}
}

// lineCounter goes through a file to count its lines.
type lineCounter struct {
	in   *Input
	buf  []byte
	at   int64
	line int64 // of at
}

// to is the number of the line at an offset that is not before that of the last call; 0 if it can't be read.
func (c *lineCounter) to(at int64) int64 {
	if c.buf == nil {
		c.buf = make([]byte, 32<<10)
	}
	for c.at < at {
		n, err := c.in.src.Read(c.buf[:min(int64(len(c.buf)), at-c.at)])
		c.line += int64(bytes.Count(c.buf[:n], []byte{'\n'}))
		c.at += int64(n)
		if err != nil && c.at < at {
			return 0
		}
	}
	return c.line
}
