package heap

import "unsafe"

// sweepEvery is the number of keys after which a table does one step of upkeep: about a page's worth of entries.
const sweepEvery = 256

// caretaker paces the upkeep of a table by the elements that it sees, so that the work per element stays bounded and a
// step is short however large the table is.
type caretaker struct {
	credit int
	expiry int // the part that the next sweep looks at
	move   int // the part that the running compaction looks at
	texts  int // the same for text keys
}

// due says whether a step is due after n more keys.
func (c *caretaker) due(n int) bool {
	if c.credit += n; c.credit < sweepEvery {
		return false
	}
	c.credit = 0
	return true
}

// nextExpiry gives the part to sweep.
func (c *caretaker) nextExpiry(parts int) int {
	if c.expiry >= parts {
		c.expiry = 0
	}
	c.expiry++
	return c.expiry - 1
}

// compact does one step of compacting an arena whose records the parts refer to. Parts that come while it runs are at
// the end, and entries change only to parts that are still to come or hold nothing old. A step that has copied enough or
// finds no memory leaves the rest of its part to the next one. Copying keeps ahead of writing, or it would never end.
func compact(a *arena, at *int, parts int, move func(part int) error) {
	if a == nil {
		return
	}
	if len(a.later) > 0 {
		a.settle()
	}
	if a.worthwhile() {
		a.begin()
		a.made = 0
		*at = 0
	}
	if !a.moving {
		return
	}
	a.credit = stepBytes + 2*a.made
	if *at < parts {
		err := move(*at)
		a.made = 0
		if err != nil {
			return
		}
		*at++
	}
	if *at >= parts {
		a.finish()
	}
}

// upkeep implements keeper.
func (t *valueTable) upkeep() {
	if !t.care.due(t.n) {
		return
	}
	if t.stamp != 0 {
		now := t.store.Now()
		t.ix.sweep(t.care.nextExpiry(t.ix.parts()),
			func(slot unsafe.Pointer) bool { return t.s.TTL.Expired(*(*int64)(slot), now) },
			func(slot unsafe.Pointer) { t.cells.free(unsafe.Add(slot, t.stamp)) })
	}
	compact(t.cells.arena, &t.care.move, t.ix.parts(), t.movePart)
	if rows, ok := t.ix.(*rowIndex); ok {
		rows.compactTexts(&t.care.texts)
	}
}

// movePart moves the records of all entries of a part.
func (t *valueTable) movePart(part int) (err error) {
	if err := t.ix.touchPart(part); err != nil {
		return err
	}
	t.ix.scan(part, func(e *entry) bool {
		err = t.cells.move(unsafe.Add(e.slot, t.stamp))
		return err == nil
	})
	return err
}

// compactTexts does one step of compacting the text keys.
func (x *rowIndex) compactTexts(at *int) {
	compact(x.texts, at, x.parts(), func(part int) (err error) {
		if err := x.rows.touchPage(part); err != nil {
			return err
		}
		x.scanRows(part, func(_ uint32, row unsafe.Pointer) bool {
			w := (*uint64)(unsafe.Add(row, x.keyOff))
			if n := int(*w >> refBits); n != 0 {
				var r ref
				r, err = x.texts.move(ref(*w&(1<<refBits-1)), n)
				*w = uint64(n)<<refBits | uint64(r)
			}
			return err == nil
		})
		return err
	})
}
