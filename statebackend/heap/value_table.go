package heap

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// index is what a value table asks of a wordIndex or a rowIndex. Calls with an index mean keys of the store's run.
type index interface {
	length() int
	// slots finds or inserts keys [from,to) of the run. The slots may be written to.
	slots(from, to int, out []unsafe.Pointer, fresh []bool) error
	// lookup finds keys [from,to); nil for those that are absent. The slots may be written to if own is set.
	lookup(from, to int, out []unsafe.Pointer, own bool) error
	// find gives the slot of key i, or nil. It must not be written to unless own says so.
	find(i int) unsafe.Pointer
	// own gives the slot of key i, which find gave, for writing. After an error nothing has changed.
	own(i int, slot unsafe.Pointer) (unsafe.Pointer, error)
	// ownWhole does the same for a removal, which may change other entries.
	ownWhole(i int, slot unsafe.Pointer) (unsafe.Pointer, error)
	// expect sets up an empty index for about n entries.
	expect(n int64)
	// load finds or inserts keys [from,to) of the run in an index that no snapshot or lookahead has seen yet, and gives the
	// slots of the first n of them, at least one; the others are for the next call, as entries have to move before.
	load(from, to int, out []unsafe.Pointer) (n int, err error)
	// follow makes a lookahead be emptied when addresses change.
	follow(ahead *lookahead)
	// guarded says whether own and its like may have something to do: a snapshot is open.
	guarded() bool
	// touchPart lets all slots of a part be written to; their addresses may be others afterwards.
	touchPart(part int) error
	// freeze begins a snapshot.
	freeze(f *frozen, c *changes) *leaf
	// tracked are its pages.
	tracked() tracked
	// remove removes key i, whose slot own gave.
	remove(i int, slot unsafe.Pointer)
	// parts is how many parts scan knows; new parts come at the end.
	parts() int
	// scan calls f for every entry of a part until f returns false.
	scan(part int, f func(e *entry) bool) bool
	// sweep removes the entries of a part that are dead, after release of their slots.
	sweep(part int, dead func(slot unsafe.Pointer) bool, release func(slot unsafe.Pointer))
	setSuffix(b []byte)
	close()
}

// entry is an entry of an index during a scan.
type entry struct {
	key, suffix []byte
	slot        unsafe.Pointer
}

// valueTable is a table with one value per key. With a TTL, a slot begins with the time of the last write.
type valueTable struct {
	ledger
	s     statebackend.TableSpec
	ix    index
	cells cells
	stamp uintptr // bytes before the value: 8 with a TTL
	care  caretaker
	base  base

	ahead   lookahead
	hidden  statebackend.Lookahead // the empty one that is shown if slots are not Go values
	buf     []unsafe.Pointer       // behind the lookahead
	n       int                    // keys of the run
	asked   int                    // accesses of this run that the lookahead did not answer
	fillAt  int                    // fill the lookahead when asked reaches it
	fills   int                    // how often it was filled in this run
	deletes int                    // of this run: each empties the lookahead
	slot    [1]unsafe.Pointer
	fresh   [1]bool
}

const (
	stampBytes = 8
	// eagerAsk is the number of single accesses that make a table look up the rest of the run.
	eagerAsk = 8
	// maxDeletes is the number of deletes in a run after which looking ahead is given up.
	maxDeletes = 4
)

func newValueTable(st *store, spec *statebackend.TableSpec) (*valueTable, error) {
	t := &valueTable{s: *spec, fillAt: eagerAsk}
	t.ledger = ledger{store: st, state: spec.Name}
	t.cells = newCells(&t.ledger, spec.Value)
	if spec.TTL != nil {
		t.stamp = stampBytes
	}
	slot := t.stamp + t.cells.slotSize()
	var err error
	if w := st.Key.Width; w > 0 && w <= wordBytes && spec.Namespace == nil && wordBytes+slot <= widestWordEntry {
		t.ix, err = newWordIndex(&t.ledger, slot, &t.ahead)
	} else {
		var x *rowIndex
		x, err = newRowIndex(&t.ledger, rowShape{slot: slot, key: st.Key, src: &st.run, suffix: spec.Namespace})
		t.ix = x
		if t.asTheyLie(x) {
			x.rows.tellApart(st.FirstGroup, st.LastGroup, st.MaxParallelism, int(x.rows.rows))
		}
	}
	if err == nil {
		t.ix.follow(&t.ahead)
	}
	return t, err
}

// asTheyLie says whether snapshots take the rows of an index as they lie: keys and values are bytes in them.
func (t *valueTable) asTheyLie(x *rowIndex) bool {
	return t.stamp == 0 && x.width > 0 && !x.suffixed && t.cells.Plain()
}

func (t *valueTable) spec() *statebackend.TableSpec { return &t.s }

// Spec implements statebackend.Table.
func (t *valueTable) Spec() *statebackend.TableSpec { return &t.s }

// Lookahead implements statebackend.Table.
func (t *valueTable) Lookahead() *statebackend.Lookahead {
	if t.cells.Layout == serde.Fixed && t.stamp == 0 {
		return &t.ahead.Lookahead
	}
	return &t.hidden
}

