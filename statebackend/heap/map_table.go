package heap

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// mapTable is a table with a map per key. Each map is a row of owners with a mapHead as its value; its entries are rows of
// entries, keyed by (map key, number of the owner's row), chained in order of insertion.
type mapTable struct {
	ledger
	s       statebackend.TableSpec
	owners  *rowIndex
	entries *rowIndex
	cells   cells
	stamp   uintptr
	care    caretaker
	base    base
	texts   int // the part of owners whose text keys are compacted next
	n       int

	key     source // the one map key of a call
	scratch serde.KeyScratch
	hash    [1]uint64
	doomed  []uint32 // owners of large maps that were deleted: their rows go step by step
	dead    int      // rows of the doomed
	walks   []walk   // iterations under way, inner ones last
	clears  bool     // a whole map is being removed, which is noted already
}

// mapHead is the value of an owner. Rows are counted from one, 0 is none.
type mapHead struct {
	first, last uint32
	count       uint32
	_           uint32
}

// walk is where an iteration stands: at row, or before it if the row that it showed is gone.
type walk struct {
	owner  uint32
	row    uint32 // 0: at the end
	before bool
}

// mapLinks is the head of an entry's row.
type mapLinks struct{ prev, next uint32 }

func newMapTable(st *store, spec *statebackend.TableSpec) (*mapTable, error) {
	t := &mapTable{s: *spec}
	t.ledger = ledger{store: st, state: spec.Name}
	t.cells = newCells(&t.ledger, spec.Value)
	if spec.TTL != nil {
		t.stamp = stampBytes
	}
	var err error
	t.owners, err = newRowIndex(&t.ledger, rowShape{
		slot: unsafe.Sizeof(mapHead{}), key: st.Key, src: &st.run, suffix: spec.Namespace,
	})
	if err != nil {
		return nil, err
	}
	t.entries, err = newRowIndex(&t.ledger, rowShape{
		head: unsafe.Sizeof(mapLinks{}), slot: t.stamp + t.cells.slotSize(), key: spec.MapKey, src: &t.key, owner: true,
	})
	return t, err
}

func (t *mapTable) spec() *statebackend.TableSpec { return &t.s }
func (t *mapTable) begin(n int)                   { t.n = n }

func (t *mapTable) close() {
	t.owners.close()
	t.entries.close()
	if t.cells.arena != nil {
		t.cells.arena.close()
	}
	t.base.end(t.pages())
}

// pages are those of the owners and those of the entries.
func (t *mapTable) pages() []tracked { return []tracked{t.owners.tracked(), t.entries.tracked()} }

// Spec implements statebackend.MapTable.
func (t *mapTable) Spec() *statebackend.TableSpec { return &t.s }

// SetNamespace implements statebackend.MapTable.
func (t *mapTable) SetNamespace(canonical []byte) { t.owners.setSuffix(canonical) }

// Len implements statebackend.MapTable.
func (t *mapTable) Len() int { return t.entries.length() - t.dead }

// MemoryBytes implements statebackend.MapTable.
func (t *mapTable) MemoryBytes() int64 { return t.held }

// owner gives the map of key i, or nil.
func (t *mapTable) owner(i int) (*mapHead, uint32) {
	row, id := t.owners.locate(i, t.owners.hashOf(i))
	if row == nil {
		return nil, 0
	}
	return t.headOf(id), id
}

func (t *mapTable) headOf(id uint32) *mapHead {
	return (*mapHead)(unsafe.Add(t.owners.rows.at(id), t.owners.slotOff))
}

// ask makes k the key that calls to entries mean, in the map of owner id.
func (t *mapTable) ask(k unsafe.Pointer, id uint32) error {
	c, err := t.s.MapKey.Canon(serde.Column{P: k, N: 1, Stride: t.s.MapKey.Size}, &t.scratch)
	if err != nil {
		return fmt.Errorf("state %q: map key: %w", t.state, err)
	}
	t.key.canon = c
	t.key.hashes = t.hash[:]
	t.s.MapKey.Hash(&t.key.canon, t.store.Seed, t.hash[:])
	t.entries.setOwner(id)
	return nil
}

// entry gives the row of map key k of key i, or nil.
func (t *mapTable) entry(i int, k unsafe.Pointer) (row unsafe.Pointer, id, owner uint32, err error) {
	head, owner := t.owner(i)
	if head == nil {
		return nil, 0, 0, nil
	}
	if err := t.ask(k, owner); err != nil {
		return nil, 0, 0, err
	}
	row, id = t.entries.locate(0, t.entries.hashOf(0))
	return row, id, owner, nil
}

