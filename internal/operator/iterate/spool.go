package iterate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
)

// segmentBytes is how long a spill file grows before the next one is begun: files are removed as a whole once they are
// read, so that the disk is given back piece by piece.
const segmentBytes = 64 << 20

// maxFree is how many empty frames are kept for reuse.
const maxFree = 16

// spool is an unbounded queue of elements and probes. The oldest elements lie in memory up to a limit, all others but
// those of the newest frame in files. It belongs to one owner at a time.
type spool struct {
	typ      *frame.Type
	limit    int64        // bytes in memory
	capacity int          // elements of a frame
	bytes    int64        // that a frame takes, an estimate for types with pointers
	memory   *host.Memory // the process's budget; nil: without limit
	fs       vfs.FS
	name     string // of files, a number is added

	items   []item
	first   int // of items
	used    int64
	queued  int64 // elements
	spilled int64 // elements ever written to files
	free    []*frame.Frame
	files   int
	current *segment
	buf     []byte
	closed  bool
}

// item is a stretch of the queue: a frame in memory, an encoded frame in a segment, or a probe.
type item struct {
	frame *frame.Frame
	seg   *segment
	at    int64
	len   int
	n     int // elements in the segment
	probe int64
	// barrier is the value of a barrier that has come back; 0: none.
	barrier int64
}

// segment is a spill file.
type segment struct {
	name string
	w    vfs.Writer
	r    vfs.File
	size int64
	left int // items that were not read
}

func newSpool(typ *frame.Type, limit int64, memory *host.Memory, fsys vfs.FS, name string) *spool {
	s := &spool{typ: typ, limit: limit, capacity: typ.FrameLen(frame.Bytes), memory: memory, fs: fsys, name: name}
	size := int64(typ.Size) + 8
	if typ.Pointers {
		size += 32 // as frames estimate it
	}
	s.bytes = int64(s.capacity) * size
	return s
}

// add appends the elements of a run.
func (s *spool) add(r *frame.Run) error {
	for from := 0; from < r.N; {
		f, err := s.open()
		if err != nil {
			return err
		}
		n := min(f.Room(), r.N-from)
		f.Append(r, from, from+n)
		from += n
		s.queued += int64(n)
		if f.Room() == 0 && s.used > s.limit {
			if err := s.spill(); err != nil {
				return err
			}
		}
	}
	return nil
}

// open is the newest frame, with room.
func (s *spool) open() (*frame.Frame, error) {
	if f := s.newest(); f != nil && f.Room() > 0 {
		return f, nil
	}
	f, err := s.fresh()
	if err != nil {
		return nil, err
	}
	s.used += s.bytes
	s.append(item{frame: f})
	return f, nil
}

// newest is the last item if that is a frame in memory.
func (s *spool) newest() *frame.Frame {
	if len(s.items) == s.first {
		return nil
	}
	return s.items[len(s.items)-1].frame
}

