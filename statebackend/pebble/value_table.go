package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// valueTable is a table with one value per key. A row is {value}{with a TTL: time of the last write}.
type valueTable struct {
	ledger
	stamp int // bytes of the time
	ahead statebackend.Lookahead
	batch batch
	found []*row // of a call of Slots
	asked int    // rows of this run that were asked for one by one
	eager bool   // most of the last run's were, so that those of this one are read together
	near  int    // rows of this run before this one were read together
	run   int    // rows that the run has
}

const (
	// aheadShare is the part of the cache that is read together at most: rows must not be gone before they are used.
	aheadShare = 16
	// leastAhead is what a key and a value of unknown size are taken to have.
	leastAhead = 96
)

func newValueTable(l ledger) *valueTable {
	t := &valueTable{ledger: l}
	if l.s.TTL != nil {
		t.stamp, t.tail = stampBytes, stampBytes
	}
	return t
}

// Lookahead implements statebackend.Table. It is always empty: to look ahead would be to read from disk.
func (t *valueTable) Lookahead() *statebackend.Lookahead { return &t.ahead }

// lapse implements keeper.
func (t *valueTable) lapse() {
	t.ledger.lapse()
	if t.asked > 0 {
		t.eager = 2*t.asked >= t.run
	}
	t.asked, t.near, t.run = 0, 0, len(t.store.hashes)
}

// SetNamespace implements statebackend.Table. Only rows of one namespace are read together.
func (t *valueTable) SetNamespace(canonical []byte) {
	if !bytes.HasSuffix(t.ns, canonical) {
		t.asked, t.near, t.eager = 0, 0, false
	}
	t.ledger.SetNamespace(canonical)
}

func (t *valueTable) row(i int) (*row, error) {
	t.asked++
	if t.eager && i >= t.near {
		if err := t.readAhead(i); err != nil {
			return nil, err
		}
	}
	return t.store.cache.get(&t.ledger, t.compose(t.shape.spaces[0], i), t.what())
}

// readAhead reads what the cache does not have of the next rows of the run from i on.
func (t *valueTable) readAhead(i int) error {
	c := t.store.cache
	most := max(1, int(c.limit/aheadShare)/(int(headBytesOfRow)+max(int(t.size), leastAhead)))
	t.near = min(len(t.store.hashes), i+most)
	for ; i < t.near; i++ {
		t.batch.look(c, t.compose(t.shape.spaces[0], i), i)
	}
	return t.batch.read(c, &t.ledger, t.what(), func(int, *row) {})
}

// at is the time of a live row.
func (t *valueTable) at(value []byte) int64 {
	if t.stamp == 0 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(value[len(value)-stampBytes:]))
}

func (t *valueTable) setAt(value []byte, at int64) {
	if t.stamp != 0 {
		binary.LittleEndian.PutUint64(value[len(value)-stampBytes:], uint64(at))
	}
}

// Slots implements statebackend.Table.
func (t *valueTable) Slots(from, to int, out []unsafe.Pointer, fresh []bool) error {
	if !t.fixed {
		return t.errLayout("slots")
	}
	if err := t.enter(0); err != nil {
		return err
	}
	if to == from+1 {
		r, err := t.row(from)
		if err == nil {
			r, fresh[0], err = t.lend(r, t.now())
		}
		if err != nil {
			return err
		}
		out[0] = r.address()
		return nil
	}
	c := t.store.cache
	t.found = append(t.found[:0], make([]*row, to-from)...)
	for i := from; i < to; i++ {
		t.found[i-from] = t.batch.look(c, t.compose(t.shape.spaces[0], i), i-from)
	}
	if err := t.batch.read(c, &t.ledger, t.what(), func(place int, r *row) { t.found[place] = r }); err != nil {
		return err
	}
	now := t.now()
	for i, r := range t.found {
		var err error
		if r, fresh[i], err = t.lend(r, now); err != nil {
			return err
		}
		out[i] = r.address()
	}
	clear(t.found)
	return nil
}

// lend makes a row live and gives its address away.
func (t *valueTable) lend(r *row, now int64) (_ *row, fresh bool, err error) {
	fresh = !r.is(live)
	if fresh {
		if r, err = t.store.cache.put(r, int(t.size)+t.stamp); err != nil {
			return nil, false, err
		}
		t.n++
	} else {
		t.store.cache.touch(r)
		fresh = t.stamp != 0 && t.expired(t.at(r.value()), now) && !t.s.TTL.ReturnExpired
	}
	if fresh {
		clear(r.value())
	}
	t.setAt(r.value(), now)
	r.lent = t.epoch
	return r, fresh, nil
}

