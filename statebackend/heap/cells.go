package heap

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// cells keeps values of one type in slots, by the type's layout:
//
//	fixed    the Go value itself
//	text     the packed fixed fields; a string is {ref, length}, its bytes in an arena that user strings point into
//	encoded  {ref, length and room}, the codec's bytes in an arena
//
// A slot of zeros is a slot without a value.
type cells struct {
	*serde.Handle
	store *store
	arena *arena // nil for fixed
}

// record is how a slot refers to bytes in an arena.
type record struct {
	ref  ref
	len  uint32
	room uint32 // 0: no record
}

func newCells(l *ledger, h *serde.Handle) cells {
	c := cells{Handle: h, store: l.store}
	if h.Layout != serde.Fixed {
		c.arena = newArena(l, h.Layout == serde.Text)
	}
	return c
}

// slotSize is at least a word, so that the address of a slot lies inside of its page.
func (c *cells) slotSize() uintptr { return max(8, roundUp(c.SlotSize)) }

// load copies the value of a slot to v. Strings point into the arena.
func (c *cells) load(slot, v unsafe.Pointer) error {
	switch c.Layout {
	case serde.Fixed:
		copyBytes(v, slot, c.Size)
	case serde.Text:
		for i := range c.Segments {
			s := &c.Segments[i]
			from, to := unsafe.Add(slot, s.To), unsafe.Add(v, s.From)
			if s.IsString {
				*(*string)(to) = c.text((*record)(from))
			} else {
				copyBytes(to, from, s.Len)
			}
		}
	default:
		_, err := c.Read(c.bytes((*record)(slot)), v)
		return err
	}
	return nil
}

func (c *cells) bytes(r *record) []byte {
	if r.len == 0 {
		return nil
	}
	return bytesAt(c.arena.at(r.ref), uintptr(r.len))
}

func (c *cells) text(r *record) string {
	if r.len == 0 {
		return ""
	}
	return unsafe.String((*byte)(c.arena.at(r.ref)), int(r.len))
}

// save copies the value at v into a slot.
func (c *cells) save(slot, v unsafe.Pointer) error {
	switch c.Layout {
	case serde.Fixed:
		copyBytes(slot, v, c.Size)
	case serde.Text:
		for i := range c.Segments {
			s := &c.Segments[i]
			from, to := unsafe.Add(v, s.From), unsafe.Add(slot, s.To)
			if !s.IsString {
				copyBytes(to, from, s.Len)
			} else if err := c.saveText((*record)(to), *(*string)(from)); err != nil {
				return err
			}
		}
	default:
		return c.saveEncoded((*record)(slot), v)
	}
	return nil
}

// saveText keeps the record if the string is the one that it has: most updates leave strings alone.
func (c *cells) saveText(r *record, s string) error {
	if c.text(r) == s {
		return nil
	}
	var fresh record
	if s != "" {
		if len(s) > maxBytes {
			return errTooLong(c.Handle, len(s))
		}
		to, err := c.arena.make(len(s))
		if err != nil {
			return err
		}
		copy(bytesAt(c.arena.at(to), uintptr(len(s))), s)
		fresh = record{ref: to, len: uint32(len(s)), room: uint32(len(s))}
	}
	c.release(r)
	*r = fresh
	return nil
}

// freeze gives the cells of a snapshot that begins. They load.
func (c *cells) freeze() *cells {
	f := &cells{Handle: c.Handle}
	if c.arena != nil {
		f.arena = c.arena.freeze()
	}
	return f
}

// saveEncoded writes over the old bytes if the new ones fit, don't waste most of the room, and no snapshot needs the old
// ones.
func (c *cells) saveEncoded(r *record, v unsafe.Pointer) error {
	b, err := c.Append(c.store.buf[:0], v)
	c.store.buf = b[:0]
	if err != nil {
		return err
	}
	return c.saveBytes(r, b)
}

// adopt puts the value of a row of a snapshot into a slot.
func (c *cells) adopt(slot unsafe.Pointer, a *arrivals, i int) error {
	if a.encoded {
		return c.saveBytes((*record)(slot), a.encoding(i))
	}
	return c.save(slot, unsafe.Add(a.values, uintptr(i)*a.stride))
}

// saveBytes makes an encoding the one of a record.
func (c *cells) saveBytes(r *record, b []byte) error {
	if len(b) > maxBytes {
		return errTooLong(c.Handle, len(b))
	}
	if len(b) > int(r.room) || len(b) < int(r.room)/4 || len(b) > 0 && c.arena.frozen(r.ref) {
		var fresh record
		if len(b) > 0 {
			to, err := c.arena.make(len(b))
			if err != nil {
				return err
			}
			fresh = record{ref: to, room: uint32(len(b))}
		}
		c.release(r)
		*r = fresh
	}
	r.len = uint32(len(b))
	copy(c.bytes(r), b)
	return nil
}

// maxBytes is the longest string or encoding that can be kept.
const maxBytes = math.MaxUint32 / 2

func errTooLong(h *serde.Handle, n int) error {
	return fmt.Errorf("a value of type %s takes %d bytes: at most %d can be kept", h.Name, n, maxBytes)
}

func (c *cells) release(r *record) {
	if r.room != 0 {
		c.arena.drop(r.ref, int(r.room))
	}
}

// records calls f for every record of a slot.
func (c *cells) records(slot unsafe.Pointer, f func(*record) error) error {
	switch c.Layout {
	case serde.Text:
		for i := range c.Segments {
			if s := &c.Segments[i]; s.IsString {
				if err := f((*record)(unsafe.Add(slot, s.To))); err != nil {
					return err
				}
			}
		}
	case serde.Encoded:
		return f((*record)(slot))
	}
	return nil
}

// free gives back what a slot refers to. The slot is not changed.
func (c *cells) free(slot unsafe.Pointer) {
	if c.arena != nil {
		_ = c.records(slot, func(r *record) error {
			c.release(r)
			return nil
		})
	}
}

// move takes a slot's records out of the chunks that a compaction empties.
func (c *cells) move(slot unsafe.Pointer) error {
	return c.records(slot, func(r *record) (err error) {
		if r.room != 0 {
			r.ref, err = c.arena.move(r.ref, int(r.room))
		}
		return err
	})
}