// insert finds or inserts the row of map key k of key i.
func (t *mapTable) insert(i int, k unsafe.Pointer) (row unsafe.Pointer, fresh bool, err error) {
	_, owner, made, err := t.owners.insert(i, t.owners.hashOf(i))
	if err != nil {
		return nil, false, err
	}
	var id uint32
	if err = t.ask(k, owner); err == nil && t.entries.guarded() {
		err = t.touchLast(owner)
	}
	if err == nil {
		row, id, fresh, err = t.entries.insert(0, t.entries.hashOf(0))
	}
	if err != nil {
		if made {
			t.owners.removeRow(t.owners.hashOf(i), owner)
		}
		return nil, false, err
	}
	if fresh {
		t.link(owner, row, id)
	}
	return row, fresh, nil
}

// touchLast touches the last row of the map that was asked for, if the key that was asked for is to come after it.
func (t *mapTable) touchLast(owner uint32) error {
	last := t.headOf(owner).last
	if last == 0 {
		return nil
	}
	if row, _ := t.entries.locate(0, t.entries.hashOf(0)); row != nil {
		return nil
	}
	return t.entries.rows.touch(last - 1)
}

func (t *mapTable) links(row uint32) *mapLinks { return (*mapLinks)(t.entries.rows.at(row - 1)) }

// link appends a row to a map.
func (t *mapTable) link(owner uint32, row unsafe.Pointer, id uint32) {
	head := t.headOf(owner)
	(*mapLinks)(row).prev = head.last
	if head.last == 0 {
		head.first = id + 1
	} else {
		t.links(head.last).next = id + 1
	}
	head.last = id + 1
	head.count++
	for i := range t.walks {
		if w := &t.walks[i]; w.owner == owner && w.row == 0 {
			w.row = id + 1
		}
	}
}

// value is the address of a row's value.
func (t *mapTable) value(row unsafe.Pointer) unsafe.Pointer {
	return unsafe.Add(row, t.entries.slotOff+t.stamp)
}

// at is the time of a row's last write, with a TTL.
func (t *mapTable) at(row unsafe.Pointer) *int64 { return (*int64)(unsafe.Add(row, t.entries.slotOff)) }

func (t *mapTable) expired(row unsafe.Pointer) bool {
	return t.stamp != 0 && t.s.TTL.Expired(*t.at(row), t.store.Now())
}

// now is the time that stamps bear, with a TTL.
func (t *mapTable) now() int64 {
	if t.stamp == 0 {
		return 0
	}
	return t.store.Now()
}

// write stamps a row with a time.
func (t *mapTable) write(row unsafe.Pointer, at int64) {
	if t.stamp != 0 {
		*t.at(row) = at
	}
}

const (
	// doomFrom is the size from which a deleted map is buried step by step.
	doomFrom = 4096
	// buryStep is the number of rows that a step drops: more than a run of the keys that pace it can add.
	buryStep = 2048
)

// noOwner is no row's number.
const noOwner = 1<<32 - 1

// Slot implements statebackend.MapTable.
func (t *mapTable) Slot(i int, k unsafe.Pointer) (slot unsafe.Pointer, fresh bool, err error) {
	if t.cells.Layout != serde.Fixed {
		return nil, false, fmt.Errorf("state %q: slot of type %s: layout %v has none", t.state, t.cells.Name, t.cells.Layout)
	}
	row, fresh, err := t.insert(i, k)
	if err != nil {
		return nil, false, err
	}
	slot = t.value(row)
	if !fresh && t.expired(row) && !t.s.TTL.ReturnExpired {
		clearBytes(slot, t.cells.slotSize())
		fresh = true
	}
	t.write(row, t.now())
	return slot, fresh, nil
}

// Load implements statebackend.MapTable.
func (t *mapTable) Load(i int, k, v unsafe.Pointer) (bool, error) {
	row, id, owner, err := t.entry(i, k)
	if row == nil || err != nil {
		return false, err
	}
	gone := t.expired(row)
	if gone && !t.s.TTL.ReturnExpired {
		return false, t.drop(id, owner)
	}
	if err = t.load(row, v); err == nil {
		err = t.wasRead(id, owner, gone)
	}
	return err == nil, err
}

// wasRead renews the time of a row that was read, or removes it if it has expired.
func (t *mapTable) wasRead(id, owner uint32, gone bool) error {
	if gone {
		return t.drop(id, owner)
	}
	if t.stamp == 0 || !t.s.TTL.OnRead {
		return nil
	}
	err := t.entries.rows.touch(id)
	if err == nil {
		t.entries.rows.mark(id)
		t.owners.rows.mark(owner)
		t.write(t.entries.rows.at(id), t.now())
	}
	return err
}