// fresh is an empty frame. If the process's memory is used up, the newest one goes to a file and is used again.
func (s *spool) fresh() (*frame.Frame, error) {
	if len(s.free) == 0 {
		err := s.memory.Reserve(s.bytes)
		if err == nil {
			return frame.New(s.typ, s.capacity), nil
		}
		if s.newest() == nil {
			return nil, fmt.Errorf("keep feedback: %w", err)
		}
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	n := len(s.free) - 1
	f := s.free[n]
	s.free = s.free[:n]
	return f, nil
}

func (s *spool) append(it item) {
	if s.first > 0 && len(s.items) == cap(s.items) {
		n := copy(s.items, s.items[s.first:])
		clear(s.items[n:])
		s.items, s.first = s.items[:n], 0
	}
	s.items = append(s.items, it)
}

// mark appends a probe.
func (s *spool) mark(probe int64) { s.append(item{probe: probe}) }

// spill writes the newest frame to a file.
func (s *spool) spill() error {
	it := &s.items[len(s.items)-1]
	r := it.frame.Run()
	b, err := encodeRun(s.buf[:0], &r)
	if err != nil {
		return fmt.Errorf("spill feedback: %w", err)
	}
	s.buf = b
	seg, err := s.segment()
	if err != nil {
		return fmt.Errorf("spill feedback: %w", err)
	}
	if _, err := vfs.WriteAll(seg.w, b); err != nil {
		return fmt.Errorf("spill feedback: write %s: %w", seg.name, err)
	}
	f := it.frame
	*it = item{seg: seg, at: seg.size, len: len(b), n: r.N}
	seg.size += int64(len(b))
	seg.left++
	s.spilled += int64(r.N)
	s.recycle(f)
	return nil
}

// recycle takes a frame back that is no longer part of the queue.
func (s *spool) recycle(f *frame.Frame) {
	s.used -= s.bytes
	if len(s.free) == maxFree || s.closed {
		s.memory.Release(s.bytes)
		return
	}
	f.Recycle()
	s.free = append(s.free, f)
}

// segment is the file to write to. Names that others took are passed over.
func (s *spool) segment() (*segment, error) {
	if s.current != nil && s.current.size < segmentBytes {
		return s.current, nil
	}
	if s.current != nil {
		if err := s.seal(); err != nil {
			return nil, err
		}
	}
	if err := s.fs.MkdirAll(path.Dir(s.name)); err != nil {
		return nil, fmt.Errorf("make the folder of spill files: %w", err)
	}
	for {
		seg := &segment{name: fmt.Sprintf("%s-%d.spill", s.name, s.files)}
		s.files++
		var err error
		seg.w, err = s.fs.Create(seg.name, vfs.Exclusive)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.current = seg
		return seg, nil
	}
}

// seal ends writing to the current file.
func (s *spool) seal() error {
	seg := s.current
	s.current = nil
	if err := seg.w.Close(); err != nil {
		return fmt.Errorf("close %s: %w", seg.name, err)
	}
	if seg.left == 0 {
		return s.remove(seg)
	}
	return nil
}

// take removes the oldest item; ok is false if there is none.
func (s *spool) take() (it item, ok bool) {
	if s.first == len(s.items) {
		return item{}, false
	}
	it = s.items[s.first]
	s.items[s.first] = item{}
	if s.first++; s.first == len(s.items) {
		s.items, s.first = s.items[:0], 0
	}
	if it.frame != nil {
		s.queued -= int64(it.frame.Len())
	} else {
		s.queued -= int64(it.n)
	}
	return it, true
}

// read fetches a spilled item into dst, which must have room for capacity elements, and returns it with its timestamps
// in times' memory. Only the reader calls it; the owner may change hands meanwhile.
func (s *spool) read(it *item, dst *frame.Column, buf []byte, times []int64) (frame.Run, []byte, []int64, error) {
	if it.seg.r == nil {
		r, err := s.fs.Open(it.seg.name)
		if err != nil {
			return frame.Run{}, buf, times, fmt.Errorf("read spilled feedback: %w", err)
		}
		it.seg.r = r
	}
	if cap(buf) < it.len {
		buf = make([]byte, it.len)
	}
	buf = buf[:it.len]
	if _, err := it.seg.r.ReadAt(buf, it.at); err != nil {
		return frame.Run{}, buf, times, fmt.Errorf("read spilled feedback: %s at %d: %w", it.seg.name, it.at, err)
	}
	run := dst.Fill(it.n)
	times, err := decodeRun(buf, &run, times)
	if err != nil {
		return frame.Run{}, buf, times, fmt.Errorf("read spilled feedback: %s at %d: %w", it.seg.name, it.at, err)
	}
	return run, buf, times, nil
}

// done says that a spilled item has been read; a file of which nothing is left is removed, unless more goes into it.
func (s *spool) done(it *item) error {
	if it.seg.left--; it.seg.left > 0 || it.seg == s.current {
		return nil
	}
	return s.remove(it.seg)
}

func (s *spool) remove(seg *segment) error {
	var err error
	if seg.r != nil {
		err = seg.r.Close()
		seg.r = nil
	}
	if err = errors.Join(err, s.fs.Remove(seg.name)); err != nil {
		return fmt.Errorf("remove spilled feedback: %w", err)
	}
	return nil
}

// close drops everything and returns how many elements that were.
func (s *spool) close() (dropped int64, err error) {
	dropped = s.queued
	var errs []error
	if s.current != nil {
		errs = append(errs, s.seal())
	}
	for {
		it, ok := s.take()
		if !ok {
			break
		}
		switch {
		case it.seg != nil:
			errs = append(errs, s.done(&it))
		case it.frame != nil:
			s.recycle(it.frame)
		}
	}
	s.memory.Release(int64(len(s.free)) * s.bytes)
	s.queued, s.free, s.buf, s.closed = 0, nil, nil, true
	return dropped, errors.Join(errs...)
}

// encodeRun appends a run as it lies in a spill file: whether there are timestamps, these, the elements. Spill files
// don't outlive the process.
func encodeRun(dst []byte, r *frame.Run) ([]byte, error) {
	if r.Times == nil {
		dst = append(dst, 0)
	} else {
		dst = append(dst, 1)
		for _, t := range r.Times {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(t))
		}
	}
	return r.Type.AppendColumn(dst, serde.Column{P: r.P, N: r.N, Stride: r.Type.Size})
}

// decodeRun fills the elements of a run of known length and gives it its timestamps.
func decodeRun(b []byte, r *frame.Run, times []int64) ([]int64, error) {
	if len(b) == 0 || b[0] > 1 || b[0] == 1 && len(b) < 1+8*r.N {
		return times, errors.New("the record is damaged")
	}
	stamped := b[0] == 1
	b = b[1:]
	r.Times = nil
	if stamped {
		if cap(times) < r.N {
			times = make([]int64, r.N)
		}
		times = times[:r.N]
		for i := range times {
			times[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
		r.Times, b = times, b[8*r.N:]
	}
	n, err := r.Type.ReadColumn(b, serde.Column{P: r.P, N: r.N, Stride: r.Type.Size})
	if err == nil && n != len(b) {
		err = fmt.Errorf("%d of %d bytes were read", n, len(b))
	}
	return times, err
}
