package blob

import (
	"errors"
	"io"
	"io/fs"
	"sync"

	"gocloud.dev/blob"
)

const (
	// skipBytes is the gap up to which reading on is cheaper than a new request.
	skipBytes = 128 << 10
	// attempts is how often a range is asked for if the connection breaks while it is read. What the driver retries (requests
	// that fail at once) comes on top.
	attempts = 3
)

// file reads an object. Who reads from front to back reads one stream, which reaches to the end of the object; other reads ask
// for their own range.
type file struct {
	f    *FS
	name string
	key  string
	size int64
	info info
	next int64 // where Read goes on

	mu     sync.Mutex // over all below; who finds it locked asks for a range of its own
	stream *stream
	last   int64 // where the last read ended
	closed bool
}

// stream is a request whose answer is being read.
type stream struct {
	r    *blob.Reader
	wait *waiting
	at   int64 // of the next byte
}

// Read reads the next bytes.
func (r *file) Read(p []byte) (int, error) {
	n, err := r.read(p, r.next, true)
	r.next += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// ReadAt reads the bytes from an offset on. It may be called by several goroutines.
func (r *file) ReadAt(p []byte, at int64) (int, error) { return r.read(p, at, false) }

func (r *file) read(p []byte, at int64, onward bool) (int, error) {
	if at < 0 {
		return 0, &fs.PathError{Op: "read", Path: r.name, Err: fs.ErrInvalid}
	}
	left := r.size - at
	if len(p) == 0 {
		return 0, nil
	}
	if left <= 0 {
		return 0, io.EOF
	}
	var end error
	if int64(len(p)) > left {
		p, end = p[:left], io.EOF
	}
	n, err := r.fill(p, at, onward)
	if err == nil {
		err = end
	}
	return n, err
}

// fill fills p, of which the file has every byte.
func (r *file) fill(p []byte, at int64, onward bool) (int, error) {
	if !r.mu.TryLock() {
		return r.exactly(p, at)
	}
	defer r.mu.Unlock()
	if r.closed {
		return 0, &fs.PathError{Op: "read", Path: r.name, Err: fs.ErrClosed}
	}
	onward = onward || at == r.last && at > 0
	r.last = at + int64(len(p))
	s := r.stream
	ahead := s != nil && at >= s.at && at-s.at <= skipBytes
	if !ahead && !onward {
		return r.exactly(p, at)
	}
	n := 0
	if ahead || r.begin(at, -1) == nil {
		n, _ = r.stream.fill(p, at)
	}
	if n == len(p) {
		if r.last == r.size {
			r.end()
		}
		return n, nil
	}
	r.end() // it broke; what is missing may be had by a request of its own
	more, err := r.exactly(p[n:], at+int64(n))
	return n + more, err
}

// begin opens the stream in the place of another.
func (r *file) begin(at, length int64) error {
	r.end()
	s, err := r.open(at, length)
	r.stream = s
	return err
}

// end closes the stream.
func (r *file) end() {
	if r.stream != nil {
		r.stream.close()
		r.stream = nil
	}
}

// open asks for bytes; a negative length means all to the end.
func (r *file) open(at, length int64) (*stream, error) {
	w := r.f.wait()
	reader, err := r.f.bucket.NewRangeReader(w.ctx, r.key, at, length, nil)
	if err != nil {
		err = r.f.failed("read", r.name, w, err)
		w.end()
		return nil, err
	}
	w.pause()
	return &stream{r: reader, wait: w, at: at}, nil
}

// exactly asks for a range and reads it.
func (r *file) exactly(p []byte, at int64) (int, error) {
	n := 0
	var failed error
	for range attempts {
		s, err := r.open(at+int64(n), int64(len(p)-n))
		if err != nil {
			return n, err
		}
		more, err := s.fill(p[n:], at+int64(n))
		n += more
		if err == nil {
			s.close()
			return n, nil
		}
		if err == io.EOF { // not the end of the file, which is known
			err = io.ErrUnexpectedEOF
		}
		failed = r.f.failed("read", r.name, s.wait, err)
		s.close()
	}
	return n, failed
}

// fill reads up to at and then fills p.
func (s *stream) fill(p []byte, at int64) (int, error) {
	if _, err := io.CopyN(io.Discard, s, at-s.at); err != nil {
		return 0, err
	}
	n := 0
	for n < len(p) {
		more, err := s.Read(p[n:])
		n += more
		if err != nil && n < len(p) {
			return n, err
		}
	}
	return n, nil
}

// Read reads what has come.
func (s *stream) Read(p []byte) (int, error) {
	s.wait.progress()
	n, err := s.r.Read(p)
	s.wait.pause()
	s.at += int64(n)
	return n, err
}

func (s *stream) close() {
	s.wait.end()
	_ = s.r.Close()
}

// Stat tells about the file as it was when it was opened.
func (r *file) Stat() (fs.FileInfo, error) { return r.info, nil }

// Close ends the reading.
func (r *file) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.Join(&fs.PathError{Op: "close", Path: r.name, Err: fs.ErrClosed})
	}
	r.closed = true
	r.end()
	return nil
}
