package heap

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// rowWriter makes the rows of a table of a snapshot. It belongs to the writer.
type rowWriter struct {
	*leaf
	frozen *frozen
	name   string
	ttl    *statebackend.TTL
	value  *serde.Handle
	buf    []byte         // of a value
	v      unsafe.Pointer // a Go value on its way
}

func newRowWriter(f *frozen, l *leaf, spec *statebackend.TableSpec) rowWriter {
	w := rowWriter{leaf: l, frozen: f, name: spec.Name, value: spec.Value}
	if spec.TTL != nil {
		ttl := *spec.TTL
		w.ttl = &ttl
	}
	return w
}

// rows gives what emit makes of each entry of the leaf: it calls yield for each row until that returns false.
func (w *rowWriter) rows(
	emit func(e unsafe.Pointer, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (bool, error),
) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		err := w.each(func(e unsafe.Pointer, r *statebackend.Row) (bool, error) { return emit(e, r, yield) })
		if err != nil {
			yield(nil, fmt.Errorf("operator %q: snapshot of state %q: %w", w.frozen.store.Operator, w.name, err))
		}
	}
}

// expired says whether what was written at a time had expired when the snapshot was taken.
func (w *rowWriter) expired(at int64) bool { return w.ttl != nil && w.ttl.Expired(at, w.frozen.now) }

// encode gives the encoding of the value of a slot.
func (w *rowWriter) encode(c *cells, slot unsafe.Pointer) (b []byte, err error) {
	from := slot
	switch c.Layout {
	case serde.Encoded:
		return c.bytes((*record)(slot)), nil
	case serde.Text:
		if w.v == nil {
			w.v = c.New()
		}
		from = w.v
		if err := c.load(slot, from); err != nil {
			return nil, err
		}
	}
	w.buf, err = c.Append(w.buf[:0], from)
	return w.buf, err
}

// freeze implements keeper.
func (t *valueTable) freeze(f *frozen) iter.Seq2[*statebackend.Row, error] {
	t.forget()
	w := newRowWriter(f, t.ix.freeze(f), &t.s)
	c, stamp := t.cells.freeze(), t.stamp
	return w.rows(func(e unsafe.Pointer, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (_ bool, err error) {
		slot := unsafe.Add(e, w.slotOff)
		if stamp != 0 {
			if r.At = *(*int64)(slot); w.expired(r.At) {
				return true, nil
			}
		}
		if r.Value, err = w.encode(c, unsafe.Add(slot, stamp)); err != nil {
			return false, err
		}
		return yield(r, nil), nil
	})
}

// freeze implements keeper.
func (t *listTable) freeze(f *frozen) iter.Seq2[*statebackend.Row, error] {
	w := newRowWriter(f, t.ix.freeze(f), &t.s)
	list := listShape{handle: t.handle, dated: t.dated, blocks: t.blocks.freeze()}
	return w.rows(func(e unsafe.Pointer, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (bool, error) {
		for c := list.cursor((*listHead)(unsafe.Add(e, w.slotOff))); ; {
			p, payload := c.next()
			if p == nil {
				return true, nil
			}
			if w.ttl != nil {
				if r.At = *(*int64)(p); w.expired(r.At) {
					continue
				}
			}
			r.Value = payload
			if list.handle.Layout == serde.Fixed {
				var err error
				if r.Value, err = w.encodeUnaligned(payload); err != nil {
					return false, err
				}
			}
			if !yield(r, nil) {
				return false, nil
			}
		}
	})
}

// encodeUnaligned gives the encoding of a value of fixed layout.
func (w *rowWriter) encodeUnaligned(b []byte) (_ []byte, err error) {
	if w.v == nil {
		w.v = w.value.New()
	}
	copy(bytesAt(w.v, w.value.Size), b)
	w.buf, err = w.value.Append(w.buf[:0], w.v)
	return w.buf, err
}

// freeze implements keeper.
func (t *mapTable) freeze(f *frozen) iter.Seq2[*statebackend.Row, error] {
	w := newRowWriter(f, t.owners.freeze(f), &t.s)
	sh, keys := t.entries.freezeRows(f), t.entries.freezeKeys()
	w.also = sh
	c, stamp, width := t.cells.freeze(), t.stamp, t.entries.rows.bits
	entry := make([]uint64, sh.size/8)
	row := unsafe.Pointer(&entry[0])
	return w.rows(func(e unsafe.Pointer, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (_ bool, err error) {
		for id := (*mapHead)(unsafe.Add(e, w.slotOff)).first; id != 0; id = (*mapLinks)(row).next {
			sh.read(int((id-1)>>width), int((id-1)&(1<<width-1)), row)
			slot := unsafe.Add(row, keys.slotOff)
			if stamp != 0 {
				if r.At = *(*int64)(slot); w.expired(r.At) {
					continue
				}
			}
			r.MapKey, _ = keys.keyBytes(row)
			if r.Value, err = w.encode(c, unsafe.Add(slot, stamp)); err != nil {
				return false, err
			}
			if !yield(r, nil) {
				return false, nil
			}
		}
		return true, nil
	})
}
