package pebble

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/statebackend"
)

// loader puts the rows of a snapshot into a table that was just opened: into the tree, past the cache.
type loader struct {
	l     *ledger
	read  func(src []byte, v unsafe.Pointer) (int, error)
	old   *statebackend.TTL // nil unless the time to live ends with this restore
	dated bool              // the rows have times
	now   int64
	v, k  unsafe.Pointer // the value and map key at hand
	bulk  *bulk
	last  uint64 // number of an entry of a map

	owner []byte // of the list or map at hand, as in keys: from the key group on
	next  []byte // the same of the row at hand
	buf   []byte // the value at hand
	key   []byte
	block []byte // of the list at hand
	head  listHead
	entry []byte // the entry of a map that comes before the next one
	chain mapHead
}

// newLoader checks that the rows of a snapshot fit a table.
func newLoader(l *ledger, last uint64, old *statebackend.TableInfo, b *bulk) (*loader, error) {
	r, err := old.Reader(&l.s, l.store.Key)
	if err != nil {
		return nil, err
	}
	x := &loader{l: l, read: r.Read, v: l.s.Value.New(), bulk: b, last: last, dated: old.TTL != nil}
	if l.s.MapKey != nil {
		x.k = l.s.MapKey.New()
	}
	if l.store.Now != nil {
		x.now = l.store.Now()
		if l.s.TTL == nil {
			x.old = old.TTL
		}
	}
	return x, nil
}

// all puts all rows into the table.
func (x *loader) all(old *statebackend.FrozenTable) error {
	for row, err := range old.Rows {
		if err != nil {
			return err
		}
		at, ttl := row.At, x.l.s.TTL
		if ttl != nil && !x.dated {
			at = x.now
		}
		if ttl != nil && ttl.Expired(at, x.now) || x.old != nil && x.old.Expired(at, x.now) {
			continue
		}
		if err := x.row(row, at); err != nil {
			return err
		}
	}
	return x.end()
}

// row puts one row into the table.
func (x *loader) row(row *statebackend.Row, at int64) error {
	if row.Deleted {
		return fmt.Errorf("a row that takes away: a whole table has none")
	}
	if err := x.place(row); err != nil {
		return err
	}
	if n, err := x.read(row.Value, x.v); err != nil {
		return err
	} else if n != len(row.Value) {
		return fmt.Errorf("a value of %d bytes has %d too many", len(row.Value), len(row.Value)-n)
	}
	var err error
	if x.buf, err = x.l.s.Value.Append(x.buf[:0], x.v); err != nil {
		return err
	}
	switch x.l.shape.kind {
	case lists:
		return x.element(at)
	case maps:
		return x.mapEntry(row.MapKey, at)
	}
	x.l.n++
	if x.l.shape.dated {
		x.buf = binary.LittleEndian.AppendUint64(x.buf, uint64(at))
	}
	return x.bulk.add(x.in(x.l.shape.spaces[0], x.next), x.buf)
}

// place makes the part of a row's key from the key group on, in next.
func (x *loader) place(row *statebackend.Row) error {
	s := x.l.store
	if w := s.Key.Width; w > 0 && uintptr(len(row.Key)) != w {
		return fmt.Errorf("a key of %d bytes: %s takes %d", len(row.Key), s.Key.Name, w)
	}
	g := keygroup.Of(uint32(s.Key.HashOne(row.Key, s.Seed)), s.MaxParallelism)
	if g < s.FirstGroup || g > s.LastGroup {
		return fmt.Errorf("a key of group %d: the subtask has groups %d to %d of %d", g, s.FirstGroup, s.LastGroup, s.MaxParallelism)
	}
	x.next = appendPart(binary.BigEndian.AppendUint16(x.next[:0], uint16(g)), s.Key, row.Key)
	if ns := x.l.s.Namespace; ns != nil {
		if w := ns.Width; w > 0 && uintptr(len(row.Namespace)) != w {
			return fmt.Errorf("a namespace of %d bytes: %s takes %d", len(row.Namespace), ns.Name, w)
		}
		x.next = appendPart(x.next, ns, row.Namespace)
	}
	return nil
}

