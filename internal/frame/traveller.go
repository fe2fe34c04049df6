package frame

import (
	"fmt"
	"sync/atomic"
)

// Frame is a column that travels between tasks, with marks at positions. Its sender fills it, its receiver cuts it into
// runs; with several receivers it is shared: read-only and counted.
type Frame struct {
	Column
	Marks []Mark
	refs  atomic.Int32 // receivers that still hold a shared frame; 0 for a frame with one receiver
}

// New returns an empty frame with room for capacity elements.
func New(t *Type, capacity int) *Frame {
	f := &Frame{}
	f.init(t, capacity)
	return f
}

// AddMark puts a mark behind the elements so far.
func (f *Frame) AddMark(m Mark) {
	m.Pos = int32(f.Len())
	f.Marks = append(f.Marks, m)
}

// Empty reports whether there is nothing to send.
func (f *Frame) Empty() bool { return f.Len() == 0 && len(f.Marks) == 0 }

// Share announces n receivers.
func (f *Frame) Share(n int) { f.refs.Store(int32(n)) }

// Shared reports whether the frame has, or had, several receivers.
func (f *Frame) Shared() bool { return f.refs.Load() != 0 }

// Release gives up one receiver's hold; it reports whether that was the last one, who may recycle the frame.
func (f *Frame) Release() bool {
	return f.refs.Load() == 0 || f.refs.Add(-1) == 0
}

// Recycle empties the frame for its next journey.
func (f *Frame) Recycle() {
	f.Reset()
	f.Marks = f.Marks[:0]
}

// Recode replaces every element by what its encoding decodes to: nothing of the sender's memory is left, as after a
// journey between processes.
func (f *Frame) Recode() error {
	r := f.Run()
	var buf []byte
	for i := range r.N {
		var err error
		if buf, err = f.Type.Append(buf[:0], r.At(i)); err != nil {
			return fmt.Errorf("encode an element of %s: %w", f.Type.Name, err)
		}
		f.Type.zero(r.At(i), 1)
		n, err := f.Type.Read(buf, r.At(i))
		if err != nil {
			return fmt.Errorf("decode an element of %s: %w", f.Type.Name, err)
		}
		if n != len(buf) {
			return fmt.Errorf("decode an element of %s: %d of its %d bytes were read", f.Type.Name, n, len(buf))
		}
	}
	return nil
}