// Len implements statebackend.Table.
func (t *valueTable) Len() int { return t.ix.length() }

// MemoryBytes implements statebackend.Table.
func (t *valueTable) MemoryBytes() int64 { return t.held }

// SetNamespace implements statebackend.Table.
func (t *valueTable) SetNamespace(canonical []byte) {
	t.ix.setSuffix(canonical)
	t.forget()
}

// begin implements keeper. A table whose last run was worth a lookahead looks ahead at once; one that lost it by deletes
// doesn't try.
func (t *valueTable) begin(n int) {
	t.fillAt = eagerAsk
	switch {
	case t.deletes > maxDeletes:
		t.fillAt = n + 1
	case t.fills > 0:
		t.fillAt = 1
	}
	t.forget()
	t.n, t.asked, t.fills, t.deletes = n, 0, 0, 0
}

func (t *valueTable) pages() []tracked { return []tracked{t.ix.tracked()} }

func (t *valueTable) forget() { t.ahead.forget() }

func (t *valueTable) close() {
	t.ix.close()
	if t.cells.arena != nil {
		t.cells.arena.close()
	}
	t.base.end(t.pages())
	t.ahead, t.buf = lookahead{}, nil
}

// lookahead are the slots that were looked up for the run, with their times and in any layout.
type lookahead struct {
	statebackend.Lookahead                  // for reading and writing
	near                   []unsafe.Pointer // for reading; the same ones, or more
}

func (l *lookahead) forget() { l.Slots, l.near = l.Slots[:0], l.near[:0] }

// fill looks up keys [i,n) of the run ahead, for reading, and for writing if own is set. After each time in a run it waits
// longer.
func (t *valueTable) fill(i int, own bool) error {
	t.fills++
	t.fillAt = t.asked + eagerAsk<<(2*t.fills)
	if cap(t.buf) < t.n {
		t.buf = make([]unsafe.Pointer, max(t.n, block))
	}
	slots := t.buf[:t.n]
	clear(slots[:i])
	if err := t.ix.lookup(i, t.n, slots[i:], own); err != nil {
		return err
	}
	t.ahead.near = slots
	if own {
		t.ahead.Slots = slots
	}
	return nil
}

// worthFilling counts an access that a lookahead did not answer.
func (t *valueTable) worthFilling(i int, ahead []unsafe.Pointer) bool {
	t.asked++
	return t.asked >= t.fillAt && len(ahead) == 0 && t.n-i >= eagerAsk && t.deletes <= maxDeletes
}

// find gives the slot of key i or nil, from the lookahead if it can. It looks ahead only if that copies no page for a
// snapshot and notes no change: it may be called for reading alone.
func (t *valueTable) find(i int) unsafe.Pointer {
	if i < len(t.ahead.near) {
		if slot := t.ahead.near[i]; slot != nil {
			return slot
		}
	}
	if t.worthFilling(i, t.ahead.near) && !t.ix.guarded() && t.fill(i, t.base.gone == nil) == nil {
		return t.ahead.near[i]
	}
	return t.ix.find(i)
}

// insert finds or inserts the slot of key i.
func (t *valueTable) insert(i int, out []unsafe.Pointer, fresh []bool) error {
	if i < len(t.ahead.Slots) || t.worthFilling(i, t.ahead.Slots) {
		if len(t.ahead.Slots) == 0 {
			if err := t.fill(i, true); err != nil {
				return err
			}
		}
		if slot := t.ahead.Slots[i]; slot != nil {
			out[0], fresh[0] = slot, false
			return nil
		}
	}
	if err := t.ix.slots(i, i+1, out, fresh); err != nil {
		return err
	}
	if i < len(t.ahead.Slots) { // it is empty if the new entry moved others
		t.ahead.Slots[i] = out[0]
	}
	return nil
}

// Slots implements statebackend.Table.
func (t *valueTable) Slots(from, to int, out []unsafe.Pointer, fresh []bool) error {
	if t.cells.Layout != serde.Fixed {
		return t.errLayout("slots")
	}
	var err error
	if to-from == 1 {
		err = t.insert(from, out, fresh)
	} else {
		err = t.ix.slots(from, to, out, fresh)
	}
	if err == nil && t.stamp != 0 {
		t.stampSlots(out[:to-from], fresh[:to-from])
	}
	return err
}

func (t *valueTable) errLayout(what string) error {
	return fmt.Errorf("state %q: %s of type %s: layout %v has none", t.state, what, t.cells.Name, t.cells.Layout)
}

// stampSlots makes writes of accesses to slots of a TTL table.
func (t *valueTable) stampSlots(out []unsafe.Pointer, fresh []bool) {
	now := t.store.Now()
	for i, slot := range out {
		at := (*int64)(slot)
		value := unsafe.Add(slot, stampBytes)
		if !fresh[i] && t.s.TTL.Expired(*at, now) && !t.s.TTL.ReturnExpired {
			clearBytes(value, t.cells.slotSize())
			fresh[i] = true
		}
		*at = now
		out[i] = value
	}
}

