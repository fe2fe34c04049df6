package heap

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// listTable is a table with a list per key. The slot of a key is a listHead; elements lie in a chain of blocks, each
// wholly in one: {time with a TTL}{length but for fixed layout}{the Go value or the codec's bytes}.
//
// Blocks are only appended to: what a head tells of its list stays true of the blocks while a snapshot is open, whatever
// is appended or taken away. That is why the head, not the last block, knows where the list ends.
type listTable struct {
	ledger
	listShape
	s     statebackend.TableSpec
	ix    *rowIndex
	care  caretaker
	base  base
	n     int
	moves uint64 // counts changes, for Each
	total int    // elements, expired ones included
	grown int    // elements appended since the base
	other []byte // a namespace to come back to
}

// listShape says how lists lie in blocks.
type listShape struct {
	handle *serde.Handle
	dated  bool // elements bear a time
	blocks *arena
}

// listHead is the value of a key. Zero means an empty list.
type listHead struct {
	first, last ref    // blocks
	count       uint32 // elements, expired ones included; 0: there are no blocks
	used        uint32 // bytes of the last block
}

// listBlock is the head of a block; its bytes follow.
type listBlock struct {
	next ref    // written with used, when a block comes after it
	used uint32 // bytes
	room uint32
}

const (
	headBytes  = unsafe.Sizeof(listHead{})
	blockHead  = unsafe.Sizeof(listBlock{})
	firstBlock = 64
	maxBlock   = ownChunk
)

func newListTable(st *store, spec *statebackend.TableSpec) (*listTable, error) {
	t := &listTable{s: *spec}
	t.ledger = ledger{store: st, state: spec.Name}
	t.listShape = listShape{handle: spec.Value, dated: spec.TTL != nil, blocks: newArena(&t.ledger, false)}
	var err error
	t.ix, err = newRowIndex(&t.ledger, rowShape{slot: headBytes, key: st.Key, src: &st.run, suffix: spec.Namespace})
	return t, err
}

func (t *listTable) spec() *statebackend.TableSpec { return &t.s }
func (t *listTable) begin(n int)                   { t.n = n }

func (t *listTable) close() {
	t.ix.close()
	t.blocks.close()
	t.base.end(t.pages())
}

func (t *listTable) pages() []tracked { return []tracked{t.ix.tracked()} }

// Spec implements statebackend.ListTable.
func (t *listTable) Spec() *statebackend.TableSpec { return &t.s }

// SetNamespace implements statebackend.ListTable.
func (t *listTable) SetNamespace(canonical []byte) { t.ix.setSuffix(canonical) }

// Len implements statebackend.ListTable.
func (t *listTable) Len() int { return t.ix.length() }

// MemoryBytes implements statebackend.ListTable.
func (t *listTable) MemoryBytes() int64 { return t.held }

// head gives the list of key i for reading, or nil.
func (t *listTable) head(i int) *listHead { return (*listHead)(t.ix.find(i)) }

// own gives the list of key i, which head gave, for writing.
func (t *listTable) own(i int, head *listHead) (*listHead, error) {
	slot, err := t.ix.own(i, unsafe.Pointer(head))
	return (*listHead)(slot), err
}

func (l *listShape) block(r ref) *listBlock { return (*listBlock)(l.blocks.at(r)) }

// Append implements statebackend.ListTable.
func (t *listTable) Append(i int, v unsafe.Pointer) error { return t.append(i, v, t.now()) }

// adopt implements keeper.
func (t *listTable) adopt(a *arrivals) error {
	if !a.encoded {
		return t.append(0, a.values, a.at[0])
	}
	b := append(append(t.stampInto(t.store.buf[:0], a.at[0]), 0, 0, 0, 0), a.encoding(0)...)
	t.store.buf = b[:0]
	return t.add(0, b)
}

// expect implements keeper. Rows are elements: nobody knows of how many lists.
func (t *listTable) expect(int64) {}

func (t *listTable) append(i int, v unsafe.Pointer, at int64) error {
	b, err := t.encode(v, at)
	if err != nil {
		return fmt.Errorf("write state %q: %w", t.state, err)
	}
	return t.add(i, b)
}

// add appends the bytes of an element, in which the length of an encoding is still missing, to the list of key i.
func (t *listTable) add(i int, b []byte) error {
	if t.handle.Layout != serde.Fixed {
		head := lengthBytes
		if t.dated {
			head += stampBytes
		}
		n := len(b) - head
		if n > maxBytes {
			return fmt.Errorf("write state %q: %w", t.state, errTooLong(t.handle, n))
		}
		binary.LittleEndian.PutUint32(b[head-lengthBytes:], uint32(n))
	}
	head, fresh, err := t.insert(i)
	if err != nil {
		return err
	}
	if err := t.push(head, b); err != nil {
		if fresh {
			t.ix.remove(i, unsafe.Pointer(head))
		}
		return err
	}
	return nil
}

