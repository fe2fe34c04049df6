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
	frozen  *frozen
	name    string
	ttl     *statebackend.TTL
	value   *serde.Handle
	changes *changes       // nil: the table is whole
	buf     []byte         // of a value
	v       unsafe.Pointer // a Go value on its way
}

func newRowWriter(f *frozen, l *leaf, spec *statebackend.TableSpec, c *changes) rowWriter {
	w := rowWriter{leaf: l, frozen: f, name: spec.Name, value: spec.Value, changes: c}
	if spec.TTL != nil {
		ttl := *spec.TTL
		w.ttl = &ttl
	}
	return w
}

// emitter makes rows of an entry and calls yield for each until that returns false.
type emitter func(e unsafe.Pointer, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (bool, error)

// rows gives what was removed and what emit makes of each entry of the leaf, group by group.
func (w *rowWriter) rows(emit emitter) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		begin := func(int) bool { return true }
		err := error(nil)
		if w.changes != nil {
			err = w.reserved(w.changes.gone.order(w.frozen))
			begin = func(group int) bool { return w.changes.gone.show(group, yield) }
			defer w.changes.drop(w.frozen)
		}
		if err == nil {
			err = w.each(begin, func(e unsafe.Pointer, r *statebackend.Row) (bool, error) { return emit(e, r, yield) })
		}
		if err != nil {
			yield(nil, w.failed(err))
		}
	}
}

func (w *rowWriter) failed(err error) error {
	return fmt.Errorf("operator %q: snapshot of state %q: %w", w.frozen.store.Operator, w.name, err)
}

// batches gives the rows of a table whose keys and values lie in its entries as they stand in a snapshot: those that rows gives.
func (w *rowWriter) batches() iter.Seq2[*statebackend.RowBatch, error] {
	return func(yield func(*statebackend.RowBatch, error) bool) {
		var b statebackend.RowBatch
		var begin func(int) bool
		err := error(nil)
		if w.changes != nil {
			err = w.reserved(w.changes.gone.order(w.frozen))
			begin = func(group int) bool { return w.changes.gone.batches(group, int(w.width), yield) }
			defer w.changes.drop(w.frozen)
		}
		if err == nil {
			err = w.segments(begin, func(group int, from, to uint32) bool {
				n := int(to - from)
				b = statebackend.RowBatch{Group: group, N: n, Keys: w.column(from, n, w.keyOff, w.width)}
				b.Values = w.column(from, n, w.slotOff, w.value.Size)
				return yield(&b, nil)
			})
		}
		if err != nil {
			yield(nil, w.failed(err))
		}
	}
}

// fade yields the row of a changed entry that has expired: whatever is known of it from earlier is gone.
func fade(r *statebackend.Row, yield func(*statebackend.Row, error) bool) bool {
	r.At, r.Value, r.Deleted = 0, nil, true
	more := yield(r, nil)
	r.Deleted = false
	return more
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
func (t *valueTable) freeze(f *frozen, how statebackend.Freezing, table *statebackend.FrozenTable) {
	t.forget()
	pages := t.pages()
	ch := t.base.take(f, how, &t.ledger, pages[0].changed(), t.Len(), &table.TableInfo, pages...)
	table.Changes = ch != nil
	w := newRowWriter(f, t.ix.freeze(f, ch), &t.s, ch)
	c, stamp := t.cells.freeze(), t.stamp
	if stamp == 0 && w.width > 0 && !w.suffixed && c.Plain() {
		table.Batches = w.batches()
	}
	table.Rows = w.rows(func(e unsafe.Pointer, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (_ bool, err error) {
		slot := unsafe.Add(e, w.slotOff)
		if stamp != 0 {
			if r.At = *(*int64)(slot); w.expired(r.At) {
				return ch == nil || fade(r, yield), nil
			}
		}
		if r.Value, err = w.encode(c, unsafe.Add(slot, stamp)); err != nil {
			return false, err
		}
		return yield(r, nil), nil
	})
}

// freeze implements keeper. Changes of a list that is older than the base are the elements that were appended since.
func (t *listTable) freeze(f *frozen, how statebackend.Freezing, table *statebackend.FrozenTable) {
	ch := t.base.take(f, how, &t.ledger, t.grown, t.total, &table.TableInfo, t.pages()...)
	table.Changes = ch != nil
	if how.Anchor {
		t.grown = 0
	}
	w := newRowWriter(f, t.ix.freeze(f, ch), &t.s, ch)
	list := listShape{handle: t.handle, dated: t.dated, blocks: t.blocks.freeze()}
	table.Rows = w.rows(func(e unsafe.Pointer, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (bool, error) {
		c := list.cursor((*listHead)(unsafe.Add(e, w.slotOff)))
		if ch != nil {
			c.skip(ch.trackers[0].lengthAtBase(w.place()))
		}
		for {
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
