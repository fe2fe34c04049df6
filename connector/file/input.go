package file

import (
	"io"
	"math"
)

const (
	// blockSize is the memory that is read into at once. It is larger than the 64 KiB from which reading more at once
	// makes no difference, as what crosses two blocks is copied.
	blockSize = 256 << 10
	// lookahead is read behind the end of a split: most often its last record ends there.
	lookahead = 4 << 10
	// Lookback is the number of bytes before the start of a split that its Input begins with, so that a delimiter across
	// the start is found. No delimiter may be longer.
	Lookback = 64
	// DefaultMaxRecord is the number of bytes that a record may have unless a format says otherwise.
	DefaultMaxRecord = 128 << 20
)

// Input is the text of a split on its way to a decoder: a window of bytes that begins at the next byte to read. Its
// memory is written once, so strings and slices of elements may point into it.
type Input struct {
	path   string
	src    io.Reader // what follows buf[:end]
	buf    []byte
	pos    int   // the window is buf[pos:end]
	end    int   //
	base   int64 // offset of buf[0]
	start  int64
	skip   int64 // records at the begin that were emitted
	read   int64 // bytes read at random
	want   int   // the length of window that FillTo is to reach
	stop   int64 // the last offset at which a record of this split may begin
	size   int64 // of the file where it is known to matter, or math.MaxInt64
	block  int
	err    error // of src, told by the next Fill
	faults faults
}

// faults is what an Input does about bad records and how it finds more of its file than the split.
type faults interface {
	bad(at int64, record []byte, cause func(line int64) error) error
	head() (*Input, error)
	done()
}

// NewInput makes an Input of any text, for tests of formats and for connectors that read other things than files: r is
// one split from the first byte to the last, and the first bad record is an error.
func NewInput(path string, r io.Reader) *Input {
	return &Input{path: path, src: r, stop: math.MaxInt64, size: math.MaxInt64, block: blockSize, faults: strict{}}
}

// Path is the name of the file.
func (in *Input) Path() string { return in.path }

// Offset is the position in the file of the window's first byte.
func (in *Input) Offset() int64 { return in.base + int64(in.pos) }

// Start is the offset at which the split begins. If it is more than 0 and not less than Offset, nothing of the split has
// been read: the decoder skips to the first record that begins behind Start.
func (in *Input) Start() int64 { return in.start }

// Stop is the last offset at which a record of this split may begin; math.MaxInt64 if the file is not cut.
func (in *Input) Stop() int64 { return in.stop }

// Skip is the number of records, of the block that begins at Offset, that were emitted before: more than 0 only for the
// formats of BlockDecoders, after a restore.
func (in *Input) Skip() int64 { return in.skip }

// Window is the text at hand. The slice may be kept, its bytes never change.
func (in *Input) Window() []byte { return in.buf[in.pos:in.end:in.end] }

// Advance takes n bytes off the window.
func (in *Input) Advance(n int) { in.pos += n }

// Fill makes the window longer. It returns io.EOF if there is no more text; other errors mean that the decoder must
// return them as they are and may be called again, with the window as it was.
func (in *Input) Fill() error {
	if in.err != nil {
		return in.err
	}
	if in.end == len(in.buf) {
		in.grow()
	}
	n, err := in.src.Read(in.buf[in.end:in.limit()])
	in.end += n
	switch {
	case err == ErrWait:
		return ErrWait
	case n > 0:
		in.err = err
		return nil
	case err != nil:
		in.err = err
		return err
	}
	return io.ErrNoProgress
}

// FillTo makes the window at least n bytes long, for records that tell their lengths: it reads as much as that at once,
// also behind the end of the split. Its errors are those of Fill; io.EOF says that the text ends before.
func (in *Input) FillTo(n int) error {
	in.want = n
	defer func() { in.want = 0 }()
	for in.end-in.pos < n {
		if err := in.Fill(); err != nil {
			return err
		}
	}
	return nil
}

// grow takes a new block and copies the window to its begin: the old block belongs to the elements that point into it.
func (in *Input) grow() {
	window := in.end - in.pos
	size := in.block
	if window >= size/2 {
		size = 2*window + in.block
	}
	if left := in.left(); left < int64(size-window) {
		size = window + int(left)
	}
	buf := make([]byte, size)
	copy(buf, in.buf[in.pos:in.end])
	in.base += int64(in.pos)
	in.buf, in.pos, in.end = buf, 0, window
}

// limit is how far the block is read into: not far behind the end of the split, as its bytes are the next one's.
func (in *Input) limit() int {
	return in.end + int(min(int64(len(in.buf)-in.end), in.left()))
}

// left is how many bytes are worth reading at once.
func (in *Input) left() int64 {
	at := in.base + int64(in.end)
	rest := max(in.size-at, 0)
	ours := min(max(in.stop-at, 0), rest, math.MaxInt64-lookahead) + lookahead
	return max(ours, min(int64(in.want-(in.end-in.pos)), rest))
}

// Bad tells of a record that can't be decoded, with the offset at which it begins. The decoder goes on with the next
// record if Bad returns nil, and returns the error otherwise. cause makes the error and gets the number of the line in
// the file, from 1; it is called only if somebody wants to know.
func (in *Input) Bad(at int64, record []byte, cause func(line int64) error) error {
	return in.faults.bad(at, record, cause)
}

// Head opens the text of the file from its first byte, for formats with a header. The caller closes it.
func (in *Input) Head() (*Input, error) { return in.faults.head() }

// Close releases the file. Only an Input that came from Head is closed by its decoder.
func (in *Input) Close() error {
	in.faults.done()
	if c, ok := in.src.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// strict is for an Input of its own, without a file behind.
type strict struct{}

func (strict) bad(_ int64, _ []byte, cause func(line int64) error) error { return cause(0) }

func (strict) head() (*Input, error) { return nil, errNoFile }

func (strict) done() {}