// insert finds or inserts the list of key i, for appending.
func (t *listTable) insert(i int) (head *listHead, fresh bool, err error) {
	row, id, fresh, err := t.ix.insert(i, t.ix.hashOf(i))
	if err != nil {
		return nil, false, err
	}
	head = (*listHead)(unsafe.Add(row, t.ix.slotOff))
	if track := t.ix.rows.track; track != nil {
		page, pos := t.ix.rows.place(id)
		track.noteLength(page, pos, head.count)
	}
	return head, fresh, nil
}

// rewritten notes that elements of the list of key i have changed: for a snapshot of changes it is another list.
func (t *listTable) rewritten(i int) {
	track := t.ix.rows.track
	if track == nil {
		return
	}
	row, id := t.ix.locate(i, t.ix.hashOf(i))
	page, pos := t.ix.rows.place(id)
	if !track.wasMade(page, pos) {
		t.ix.noteGone(id)
		track.make(page, pos)
		t.grown += int((*listHead)(unsafe.Add(row, t.ix.slotOff)).count)
	}
	if p := track.length(page, pos); p != nil {
		*p = 1
	}
}

// stampInto begins the bytes of an element written at time at.
func (t *listTable) stampInto(b []byte, at int64) []byte {
	if t.dated {
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
	}
	return b
}

// encode makes the bytes of an element written at time at in the store's scratch; add knows the length.
func (t *listTable) encode(v unsafe.Pointer, at int64) (b []byte, err error) {
	b = t.stampInto(t.store.buf[:0], at)
	if t.handle.Layout != serde.Fixed {
		b, err = t.handle.Append(append(b, 0, 0, 0, 0), v)
	} else if b = append(b, bytesAt(v, t.handle.Size)...); len(b) == 0 {
		b = append(b, 0) // each element takes room, or nothing would show how many there are
	}
	t.store.buf = b[:0]
	return b, err
}

// push appends the bytes of an element to a list.
func (t *listTable) push(head *listHead, b []byte) error {
	t.moves++
	if head.count == 0 || len(b) > int(t.block(head.last).room-head.used) {
		if err := t.addBlock(head, len(b)); err != nil {
			return err
		}
	}
	last := unsafe.Pointer(t.block(head.last))
	copy(bytesAt(unsafe.Add(last, blockHead+uintptr(head.used)), uintptr(len(b))), b)
	head.used += uint32(len(b))
	head.count++
	t.total++
	t.grown++
	return nil
}

// addBlock appends a block with room for n bytes, twice the last one's size.
func (t *listTable) addBlock(head *listHead, n int) error {
	size := firstBlock
	if head.count > 0 {
		size = min(2*(int(t.block(head.last).room)+int(blockHead)), maxBlock)
	}
	size = max(size, n+int(blockHead))
	r, err := t.blocks.make(size)
	if err != nil {
		return err
	}
	*t.block(r) = listBlock{room: uint32(size) - uint32(blockHead)}
	if head.count == 0 {
		head.first = r
	} else {
		t.chain(head, r)
	}
	head.last, head.used = r, 0
	return nil
}

// chain puts a block after the last one.
func (t *listTable) chain(head *listHead, r ref) {
	last := t.block(head.last)
	last.next, last.used = r, head.used
}

// cursor goes through the elements of a list.
type cursor struct {
	*listShape
	at, last ref
	lastUsed uint32
	off      uint32
	done     bool
}

func (l *listShape) cursor(head *listHead) cursor {
	return cursor{listShape: l, at: head.first, last: head.last, lastUsed: head.used, done: head.count == 0}
}

// next gives the address of the next element's time (or bytes without a TTL) and its payload; nil at the end.
func (c *cursor) next() (p unsafe.Pointer, payload []byte) {
	for !c.done {
		b, used := c.block(c.at), c.lastUsed
		if c.at != c.last {
			used = b.used
		}
		if c.off < used {
			p = unsafe.Add(unsafe.Pointer(b), blockHead+uintptr(c.off))
			var n uintptr
			payload, n = c.payload(p)
			c.off += uint32(n)
			return p, payload
		}
		if c.done = c.at == c.last; !c.done {
			c.at, c.off = b.next, 0
		}
	}
	return nil, nil
}

// skip leaves out elements.
func (c *cursor) skip(n uint32) {
	for ; n > 0; n-- {
		c.next()
	}
}

// payload gives the value bytes of an element and how many bytes the element takes.
func (l *listShape) payload(p unsafe.Pointer) (b []byte, n uintptr) {
	if l.dated {
		n = stampBytes
	}
	size := l.handle.Size
	if l.handle.Layout != serde.Fixed {
		size = uintptr(*(*uint32)(unsafe.Add(p, n)))
		n += lengthBytes
	}
	if size > 0 { // else the address may be the block's end
		b = bytesAt(unsafe.Add(p, n), size)
	}
	return b, max(n+size, 1)
}

