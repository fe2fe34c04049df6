package windowing

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/statebackend"
)

// keptBytes is the size up to which a buffer keeps its memory from one window to the next.
const keptBytes = 1 << 20

// buffer holds the elements of a window that fires in Go memory.
type buffer struct {
	col   *frame.Column
	spare *frame.Column // see sift and copied
	one   *frame.Column // where the list puts each element
	last  frame.Run     // the element in it
	run   frame.Run     // scratch: what is handed through a closure must not be a local
	next  func() bool
}

func (b *buffer) open(t *frame.Type) {
	b.col, b.one = frame.NewColumn(t, 1), frame.NewColumn(t, 1)
	b.last = b.one.Fill(1)
	b.next = func() bool {
		b.col.Append(&b.last, 0, 1)
		if t.Pointers { // what decodes the next one might use memory of this one
			b.one.Reset()
			b.one.Fill(1)
		}
		return true
	}
}

// load fills the buffer with the list of key i and returns its length.
func (b *buffer) load(list statebackend.ListTable, i int) (int, error) {
	n := list.Count(i)
	if n == 0 {
		return 0, nil
	}
	if n > b.col.Cap() {
		b.col = frame.NewColumn(b.col.Type, max(n, min(2*b.col.Cap(), frame.MaxLen)))
	}
	return n, list.Each(i, unsafe.Pointer(b.last.P), b.next)
}

// reset empties the buffer.
func (b *buffer) reset() {
	b.col.Reset()
	if b.spare != nil {
		b.spare.Reset()
	}
	if b.col.Cap()*int(b.col.Type.Size) > keptBytes {
		b.col, b.spare = frame.NewColumn(b.col.Type, 1), nil
	}
}

// makeSpare makes sure that the spare column has as much room as the other one, and nothing in it.
func (b *buffer) makeSpare() {
	if b.spare == nil || b.spare.Cap() < b.col.Cap() {
		b.spare = frame.NewColumn(b.col.Type, b.col.Cap())
	}
	b.spare.Reset()
}

// copied gives copies of the elements.
func (b *buffer) copied() frame.Run {
	b.makeSpare()
	b.run = b.col.Run()
	b.spare.Append(&b.run, 0, b.run.N)
	return b.spare.Run()
}

// sift empties the buffer for those elements that keep is called for afterwards.
func (b *buffer) sift() {
	b.makeSpare()
	b.col, b.spare = b.spare, b.col
	b.run = b.spare.Run()
}

// keep takes element i of those that were in the buffer when it was sifted.
func (b *buffer) keep(i int) { b.col.Append(&b.run, i, i+1) }
