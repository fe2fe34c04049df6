package pebble

import (
	"bytes"
	"errors"
	"slices"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"
)

// trim evicts rows until there is room for n bytes more in the limit and in the budget.
func (c *cache) trim(n int) error {
	if c.store.failed != nil {
		return c.store.failed
	}
	segment := int64(c.segmentWords) * 8
	need := int64(n) + segment
	if c.used()+need > c.limit && !c.stuck {
		return c.evict(max(segment, min(evictBytes, c.limit/16)) + int64(n))
	}
	if c.prepare() && int64(n) < segment/2 || c.stuck {
		return nil
	}
	if c.reserve(need) == nil {
		c.giveBack(need)
		return nil
	}
	return c.evict(need)
}

// evict clears segments until n bytes are free in the limit and n less are in use, or nothing is left to go.
func (c *cache) evict(n int64) error {
	target := c.bytes - max(0, c.used()-c.limit) - n
	c.victims, c.gone = c.victims[:0], c.gone[:0]
	freed := int64(0)
	for looks := (maxHeat + 2) * (len(c.small.segments) + len(c.main.segments)); looks > 0 && c.bytes-freed > target; looks-- {
		s := c.oldest()
		if s == nil {
			break
		}
		if c.clear(s) {
			freed += s.bytes()
			c.gone = append(c.gone, s)
		}
	}
	c.stuck = freed == 0 // until addresses end
	err := c.write(c.victims)
	for _, s := range c.gone {
		c.vacate(s)
	}
	clear(c.gone)
	clear(c.victims)
	c.store.fail(err)
	return err
}

// oldest takes the segment that is to be cleared next out of its queue.
func (c *cache) oldest() *segment {
	q := &c.small
	if len(q.segments) == 0 || c.small.bytes <= c.limit/10 && len(c.main.segments) > 1 {
		q = &c.main
	}
	if len(q.segments) == 0 {
		return nil
	}
	return q.pop()
}

// clear moves or evicts the rows of a segment that was taken out of its queue. If some must stay it is in the main queue
// again.
func (c *cache) clear(s *segment) bool {
	c.settle(s)
	stay := false
	s.each(func(r *row) {
		switch {
		case r.is(dead):
		case c.pinned(r):
			stay = true
		case r.heat > 0 && c.rescue(r):
		default:
			c.ghost.add(r.hash, c.limit)
			c.forget(r)
			if r.is(dirty) {
				c.victims = append(c.victims, r)
			}
		}
	})
	if stay {
		c.main.push(s) // the memory of victims stays as it is: rows are only added behind it
	}
	return !stay
}

// rescue moves a row to the main queue.
func (c *cache) rescue(r *row) bool {
	words := r.words()
	if c.main.last(words) == nil && (words > c.segmentWords || !c.prepare()) {
		return false
	}
	p, s, err := c.place(&c.main, words)
	if err != nil {
		return false
	}
	copy(s.mem[s.used-words:s.used], unsafe.Slice((*uint64)(unsafe.Pointer(r)), words))
	p.seg, p.stamp, p.heat = s.number, c.store.generation, r.heat-1
	if p.is(dirty) {
		s.dirty++
	}
	c.index.move(r.hash, c.slotOf(r), c.slotOf(p))
	r.state |= dead
	return true
}

// flush writes all that has been changed. Rows whose addresses are in use stay dirty.
func (c *cache) flush() error {
	if c.store.failed != nil {
		return c.store.failed
	}
	c.victims = c.victims[:0]
	for _, s := range c.segments {
		if s == nil || s.dirty == 0 {
			continue
		}
		c.settle(s)
		s.dirty = 0
		s.each(func(r *row) {
			if r.state&(dirty|dead) == dirty {
				c.victims = append(c.victims, r)
			}
		})
	}
	err := c.write(c.victims)
	for _, r := range c.victims {
		if c.pinned(r) {
			r.state |= dirty
			c.segments[r.seg].dirty++
		}
	}
	clear(c.victims)
	c.store.fail(err)
	return err
}

// write tells the tree of rows, in the order of their keys.
func (c *cache) write(rows []*row) error {
	if len(rows) == 0 {
		return c.store.tree.broken()
	}
	slices.SortFunc(rows, func(a, b *row) int { return bytes.Compare(a.key(), b.key()) })
	size := int64(0)
	for _, r := range rows {
		size += int64(r.klen+r.vlen) + 32
	}
	c.pay(c.store.tree.fill(size))
	c.store.trace(rows)
	b := c.store.tree.NewBatch()
	for _, r := range rows {
		err := c.writeRow(b, r)
		if err == nil && b.Len() > batchBytes {
			if err = b.Commit(pebble.NoSync); err == nil {
				err = b.Close()
				b = c.store.tree.NewBatch()
			}
		}
		if err != nil {
			return errors.Join(c.errWrite(err), b.Close())
		}
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return errors.Join(c.errWrite(err), b.Close())
	}
	if err := errors.Join(b.Close(), c.store.tree.broken()); err != nil {
		return c.errWrite(err)
	}
	return nil
}

// pay draws what the tree needs more on the budget. If that refuses, the cache gives spare memory up for it; what then still
// lacks is asked for again at the next write, when the cache will have more to spare.
func (c *cache) pay(need int64) {
	t := c.store.tree
	for need > 0 && t.extend(need) != nil && len(c.spare) > 1 {
		for freed := int64(0); freed < need && len(c.spare) > 1; {
			s := c.spare[len(c.spare)-1]
			c.spare = c.spare[:len(c.spare)-1]
			freed += s.bytes()
			c.scrap(s)
		}
	}
}

func (c *cache) writeRow(b *pebble.Batch, r *row) error {
	was := r.is(known)
	r.state &^= dirty | known
	if r.is(live) {
		r.state |= known
		l := c.owners[r.owner]
		value, err := l.pack(c.buf[:0], r)
		c.buf = value[:0]
		if err != nil {
			return err
		}
		return b.Set(r.key(), value, nil)
	}
	if was {
		return b.Delete(r.key(), nil)
	}
	return nil
}
