package timers

import (
	"encoding/binary"
)

// queue is the set of timers of one domain.
type queue struct {
	slab    slab
	arena   arena
	index   index
	wheel   wheel
	overdue overdue // timers before the wheel's base: due already, or the clock has gone back
	horizon horizon
	ledger  ledger
	live    int
	dead    int // refs of deleted timers
	slack   int // dead refs beyond the number of timers that are left alone
	broom   broom
	firing  bool
	sink    uint32 // where touched memory goes, so that the touching is not optimised away
}

func (q *queue) init(inline int) {
	q.slab.init(inline)
	q.slack = 1024
}

func (q *queue) register(key []byte, hash uint64, namespace []byte, at int64) bool {
	tag := tagOf(hash, namespace, at)
	if _, _, ok := q.find(tag, key, hash, namespace, at); ok {
		return false
	}
	id, r := q.slab.take()
	r.at, r.hash, r.tag, r.klen, r.nlen = at, hash, tag, uint32(len(key)), uint32(len(namespace))
	dst := q.slab.bytes(r)
	if n := len(key) + len(namespace); n > len(dst) {
		name := q.arena.take(n)
		binary.LittleEndian.PutUint64(dst, name)
		dst = q.arena.block(name, n)
	}
	copy(dst, key)
	copy(dst[len(key):], namespace)
	q.index.add(tag, id)
	q.live++
	if e := (ref{at: at, id: id, gen: r.gen}); ordered(at) < q.wheel.base {
		q.overdue.push(e)
	} else {
		q.wheel.add(e)
	}
	return true
}

func (q *queue) remove(key []byte, hash uint64, namespace []byte, at int64) bool {
	tag := tagOf(hash, namespace, at)
	id, r, ok := q.find(tag, key, hash, namespace, at)
	if ok {
		q.discard(id, r)
	}
	return ok
}

// discard takes a timer out that does not fire.
func (q *queue) discard(id uint32, r *record) {
	q.unset(id, r)
	q.release(id, r)
	q.dead++
	if q.dead > q.live+q.slack {
		q.sweep()
	}
}

// find looks a timer up.
func (q *queue) find(tag uint32, key []byte, hash uint64, namespace []byte, at int64) (uint32, *record, bool) {
	if q.live == 0 {
		return 0, nil, false
	}
	p := q.index.page(tag)
	for i := tag % pageSlots; p.slots[i] != 0; i = (i + 1) % pageSlots {
		if uint32(p.slots[i]>>32) != tag {
			continue
		}
		id := uint32(p.slots[i]) - 1
		r := q.slab.at(id)
		if r.at != at || r.hash != hash || int(r.klen) != len(key) || int(r.nlen) != len(namespace) {
			continue
		}
		if k, ns := q.payload(r); string(k) == string(key) && string(ns) == string(namespace) {
			return id, r, true
		}
	}
	return 0, nil, false
}

// payload is the record's key and namespace.
func (q *queue) payload(r *record) (key, namespace []byte) {
	b := q.slab.bytes(r)
	n := int(r.klen) + int(r.nlen)
	if n > len(b) {
		b = q.arena.block(binary.LittleEndian.Uint64(b), n)
	}
	return b[:r.klen:r.klen], b[r.klen:n:n]
}

// unset takes the timer out of the set; its bytes stay readable until release.
func (q *queue) unset(id uint32, r *record) {
	q.index.remove(r.tag, id)
	q.slab.retire(r)
	q.live--
}

func (q *queue) release(id uint32, r *record) {
	if n := int(r.klen) + int(r.nlen); n > q.slab.inline {
		q.arena.give(binary.LittleEndian.Uint64(q.slab.bytes(r)), n)
	}
	q.slab.give(id, r)
}

// bound is a time that no timer in memory is before: the earliest timer's, or a deleted one's. ok is false if there is none.
func (q *queue) bound() (at int64, ok bool) {
	if len(q.overdue) != 0 {
		return q.overdue[0].at, true
	}
	return q.wheel.bound()
}

// fire fires every timer with a time <= upTo in time order.
func (q *queue) fire(upTo int64, f Fire) error {
	q.firing = true
	err := q.drain(upTo, f)
	q.firing = false
	if err == nil {
		q.wheel.rest(upTo)
	}
	return err
}

func (q *queue) drain(upTo int64, f Fire) error {
	for {
		if err := q.fireOverdue(upTo, f); err != nil {
			return err
		}
		if q.waits(upTo) {
			if err := q.refill(); err != nil {
				return err
			}
			continue
		}
		l, s, ok := q.wheel.first()
		if !ok || q.wheel.levels[l].slots[s].min > upTo {
			return nil
		}
		q.broom.leave(l, s)
		if l > 0 {
			q.wheel.lower(l, s)
			continue
		}
		if err := q.fireSlot(s, f); err != nil {
			return err
		}
	}
}

// fireOverdue fires the timers before the wheel's base, up to a time and the horizon. In event time they were due when they
// were registered; a clock of processing time may have gone back behind the base, and has to come to them again.
func (q *queue) fireOverdue(upTo int64, f Fire) error {
	for len(q.overdue) != 0 && q.overdue[0].at <= upTo && !(q.horizon.far && q.overdue[0].at > q.horizon.at) {
		if err := q.fireOne(q.overdue.pop(), f); err != nil {
			return err
		}
	}
	return nil
}

// fireSlot fires a slot of level 0, which holds one time. What calls register for the same time joins the slot's end;
// what they register for an earlier time comes next.
func (q *queue) fireSlot(s int, f Fire) error {
	w := &q.wheel
	sl := &w.levels[0].slots[s]
	w.base = ordered(sl.min)
	for sl.head != 0 {
		c := w.chunk(sl.head)
		q.touch(c)
		for i := uint32(0); i < c.n; i++ {
			r := c.refs[i]
			c.refs[i].gen = 0
			if err := q.fireOne(r, f); err != nil {
				return err
			}
			if len(q.overdue) != 0 {
				if err := q.fireOverdue(sl.min, f); err != nil {
					return err
				}
			}
		}
		w.refs -= int(c.n)
		if sl.head == sl.tail {
			w.freeChunk(sl.head, c)
			w.take(0, s)
			return nil
		}
		sl.head = w.freeChunk(sl.head, c)
	}
	return nil
}

// fireOne fires the timer behind a ref, unless it was deleted.
func (q *queue) fireOne(e ref, f Fire) error {
	if e.gen == 0 {
		return nil
	}
	r := q.slab.at(e.id)
	if r.gen != e.gen {
		q.dead--
		return nil
	}
	q.unset(e.id, r)
	key, ns := q.payload(r)
	err := f(key, r.hash, ns, r.at)
	q.release(e.id, r)
	return err
}

// touch loads the records of a chunk, then their index slots: misses that wait for each other when they are met one by
// one between calls.
func (q *queue) touch(c *chunk) {
	var tags [chunkRefs]uint32
	for i, e := range c.refs[:c.n] {
		tags[i] = q.slab.at(e.id).tag
	}
	sum := uint32(0)
	for _, tag := range tags[:c.n] {
		sum += uint32(q.index.page(tag).slots[tag%pageSlots])
	}
	q.sink = sum
}

func (q *queue) memory() int64 {
	return q.slab.memory() + q.arena.held + q.index.memory() + q.wheel.memory() + int64(cap(q.overdue))*16
}