func (t *listTable) load(payload []byte, v unsafe.Pointer) error {
	if t.handle.Layout == serde.Fixed {
		copy(bytesAt(v, t.handle.Size), payload)
		return nil
	}
	if _, err := t.handle.Read(payload, v); err != nil {
		return fmt.Errorf("read state %q: %w", t.state, err)
	}
	return nil
}

func (t *listTable) expired(p unsafe.Pointer, now int64) bool {
	return t.s.TTL != nil && t.s.TTL.Expired(*(*int64)(p), now)
}

func (t *listTable) now() int64 {
	if t.s.TTL == nil {
		return 0
	}
	return t.store.Now()
}

// Each implements statebackend.ListTable.
func (t *listTable) Each(i int, v unsafe.Pointer, f func() bool) error {
	head := t.head(i)
	if head == nil {
		return nil
	}
	ttl := t.s.TTL
	if ttl != nil && ttl.OnRead {
		var err error
		if head, err = t.own(i, head); err == nil {
			err = t.renew(head)
		}
		if err != nil {
			return err
		}
		t.rewritten(i)
	}
	now, moves, alive := t.now(), t.moves, false
	for c := t.cursor(head); ; {
		p, payload := c.next()
		if p == nil {
			break
		}
		if t.expired(p, now) {
			if !ttl.ReturnExpired {
				continue
			}
		} else {
			alive = true
			if ttl != nil && ttl.OnRead {
				*(*int64)(p) = now
			}
		}
		if err := t.load(payload, v); err != nil {
			return err
		}
		more := f()
		if t.moves != moves {
			return fmt.Errorf("state %q: %w", t.state, statebackend.ErrChanged)
		}
		if !more {
			return nil
		}
	}
	if !alive {
		return t.Delete(i)
	}
	return nil
}

// Count implements statebackend.ListTable.
func (t *listTable) Count(i int) int {
	head := t.head(i)
	if head == nil {
		return 0
	}
	if t.s.TTL == nil {
		return int(head.count)
	}
	return t.alive(head, t.now())
}

// alive counts elements that have not expired.
func (t *listTable) alive(head *listHead, now int64) int {
	n := 0
	for c := t.cursor(head); ; {
		p, _ := c.next()
		if p == nil {
			return n
		}
		n += one(!t.expired(p, now))
	}
}

// Has implements statebackend.ListTable.
func (t *listTable) Has(i int) bool { return t.Count(i) > 0 }

// Delete implements statebackend.ListTable.
func (t *listTable) Delete(i int) error {
	head := t.head(i)
	if head == nil {
		return nil
	}
	head, err := t.own(i, head)
	if err != nil {
		return err
	}
	t.free(head)
	t.ix.remove(i, unsafe.Pointer(head))
	return nil
}

// free drops the blocks of a list.
func (t *listTable) free(head *listHead) {
	t.moves++
	t.total -= int(head.count)
	for r := head.first; head.count > 0; {
		b := t.block(r)
		at, next := r, b.next
		t.blocks.drop(at, int(b.room)+int(blockHead))
		if at == head.last {
			break
		}
		r = next
	}
	*head = listHead{}
}

// MoveTo implements statebackend.ListTable.
func (t *listTable) MoveTo(i int, canonical []byte) error {
	head := t.head(i)
	if head == nil {
		return nil
	}
	head, err := t.own(i, head)
	if err != nil {
		return err
	}
	moved := *head
	t.moves++
	t.other = append(t.other[:0], t.ix.bareSuffix()...)
	t.ix.setSuffix(canonical)
	defer t.ix.setSuffix(t.other)
	to, _, err := t.insert(i)
	if err != nil || string(canonical) == string(t.other) {
		return err
	}
	t.grown += int(moved.count)
	if to.count == 0 {
		*to = moved
	} else {
		t.chain(to, moved.first)
		to.last, to.used = moved.last, moved.used
		to.count += moved.count
	}
	t.ix.setSuffix(t.other)
	head = t.head(i) // its page may be another one
	*head = listHead{}
	t.ix.remove(i, unsafe.Pointer(head))
	return nil
}

// Range implements statebackend.ListTable.
func (t *listTable) Range(f func(e *statebackend.Entry) bool) error {
	var payload []byte
	e := &statebackend.Entry{Load: func(dst unsafe.Pointer) error { return t.load(payload, dst) }}
	now := t.now()
	show := func(x *entry) bool {
		e.Key, e.Namespace = x.key, x.suffix
		e.Hash = t.store.Key.HashOne(x.key, t.store.Seed)
		for c := t.cursor((*listHead)(x.slot)); ; {
			var p unsafe.Pointer
			if p, payload = c.next(); p == nil {
				return true
			}
			if t.expired(p, now) {
				continue
			}
			if t.s.TTL != nil {
				e.At = *(*int64)(p)
			}
			if !f(e) {
				return false
			}
		}
	}
	for part := range t.ix.parts() {
		if !t.ix.scan(part, show) {
			break
		}
	}
	return nil
}