// Find implements statebackend.Table.
func (t *valueTable) Find(i int) unsafe.Pointer {
	if !t.fixed || t.store.cache.trim(0) != nil { // addresses stay good, so it must not enter
		return nil
	}
	r, err := t.row(i)
	if err != nil {
		t.store.fail(err)
		return nil
	}
	if r, _ = t.read(r); r == nil {
		return nil
	}
	r.lent = t.epoch
	return r.address()
}

// read gives the row if it has a value to be read, stamping it if reads do; gone says that it must be removed after use.
func (t *valueTable) read(r *row) (_ *row, gone bool) {
	if !r.is(live) || t.stamp == 0 {
		if !r.is(live) {
			r = nil
		}
		return r, false
	}
	now := t.now()
	if t.expired(t.at(r.value()), now) {
		if t.s.TTL.ReturnExpired {
			return r, true
		}
		t.discard(r)
		return nil, false
	}
	if t.s.TTL.OnRead {
		t.store.cache.touch(r)
		t.setAt(r.value(), now)
	}
	return r, false
}

func (t *valueTable) discard(r *row) {
	if r.is(live) {
		t.store.cache.drop(r)
		t.n--
	}
}

// Load implements statebackend.Table.
func (t *valueTable) Load(i int, v unsafe.Pointer) (bool, error) {
	if err := t.enter(0); err != nil {
		return false, err
	}
	r, err := t.row(i)
	if err != nil {
		return false, err
	}
	r, gone := t.read(r)
	if r == nil {
		return false, nil
	}
	value := r.value()
	err = t.fetch(value[:len(value)-t.stamp], v)
	if gone {
		t.discard(r)
	}
	return err == nil, err
}

// Save implements statebackend.Table.
func (t *valueTable) Save(i int, v unsafe.Pointer) error { return t.save(i, v, t.now()) }

func (t *valueTable) save(i int, v unsafe.Pointer, at int64) error {
	b, n, err := t.bring(v)
	if err != nil {
		return err
	}
	if err := t.enter(n); err != nil {
		return err
	}
	r, err := t.row(i)
	if err != nil {
		return err
	}
	was := r.is(live)
	if r, err = t.store.cache.put(r, n+t.stamp); err != nil {
		return err
	}
	value := r.value()
	if !was {
		t.n++
		clear(value)
	}
	copy(value, b)
	t.setAt(value, at)
	return nil
}

// Has implements statebackend.Table.
func (t *valueTable) Has(i int) bool {
	r, err := t.enterRow(i)
	if err != nil {
		t.store.fail(err)
		return false
	}
	return r.is(live) && !t.expired(t.at(r.value()), t.now())
}

func (t *valueTable) enterRow(i int) (*row, error) {
	if err := t.enter(0); err != nil {
		return nil, err
	}
	return t.row(i)
}

// Delete implements statebackend.Table.
func (t *valueTable) Delete(i int) error {
	r, err := t.enterRow(i)
	if err == nil {
		t.discard(r)
	}
	return err
}

// Range implements statebackend.Table.
func (t *valueTable) Range(f func(e *statebackend.Entry) bool) error {
	return t.each(t.shape.spaces[0], func(_, value []byte, e *entry) bool {
		if e.At = t.at(value); t.expired(e.At, e.now) {
			return true
		}
		e.bytes = value[:len(value)-t.stamp]
		return f(&e.Entry)
	})
}

// entry is an entry that Range shows.
type entry struct {
	statebackend.Entry
	bytes []byte // of the value
	now   int64
}

// each calls f for each row of a space, with an entry that has its owner, until f returns false.
func (l *ledger) each(space uint16, f func(key, value []byte, e *entry) bool) error {
	if err := errors.Join(l.enter(0), l.store.cache.flush()); err != nil {
		return err
	}
	e := &entry{now: l.now()}
	e.Load = func(dst unsafe.Pointer) error { return l.decode(e.bytes, dst) }
	from, to := bounds(space)
	err := scan(l.store.tree, from, to, func(key, value []byte) (bool, error) {
		if err := l.fill(key, e); err != nil {
			return false, err
		}
		return f(key, value, e), nil
	})
	if err != nil {
		return l.unread(err)
	}
	return nil
}

// fill fills in whose an entry is.
func (l *ledger) fill(key []byte, e *entry) error {
	var r statebackend.Row
	err := l.parse(key, &r)
	e.Key, e.Hash, e.Namespace = r.Key, r.Hash, r.Namespace
	return err
}
