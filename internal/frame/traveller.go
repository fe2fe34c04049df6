package frame

import "sync/atomic"

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
