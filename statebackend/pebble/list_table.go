package pebble

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// listTable is a table with a list per key. A row of heads says where the list lies: in rows of blocks, which are numbered
// without gaps. An element in a block is {with a TTL: time of its write}{length}{value}.
type listTable struct {
	ledger
	moves    uint64 // counts changes, for Each
	elem     []byte // an element on its way
	blockKey []byte
}

// listHead is the value of a row of heads.
type listHead struct {
	first, last uint64 // blocks
	count       uint64 // elements, expired ones included; 0: there is no list
}

const (
	listHeadBytes = 24
	lengthBytes   = 4
	// blockBytes is the size from which a block takes no more elements.
	blockBytes = 1 << 10
)

func newListTable(l ledger) *listTable {
	return &listTable{ledger: l}
}

// list names the list of a key while a method works on it.
type list struct {
	owner []byte // the key of its head; a block's differs in the space and has the number behind
	listHead
}

// find gives the list of key i.
func (t *listTable) find(i int, x *list) error {
	x.owner = append(x.owner[:0], t.compose(t.shape.spaces[0], i)...)
	return t.readHead(x)
}

func (t *listTable) readHead(x *list) error {
	r, err := t.store.cache.get(&t.ledger, x.owner, 0)
	if err != nil {
		return err
	}
	x.listHead = listHead{}
	if r.is(live) {
		b := r.value()
		x.first, x.last = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		x.count = binary.LittleEndian.Uint64(b[16:])
	}
	return nil
}

// writeHead keeps the head of a list, or drops it if the list is empty.
func (t *listTable) writeHead(x *list) error {
	r, err := t.store.cache.get(&t.ledger, x.owner, 0)
	if err != nil {
		return err
	}
	t.moves++
	if x.count == 0 {
		if r.is(live) {
			t.store.cache.drop(r)
			t.n--
		}
		return nil
	}
	if !r.is(live) {
		t.n++
	}
	if r, err = t.store.cache.put(r, listHeadBytes); err != nil {
		return err
	}
	b := r.value()
	x.write(b)
	return nil
}

func (h *listHead) write(b []byte) {
	binary.LittleEndian.PutUint64(b, h.first)
	binary.LittleEndian.PutUint64(b[8:], h.last)
	binary.LittleEndian.PutUint64(b[16:], h.count)
}

// block gives a block of a list.
func (t *listTable) block(x *list, number uint64) (*row, error) {
	b := binary.BigEndian.AppendUint16(t.blockKey[:0], t.shape.spaces[1])
	b = append(b, x.owner[spaceBytes:]...)
	b = binary.BigEndian.AppendUint64(b, number)
	t.blockKey = b
	return t.store.cache.get(&t.ledger, b, 0)
}

// Append implements statebackend.ListTable.
func (t *listTable) Append(i int, v unsafe.Pointer) error { return t.append(i, v, t.now()) }

func (t *listTable) append(i int, v unsafe.Pointer, at int64) error {
	value, err := t.encode(v)
	if err != nil {
		return err
	}
	b := t.elem[:0]
	if t.s.TTL != nil {
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(value)))
	b = append(b, value...)
	t.elem = b
	if err := t.enter(len(b) + 2*blockBytes); err != nil {
		return err
	}
	x := list{owner: t.compose(t.shape.spaces[0], i)}
	if err := t.readHead(&x); err != nil {
		return err
	}
	if x.count == 0 {
		x.first, x.last = 0, 0
	}
	r, err := t.block(&x, x.last)
	if err == nil && r.vlen > 0 && int(r.vlen)+len(b) > blockBytes {
		if err = t.forget(&x); err == nil {
			x.last++
			r, err = t.block(&x, x.last)
		}
	}
	if err != nil {
		return err
	}
	if err := t.extend(r, b); err != nil {
		return err
	}
	x.count++
	return t.writeHead(&x)
}

// extend appends elements to a block, with room for more.
func (t *listTable) extend(r *row, b []byte) (err error) {
	was := int(r.vlen)
	if int(r.vcap) < was+len(b) {
		if r, err = t.store.cache.put(r, max(was+len(b), min(2*was, blockBytes))); err != nil {
			return err
		}
	}
	if r, err = t.store.cache.put(r, was+len(b)); err != nil {
		return err
	}
	copy(r.value()[was:], b)
	return nil
}

// forget drops the first blocks of a list with a time to live, as long as all their elements have expired.
func (t *listTable) forget(x *list) error {
	if t.s.TTL == nil {
		return nil
	}
	now := t.now()
	for x.first < x.last {
		r, err := t.block(x, x.first)
		if err != nil {
			return err
		}
		n := 0
		for c := t.cursor(r.value()); c.next(); n++ {
			if !t.expired(c.at, now) {
				return nil
			}
		}
		t.store.cache.drop(r)
		x.first++
		x.count -= uint64(n)
	}
	return nil
}

// cursor goes through the elements of a block.
type cursor struct {
	rest  []byte
	dated bool
	start []byte // of the element
	at    int64
	value []byte
}

func (l *ledger) cursor(block []byte) cursor { return cursor{rest: block, dated: l.shape.dated} }

func (c *cursor) next() bool {
	if len(c.rest) == 0 {
		return false
	}
	c.start = c.rest
	head := lengthBytes
	if c.dated {
		head += stampBytes
	}
	if len(c.rest) < head {
		return false // it is damaged: see docs/formats/pebble-files.md
	}
	if c.dated {
		c.at = int64(binary.LittleEndian.Uint64(c.rest))
		c.rest = c.rest[stampBytes:]
	}
	n := binary.LittleEndian.Uint32(c.rest)
	c.rest = c.rest[lengthBytes:]
	if uint64(n) > uint64(len(c.rest)) {
		return false
	}
	c.value, c.rest = c.rest[:n:n], c.rest[n:]
	return true
}

