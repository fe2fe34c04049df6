package timers

// broom is where sweeping stands: the next chunk to look at and the one before it in its slot.
type broom struct {
	level, slot int
	prev, cur   uint32
}

// leave makes the broom give up a slot that is about to be emptied.
func (b *broom) leave(l, s int) {
	if b.level == l && b.slot == s {
		b.prev, b.cur = 0, 0
	}
}

// sweep looks at one chunk and drops its dead refs. Called for each deletion while there are more dead refs than timers,
// it takes out about as many as come in: half of a chunk is dead then. If the dead ones are before the wheel's base, as of
// timers that move while the clock is behind it, all of them go at once: a third of what is looked at.
func (q *queue) sweep() {
	b, w := &q.broom, &q.wheel
	if len(q.overdue) > q.live+(q.live+q.slack)/2 {
		q.dead -= q.overdue.keep(func(e ref) bool { return q.slab.at(e.id).gen == e.gen })
		return
	}
	if b.cur == 0 && !q.nextSlot() {
		return
	}
	c := w.chunk(b.cur)
	kept := uint32(0)
	for _, e := range c.refs[:c.n] {
		if q.slab.at(e.id).gen == e.gen {
			c.refs[kept] = e
			kept++
		}
	}
	gone := int(c.n - kept)
	q.dead -= gone
	w.refs -= gone
	c.n = kept

	sl := &w.levels[b.level].slots[b.slot]
	cur := b.cur
	b.cur = c.next
	if b.prev != 0 && kept != 0 {
		if p := w.chunk(b.prev); p.n+kept <= chunkRefs {
			copy(p.refs[p.n:], c.refs[:kept])
			p.n += kept
			kept = 0
		}
	}
	if kept != 0 {
		b.prev = cur
		return
	}
	w.freeChunk(cur, c)
	if b.prev != 0 {
		w.chunk(b.prev).next = b.cur
	} else {
		sl.head = b.cur
	}
	if sl.tail == cur {
		sl.tail = b.prev
	}
	if sl.head == 0 {
		w.take(b.level, b.slot)
	}
}

// nextSlot moves the broom to the next slot that is not empty, around the wheel; false if there is none. It passes over
// the slot that is being fired.
func (q *queue) nextSlot() bool {
	b, w := &q.broom, &q.wheel
	for range levels*slotCount + 1 {
		b.slot++
		if b.slot == slotCount {
			b.slot, b.level = 0, (b.level+1)%levels
		}
		lv := w.levels[b.level]
		if lv == nil {
			b.slot = slotCount - 1
			continue
		}
		if q.firing && b.level == 0 && b.slot == int(w.base%slotCount) {
			continue
		}
		if sl := &lv.slots[b.slot]; sl.head != 0 {
			b.prev, b.cur = 0, sl.head
			return true
		}
	}
	return false
}
