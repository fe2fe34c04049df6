package pebble

import "unsafe"

// cleanShare is the part of the cache whose rows are written at once: the more, the fewer files the tree has, and the more
// rows are written that change again before they go.
const cleanShare = 3

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
	c.gone, c.late = c.gone[:0], c.late[:0]
	freed := int64(0)
	var err error
	for looks := (maxHeat + 2) * (len(c.small.segments) + len(c.main.segments)); looks > 0 && c.bytes-freed > target; looks-- {
		s := c.oldest()
		if s == nil {
			break
		}
		if err = c.clean(s); err != nil {
			c.main.push(s)
			break
		}
		if c.clear(s) {
			freed += s.bytes()
			c.gone = append(c.gone, s)
		}
	}
	c.stuck = freed == 0 // until addresses end
	if err == nil {
		err = c.write(c.late)
	}
	for _, s := range c.gone {
		c.vacate(s)
	}
	clear(c.gone)
	clear(c.late)
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

// clean sees to it that the tree has the rows of a segment that are about to go. What it writes are cold rows of the segments
// that come next as well, enough for a file of the tree: they stay in the cache, and need not be written when their turn
// comes, unless they were changed again.
func (c *cache) clean(s *segment) error {
	c.victims = c.victims[:0]
	size := c.gather(s)
	if len(c.victims) == 0 {
		return nil
	}
	for _, q := range []*queue{&c.small, &c.main} {
		for i := 0; i < len(q.segments)-1 && size < c.limit/cleanShare; i++ {
			size += c.gather(q.segments[i])
		}
	}
	err := c.write(c.victims)
	clear(c.victims)
	return err
}

// gather adds the changed rows of a segment to the victims, but for those that were used of late and those whose addresses are
// in use, and gives the bytes that they take.
func (c *cache) gather(s *segment) (size int64) {
	if s.dirty == 0 {
		return 0
	}
	c.settle(s)
	s.dirty = 0
	s.each(func(r *row) {
		switch {
		case r.state&(dirty|dead) != dirty:
		case c.pinned(r) || r.heat > 0:
			s.dirty++
		default:
			c.victims = append(c.victims, r)
			size += int64(r.words()) * 8
		}
	})
	return size
}

// clear moves or evicts the rows of a segment that was taken out of its queue and cleaned. If some must stay it is in the main
// queue again.
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
				c.late = append(c.late, r)
			}
		}
	})
	if stay {
		c.main.push(s) // the memory of those that go stays as it is: rows are only added behind it
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