// Each implements statebackend.ListTable.
func (t *listTable) Each(i int, v unsafe.Pointer, f func() bool) error {
	if err := t.enter(0); err != nil {
		return err
	}
	var x list
	if err := t.find(i, &x); err != nil || x.count == 0 {
		return err
	}
	now, moves, alive := t.now(), t.moves, false
	for number := x.first; number <= x.last; number++ {
		if err := t.store.cache.trim(0); err != nil {
			return err
		}
		block, err := t.read(&x, number, now)
		if err != nil {
			return err
		}
		for c := t.cursor(block); c.next(); {
			if !t.expired(c.at, now) {
				alive = true
			} else if !t.s.TTL.ReturnExpired {
				continue
			}
			if err := t.decode(c.value, v); err != nil {
				return err
			}
			more := f()
			if t.moves != moves {
				return fmt.Errorf("state %q: %w", t.s.Name, statebackend.ErrChanged)
			}
			if !more {
				return nil
			}
		}
	}
	if !alive {
		return t.remove(&x)
	}
	return nil
}

// read gives the elements of a block to be read at a time, whose times it renews if reads do.
func (t *listTable) read(x *list, number uint64, now int64) ([]byte, error) {
	r, err := t.block(x, number)
	if err != nil || t.s.TTL == nil || !t.s.TTL.OnRead {
		if err != nil {
			return nil, err
		}
		return r.value(), nil
	}
	before := bytes.Clone(r.value()) // f may let the row be evicted, and what it sees is as of now
	t.store.cache.touch(r)
	for c := t.cursor(r.value()); c.next(); {
		if !t.expired(c.at, now) {
			binary.LittleEndian.PutUint64(c.start, uint64(now))
		}
	}
	return before, nil
}

// Count implements statebackend.ListTable.
func (t *listTable) Count(i int) int {
	n, err := t.count(i)
	t.store.fail(err)
	return n
}

func (t *listTable) count(i int) (n int, err error) {
	if err := t.enter(0); err != nil {
		return 0, err
	}
	var x list
	if err := t.find(i, &x); err != nil || x.count == 0 || t.s.TTL == nil {
		return int(x.count), err
	}
	now := t.now()
	for number := x.first; number <= x.last; number++ {
		if err := t.store.cache.trim(0); err != nil {
			return 0, err
		}
		r, err := t.block(&x, number)
		if err != nil {
			return 0, err
		}
		for c := t.cursor(r.value()); c.next(); {
			if !t.expired(c.at, now) {
				n++
			}
		}
	}
	return n, nil
}

// Has implements statebackend.ListTable.
func (t *listTable) Has(i int) bool { return t.Count(i) > 0 }

// Delete implements statebackend.ListTable.
func (t *listTable) Delete(i int) error {
	if err := t.enter(0); err != nil {
		return err
	}
	var x list
	if err := t.find(i, &x); err != nil || x.count == 0 {
		return err
	}
	return t.remove(&x)
}

// remove drops a list.
func (t *listTable) remove(x *list) error {
	for number := x.first; number <= x.last; number++ {
		if err := t.store.cache.trim(0); err != nil {
			return err
		}
		r, err := t.block(x, number)
		if err != nil {
			return err
		}
		t.store.cache.drop(r)
	}
	x.count = 0
	return t.writeHead(x)
}

// MoveTo implements statebackend.ListTable.
func (t *listTable) MoveTo(i int, canonical []byte) error {
	if err := t.enter(0); err != nil {
		return err
	}
	var from, to list
	if err := t.find(i, &from); err != nil || from.count == 0 {
		return err
	}
	ns := t.ns
	t.ns = appendPart(nil, t.s.Namespace, canonical)
	err := t.find(i, &to)
	t.ns = ns
	if err != nil || bytes.Equal(from.owner, to.owner) {
		return err
	}
	next := uint64(0)
	if to.count > 0 {
		next = to.last + 1
	} else {
		to.first = 0
	}
	for number := from.first; number <= from.last; number++ {
		if err := t.moveBlock(&from, number, &to, next); err != nil {
			return err
		}
		to.last = next
		next++
	}
	to.count += from.count
	from.count = 0
	if err := t.writeHead(&from); err != nil {
		return err
	}
	return t.writeHead(&to)
}

// moveBlock makes a block of one list a block of another.
func (t *listTable) moveBlock(from *list, number uint64, to *list, as uint64) error {
	r, err := t.block(from, number)
	if err != nil {
		return err
	}
	if err := t.store.cache.trim(int(r.vlen)); err != nil {
		return err
	}
	if r, err = t.block(from, number); err != nil { // it may have been evicted
		return err
	}
	target, err := t.block(to, as)
	if err != nil {
		return err
	}
	if target, err = t.store.cache.put(target, int(r.vlen)); err != nil {
		return err
	}
	copy(target.value(), r.value())
	t.store.cache.drop(r)
	return nil
}

// Range implements statebackend.ListTable.
func (t *listTable) Range(f func(e *statebackend.Entry) bool) error {
	return t.each(t.shape.spaces[1], func(_, value []byte, e *entry) bool {
		for c := t.cursor(value); c.next(); {
			if t.expired(c.at, e.now) {
				continue
			}
			e.At, e.bytes = c.at, c.value
			if !f(&e.Entry) {
				return false
			}
		}
		return true
	})
}