// in makes a key of a space.
func (x *loader) in(space uint16, parts ...[]byte) []byte {
	x.key = binary.BigEndian.AppendUint16(x.key[:0], space)
	for _, p := range parts {
		x.key = append(x.key, p...)
	}
	return x.key
}

// enter ends the list or map at hand if the row at hand is another one's.
func (x *loader) enter() error {
	if x.owner != nil && string(x.owner) == string(x.next) {
		return nil
	}
	if err := x.end(); err != nil {
		return err
	}
	x.owner = append(append(x.owner[:0], x.next...), 0)[:len(x.next)] // not nil
	return nil
}

// end writes what is left of the list or map at hand.
func (x *loader) end() (err error) {
	switch {
	case x.head.count > 0:
		err = x.endList()
	case x.chain.count > 0:
		err = x.endMap()
	}
	x.owner = nil
	return err
}

func (x *loader) element(at int64) error {
	if err := x.enter(); err != nil {
		return err
	}
	size := len(x.buf) + lengthBytes
	if x.l.shape.dated {
		size += stampBytes
	}
	if len(x.block) > 0 && len(x.block)+size > blockBytes {
		if err := x.writeBlock(); err != nil {
			return err
		}
		x.head.last++
	}
	if x.l.shape.dated {
		x.block = binary.LittleEndian.AppendUint64(x.block, uint64(at))
	}
	x.block = append(binary.LittleEndian.AppendUint32(x.block, uint32(len(x.buf))), x.buf...)
	x.head.count++
	return nil
}

func (x *loader) writeBlock() error {
	var number [numberBytes]byte
	binary.BigEndian.PutUint64(number[:], x.head.last)
	err := x.bulk.add(x.in(x.l.shape.spaces[1], x.owner, number[:]), x.block)
	x.block = x.block[:0]
	return err
}

func (x *loader) endList() error {
	if err := x.writeBlock(); err != nil {
		return err
	}
	b := make([]byte, listHeadBytes)
	x.head.write(b)
	x.head = listHead{}
	x.l.n++
	return x.bulk.add(x.in(x.l.shape.spaces[0], x.owner), b)
}

func (x *loader) mapEntry(mapKey []byte, at int64) error {
	if err := x.l.s.MapKey.Decode(mapKey, x.k); err != nil {
		return err
	}
	if err := x.enter(); err != nil {
		return err
	}
	x.last++
	var number [numberBytes]byte
	binary.LittleEndian.PutUint64(number[:], x.last)
	if err := x.bulk.add(x.in(x.l.shape.spaces[1], x.owner, mapKey), number[:]); err != nil {
		return err
	}
	if x.chain.count == 0 {
		x.chain.first = x.last
	} else if err := x.writeEntry(x.last); err != nil {
		return err
	}
	t := tail{prev: x.chain.last, at: at, key: uint32(len(mapKey))}
	x.entry = append(append(append(x.entry[:0], x.buf...), mapKey...), make([]byte, tailBytes)...)
	t.write(x.entry)
	x.chain.last = x.last
	x.chain.count++
	x.l.n++
	return nil
}

// writeEntry writes the last entry, which next follows.
func (x *loader) writeEntry(next uint64) error {
	t := readTail(x.entry)
	t.next = next
	t.write(x.entry)
	var number [numberBytes]byte
	binary.BigEndian.PutUint64(number[:], x.chain.last)
	return x.bulk.add(x.in(x.l.shape.spaces[2], x.owner, number[:]), x.entry)
}

func (x *loader) endMap() error {
	if err := x.writeEntry(0); err != nil {
		return err
	}
	b := make([]byte, mapHeadBytes)
	x.chain.write(b)
	x.chain = mapHead{}
	return x.bulk.add(x.in(x.l.shape.spaces[0], x.owner), b)
}
