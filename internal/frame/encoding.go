package frame

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/serde"
)

// Encode appends the bytes of the frame as snapshots hold them: docs/formats/snapshot.md describes them.
func (f *Frame) Encode(dst []byte) ([]byte, error) {
	r := f.Run()
	dst = binary.AppendUvarint(dst, uint64(r.N))
	dst = appendTimes(dst, r.Times)
	dst, err := f.Type.AppendColumn(dst, serde.Column{P: r.P, N: r.N, Stride: f.Type.Size})
	if err != nil {
		return dst, err
	}
	dst = binary.AppendUvarint(dst, uint64(len(f.Marks)))
	for _, m := range f.Marks {
		dst = append(dst, byte(m.Kind))
		dst = binary.AppendUvarint(dst, uint64(m.Pos))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(m.Value))
	}
	return dst, nil
}

func appendTimes(dst []byte, times []int64) []byte {
	if times == nil {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	for _, t := range times {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(t))
	}
	return dst
}

var errFrame = errors.New("decode a frame: it is damaged")

// Decode reads the bytes of a frame of elements of type t, all of them. old reads elements that were written under another
// schema; nil: they are of the type's own.
func Decode(t *Type, old *serde.Reader, b []byte) (*Frame, error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > MaxLen {
		return nil, errFrame
	}
	f := New(t, max(1, int(n)))
	f.Fill(int(n))
	b, ok := f.readTimes(b[used:])
	if !ok {
		return nil, errFrame
	}
	b, err := f.readElements(old, b)
	if err != nil {
		return nil, err
	}
	if b, ok = f.readMarks(b); !ok || len(b) != 0 {
		return nil, errFrame
	}
	return f, nil
}

func (f *Frame) readTimes(b []byte) (rest []byte, ok bool) {
	if len(b) == 0 || b[0] > 1 {
		return nil, false
	}
	stamped := b[0] == 1
	if b = b[1:]; !stamped {
		return b, true
	}
	if len(b) < 8*f.n {
		return nil, false
	}
	for i := range f.n {
		f.times = append(f.times, int64(binary.LittleEndian.Uint64(b[8*i:])))
	}
	return b[8*f.n:], true
}

func (f *Frame) readElements(old *serde.Reader, b []byte) (rest []byte, err error) {
	r := f.Run()
	if old == nil {
		n, err := f.Type.ReadColumn(b, serde.Column{P: r.P, N: r.N, Stride: f.Type.Size})
		if err != nil {
			return nil, fmt.Errorf("decode a frame: %w", err)
		}
		return b[n:], nil
	}
	for i := range r.N {
		n, err := old.Read(b, r.At(i))
		if err != nil {
			return nil, fmt.Errorf("decode a frame: %w", err)
		}
		b = b[n:]
	}
	return b, nil
}

func (f *Frame) readMarks(b []byte) (rest []byte, ok bool) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)) {
		return nil, false
	}
	b = b[used:]
	last := uint64(0)
	for range n {
		if len(b) == 0 || b[0] > byte(Probe) {
			return nil, false
		}
		kind := MarkKind(b[0])
		pos, used := binary.Uvarint(b[1:])
		if used <= 0 || pos < last || pos > uint64(f.n) || len(b) < 1+used+8 {
			return nil, false
		}
		last = pos
		f.Marks = append(f.Marks, Mark{Kind: kind, Pos: int32(pos), Value: int64(binary.LittleEndian.Uint64(b[1+used:]))})
		b = b[1+used+8:]
	}
	return b, true
}