func (t *mapTable) load(row, v unsafe.Pointer) error {
	if err := t.cells.load(t.value(row), v); err != nil {
		return fmt.Errorf("read state %q: %w", t.state, err)
	}
	return nil
}

// Save implements statebackend.MapTable.
func (t *mapTable) Save(i int, k, v unsafe.Pointer) error {
	row, fresh, err := t.insert(i, k)
	if err != nil {
		return err
	}
	t.write(row, t.now())
	if err := t.cells.save(t.value(row), v); err != nil {
		if fresh {
			_, id, owner, _ := t.entry(i, k)
			err = errors.Join(err, t.drop(id, owner))
		}
		return fmt.Errorf("write state %q: %w", t.state, err)
	}
	return nil
}

// adopt implements keeper.
func (t *mapTable) adopt(a *arrivals) error {
	row, _, err := t.insert(0, a.mapKey)
	if err != nil {
		return err
	}
	t.write(row, a.at[0])
	return t.cells.adopt(t.value(row), a, 0)
}

// expect implements keeper.
func (t *mapTable) expect(n int64) { t.entries.expect(n) }

// Has implements statebackend.MapTable.
func (t *mapTable) Has(i int, k unsafe.Pointer) (bool, error) {
	row, _, _, err := t.entry(i, k)
	return row != nil && err == nil && !t.expired(row), err
}

// Remove implements statebackend.MapTable.
func (t *mapTable) Remove(i int, k unsafe.Pointer) (bool, error) {
	row, id, owner, err := t.entry(i, k)
	if row == nil || err != nil {
		return false, err
	}
	alive := !t.expired(row)
	if err := t.drop(id, owner); err != nil {
		return false, err
	}
	return alive, nil
}

// Count implements statebackend.MapTable.
func (t *mapTable) Count(i int) int {
	head, _ := t.owner(i)
	if head == nil {
		return 0
	}
	return int(head.count)
}

// Delete implements statebackend.MapTable.
func (t *mapTable) Delete(i int) error {
	head, owner := t.owner(i)
	if head == nil {
		return nil
	}
	if head.count >= doomFrom {
		return t.doom(i, owner)
	}
	t.noteCleared(owner)
	t.clears = true
	defer func() { t.clears = false }()
	for n := head.count; n > 0; n-- {
		if err := t.drop(t.headOf(owner).first-1, owner); err != nil {
			return err
		}
	}
	return nil
}

// Each implements statebackend.MapTable.
func (t *mapTable) Each(i int, k, v unsafe.Pointer, f func() bool) error {
	head, owner := t.owner(i)
	if head == nil {
		return nil
	}
	depth := len(t.walks)
	t.walks = append(t.walks, walk{owner: owner, row: head.first, before: true})
	defer func() { t.walks = t.walks[:depth] }()
	for {
		w := &t.walks[depth]
		if !w.before {
			w.row = t.links(w.row).next
		}
		if w.row == 0 {
			return nil
		}
		w.before = false
		show, err := t.show(w.row-1, owner, k, v)
		if err != nil {
			return err
		}
		if show && !f() {
			return nil
		}
	}
}

// show copies an entry out; false if it has expired.
func (t *mapTable) show(id, owner uint32, k, v unsafe.Pointer) (bool, error) {
	row := t.entries.rows.at(id)
	gone := t.expired(row)
	if gone && !t.s.TTL.ReturnExpired {
		return false, t.drop(id, owner)
	}
	key, _ := t.entries.keyBytes(row)
	if err := t.s.MapKey.Decode(key, k); err != nil {
		return false, fmt.Errorf("read state %q: %w", t.state, err)
	}
	if v != nil {
		if err := t.load(row, v); err != nil {
			return false, err
		}
	}
	return true, t.wasRead(id, owner, gone)
}

// Range implements statebackend.MapTable.
func (t *mapTable) Range(f func(e *statebackend.Entry) bool) error {
	var row unsafe.Pointer
	e := &statebackend.Entry{Load: func(dst unsafe.Pointer) error { return t.load(row, dst) }}
	show := func(x *entry) bool {
		e.Key, e.Namespace = x.key, x.suffix
		e.Hash = t.store.Key.HashOne(x.key, t.store.Seed)
		for at := (*mapHead)(x.slot).first; at != 0; at = (*mapLinks)(row).next {
			row = t.entries.rows.at(at - 1)
			if t.expired(row) {
				continue
			}
			if t.stamp != 0 {
				e.At = *t.at(row)
			}
			e.MapKey, _ = t.entries.keyBytes(row)
			if !f(e) {
				return false
			}
		}
		return true
	}
	for part := range t.owners.parts() {
		if !t.owners.scan(part, show) {
			break
		}
	}
	return nil
}
