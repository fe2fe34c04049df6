package windowing

import (
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// windowType is what the engine knows of the type of windows: their canonical form, which names state and timers, and how
// to ask for max timestamps.
type windowType struct {
	*serde.Key
	plain bool // Go memory is the canonical form
	maxes func(dst []int64, p unsafe.Pointer, n int) []int64
}

// namespace is the type of the namespace of tables: none if there is only one window.
func (t *windowType) namespace() *serde.Key {
	if t.Size == 0 {
		return nil
	}
	return t.Key
}

// view is one window: its address in Go memory, its canonical form and its max timestamp.
type view struct {
	p   unsafe.Pointer
	b   []byte
	max int64
}

// is says whether two views show the same window.
func (v *view) is(o *view) bool { return string(v.b) == string(o.b) }

// row is an array of windows of which views are taken.
type row struct {
	p       unsafe.Pointer
	n       int
	maxes   []int64
	canon   serde.Canon
	scratch serde.KeyScratch
}

// set makes the n windows at p those of the row.
func (r *row) set(t *windowType, p unsafe.Pointer, n int) error {
	r.p, r.n, r.maxes = p, n, t.maxes(r.maxes[:0], p, n)
	return r.canonical(t)
}

// canonical makes the canonical form of the row's windows. It is valid until the next one of this row.
func (r *row) canonical(t *windowType) (err error) {
	if !t.plain && t.Size != 0 && r.n != 0 {
		r.canon, err = t.Canon(serde.Column{P: r.p, N: r.n, Stride: t.Size}, &r.scratch)
	}
	return err
}

// view is window i of the row.
func (r *row) view(t *windowType, i int) view {
	v := view{p: unsafe.Add(r.p, uintptr(i)*t.Size), max: r.maxes[i]}
	switch {
	case t.plain:
		v.b = unsafe.Slice((*byte)(v.p), t.Size)
	case t.Size != 0:
		v.b = r.canon.Bytes(i)
	}
	return v
}
