package file

import (
	"bytes"
	"fmt"
	"io"
)

// Records cuts the text of an Input at a delimiter. Each record belongs to one split, however the file is cut.
type Records struct {
	in      *Input
	delim   []byte
	max     int
	scanned int // bytes of the window that hold no begin of a delimiter
	begin   int64
	ready   bool
}

// NewRecords returns the records of in. The delimiter has 1 to Lookback bytes; "" means "\n". With "\n" a "\r" at the
// end of a record is not part of it. max is the length that a record may have, 0: DefaultMaxRecord.
func NewRecords(in *Input, delimiter string, max int) *Records {
	if delimiter == "" {
		delimiter = "\n"
	}
	if max == 0 {
		max = DefaultMaxRecord
	}
	return &Records{in: in, delim: []byte(delimiter), max: max}
}

// SplittableAt reports whether text can be cut anywhere if its records end with the delimiter: an occurrence of the
// delimiter must be one wherever one starts to look. In "aaa" the delimiter "aa" depends on it.
func SplittableAt(delimiter string) bool {
	for n := 1; n < len(delimiter); n++ {
		if delimiter[:n] == delimiter[len(delimiter)-n:] {
			return false
		}
	}
	return true
}

// Begin is the offset of the record that Next returned last.
func (r *Records) Begin() int64 { return r.begin }

// Position is the offset of the record after that; the start of the split while there was none.
func (r *Records) Position() int64 {
	if !r.ready {
		return max(r.in.Offset(), r.in.start) // the Input begins before the split
	}
	return r.in.Offset()
}

// Next returns the next record without its delimiter, io.EOF after the last one. After other errors it may be called
// again. The bytes never change.
func (r *Records) Next() ([]byte, error) {
	if err := r.Ready(); err != nil {
		return nil, err
	}
	end, next, err := r.End(0)
	if err != nil {
		return nil, err
	}
	return r.Take(end, next), nil
}

// Ready goes to the begin of the next record. It returns io.EOF if the split has no more.
func (r *Records) Ready() error {
	in := r.in
	if r.ready && in.Offset() <= in.stop {
		return nil
	}
	if !r.ready {
		if err := r.sync(); err != nil {
			return err
		}
	}
	if in.Offset() > in.stop {
		return io.EOF
	}
	if in.Offset() == 0 {
		if err := SkipMark(in); err != nil {
			return err
		}
	}
	r.ready = true
	return nil
}

// End finds the first delimiter that begins at position from of the window or later, for formats in whose records a
// delimiter may be text: it begins at end, and the window goes on at next. Behind the last delimiter both are the end of
// the text, and io.EOF says that there is none.
func (r *Records) End(from int) (end, next int, err error) {
	in := r.in
	whole := from <= r.scanned // else there may be delimiters before from that count when the record is looked at again
	from = max(from, r.scanned)
	for {
		window := in.buf[in.pos:in.end]
		if i := r.find(window[from:]); i >= 0 {
			return from + i, from + i + len(r.delim), nil
		}
		from = max(from, len(window)-len(r.delim)+1)
		if whole {
			r.scanned = from
		}
		if err := r.More(); err == io.EOF && len(window) > 0 {
			return len(window), len(window), nil
		} else if err != nil {
			return 0, 0, err
		}
	}
}

// Take takes a record off the window and returns it, without a CR that belongs to the delimiter.
func (r *Records) Take(end, next int) []byte {
	in := r.in
	record := in.buf[in.pos : in.pos+end : in.pos+end]
	r.begin = in.Offset()
	in.pos += next
	r.scanned = 0
	return r.Trim(record)
}

func (r *Records) find(text []byte) int {
	if len(r.delim) == 1 {
		return bytes.IndexByte(text, r.delim[0])
	}
	return bytes.Index(text, r.delim)
}

// Trim takes off the CR of a CR LF.
func (r *Records) Trim(record []byte) []byte {
	if n := len(record); n > 0 && record[n-1] == '\r' && len(r.delim) == 1 && r.delim[0] == '\n' {
		return record[: n-1 : n-1]
	}
	return record
}

// More makes the window longer, if the record may be. Its errors are those of Input.Fill and ErrTooLong.
func (r *Records) More() error {
	if r.in.end-r.in.pos > r.max {
		return &Error{Path: r.in.path, Offset: r.in.Offset(), Err: fmt.Errorf("%w: more than %d bytes", ErrTooLong, r.max)}
	}
	return r.in.Fill()
}

// sync skips the record that the split before reads: behind the first delimiter that ends after Start.
func (r *Records) sync() error {
	in := r.in
	if in.start == 0 || in.Offset() > in.start {
		return nil
	}
	for {
		window := in.buf[in.pos:in.end]
		if from := max(0, int(in.start-in.Offset())-len(r.delim)+1); from <= len(window) {
			if i := r.find(window[from:]); i >= 0 {
				in.pos += from + i + len(r.delim)
				return nil
			}
			// What was looked at is dropped, or a long record would be gathered for nothing.
			in.pos += max(from, len(window)-len(r.delim)+1)
		}
		if err := in.Fill(); err != nil {
			return err
		}
	}
}

// SkipMark takes a byte order mark of UTF-8 off the begin of the text.
func SkipMark(in *Input) error {
	const mark = "\xef\xbb\xbf"
	for in.end-in.pos < len(mark) {
		if window := in.Window(); string(window) != mark[:len(window)] {
			return nil
		}
		if err := in.Fill(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	if string(in.buf[in.pos:in.pos+len(mark)]) == mark {
		in.pos += len(mark)
	}
	return nil
}