// Find implements statebackend.Table.
func (t *valueTable) Find(i int) unsafe.Pointer {
	if t.cells.Layout != serde.Fixed {
		return nil
	}
	value, _, err := t.read(i)
	if err != nil && t.store.failed == nil {
		t.store.failed = err // the next snapshot or copy for one fails with it
	}
	return value
}

// read finds the value of key i, stamping it if reads do; gone says that it has expired and must be removed after use.
func (t *valueTable) read(i int) (value unsafe.Pointer, gone bool, err error) {
	slot := t.find(i)
	if slot == nil || t.stamp == 0 {
		return slot, false, nil
	}
	at, now := *(*int64)(slot), t.store.Now()
	if t.s.TTL.Expired(at, now) {
		if t.s.TTL.ReturnExpired {
			return unsafe.Add(slot, stampBytes), true, nil
		}
		return nil, false, t.discard(i, slot)
	}
	if t.s.TTL.OnRead && at != now {
		if slot, err = t.ix.own(i, slot); err != nil {
			return nil, false, err
		}
		*(*int64)(slot) = now
	}
	return unsafe.Add(slot, stampBytes), false, nil
}

// Load implements statebackend.Table.
func (t *valueTable) Load(i int, v unsafe.Pointer) (bool, error) {
	value, gone, err := t.read(i)
	if value == nil || err != nil {
		return false, err
	}
	err = t.cells.load(value, v)
	if err != nil {
		err = t.wrap("read", err)
	}
	if gone {
		err = errors.Join(err, t.discard(i, unsafe.Add(value, -int(t.stamp))))
	}
	return err == nil, err
}

// Save implements statebackend.Table.
func (t *valueTable) Save(i int, v unsafe.Pointer) error { return t.save(i, v, t.now()) }

// adopt implements keeper.
func (t *valueTable) adopt(a *arrivals) error {
	for from := 0; from < a.n; {
		slots := a.slots[:a.n-from]
		n, err := t.ix.load(from, a.n, slots)
		if err != nil {
			return err
		}
		for i, slot := range slots[:n] {
			if t.stamp != 0 {
				*(*int64)(slot) = a.at[from+i]
			}
			if err := t.cells.adopt(unsafe.Add(slot, t.stamp), a, from+i); err != nil {
				return err
			}
		}
		from += n
	}
	return nil
}

// expect implements keeper.
func (t *valueTable) expect(n int64) { t.ix.expect(n) }

// now is the time that stamps bear, with a TTL.
func (t *valueTable) now() int64 {
	if t.stamp == 0 {
		return 0
	}
	return t.store.Now()
}

func (t *valueTable) save(i int, v unsafe.Pointer, at int64) error {
	if err := t.insert(i, t.slot[:], t.fresh[:]); err != nil {
		return err
	}
	slot := t.slot[0]
	if t.stamp != 0 {
		*(*int64)(slot) = at
	}
	if err := t.cells.save(unsafe.Add(slot, t.stamp), v); err != nil {
		if t.fresh[0] {
			t.remove(i, slot)
		}
		return t.wrap("write", err)
	}
	return nil
}

func (t *valueTable) wrap(verb string, err error) error {
	return fmt.Errorf("%s state %q: %w", verb, t.state, err)
}

// Has implements statebackend.Table.
func (t *valueTable) Has(i int) bool {
	slot := t.find(i)
	return slot != nil && (t.stamp == 0 || !t.s.TTL.Expired(*(*int64)(slot), t.store.Now()))
}

// Delete implements statebackend.Table.
func (t *valueTable) Delete(i int) error {
	if slot := t.find(i); slot != nil {
		return t.discard(i, slot)
	}
	return nil
}

// discard removes the value of key i, whose slot find gave.
func (t *valueTable) discard(i int, slot unsafe.Pointer) error {
	slot, err := t.ix.ownWhole(i, slot)
	if err == nil {
		t.remove(i, slot)
	}
	return err
}

// remove removes the value of key i, whose slot may be written to.
func (t *valueTable) remove(i int, slot unsafe.Pointer) {
	t.cells.free(unsafe.Add(slot, t.stamp))
	t.ix.remove(i, slot)
	t.deletes++
	t.forget()
}

// Range implements statebackend.Table.
func (t *valueTable) Range(f func(e *statebackend.Entry) bool) error {
	var value unsafe.Pointer
	e := &statebackend.Entry{Load: func(dst unsafe.Pointer) error { return t.cells.load(value, dst) }}
	for part := range t.ix.parts() {
		more := t.ix.scan(part, func(x *entry) bool {
			if t.stamp != 0 {
				e.At = *(*int64)(x.slot)
				if t.s.TTL.Expired(e.At, t.store.Now()) {
					return true
				}
			}
			e.Key, e.Namespace = x.key, x.suffix
			e.Hash = t.store.Key.HashOne(x.key, t.store.Seed)
			value = unsafe.Add(x.slot, t.stamp)
			return f(e)
		})
		if !more {
			break
		}
	}
	return nil
}
