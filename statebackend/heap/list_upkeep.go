package heap

import "unsafe"

// upkeep implements keeper.
func (t *listTable) upkeep() {
	if !t.care.due(t.n) {
		return
	}
	if t.s.TTL != nil {
		now := t.now()
		part := t.care.nextExpiry(t.ix.parts())
		t.ix.sweep(part,
			func(slot unsafe.Pointer) bool { return t.prune(part, (*listHead)(slot), now) },
			func(slot unsafe.Pointer) { t.free((*listHead)(slot)) })
	}
	compact(t.blocks, &t.care.move, t.ix.parts(), t.movePart)
	t.ix.compactTexts(&t.care.texts)
}

// prune drops leading blocks of which every element has expired, and says whether no element is left alive.
func (t *listTable) prune(part int, head *listHead, now int64) (dead bool) {
	alive := t.alive(head, now)
	if alive == 0 || alive == int(head.count) {
		return alive == 0
	}
	for head.first != head.last {
		b := t.block(head.first)
		gone, n := t.blockExpired(b, now)
		if !gone {
			break
		}
		r := head.first
		head.first = b.next
		head.count -= n
		t.total -= int(n)
		t.noteShorter(part, head, n)
		t.moves++
		t.blocks.drop(r, int(b.room)+int(blockHead))
	}
	return false
}

// noteShorter notes that a list has lost its first n elements, whose rows tell by their times that they are gone.
func (t *listTable) noteShorter(part int, head *listHead, n uint32) {
	rows := &t.ix.rows
	if rows.track == nil {
		return
	}
	row := uintptr(unsafe.Pointer(head)) - t.ix.slotOff
	pos := uint64((row - uintptr(rows.pages[part])) / rows.size)
	if rows.track.changed.has(uint32(part), pos) {
		if p := rows.track.length(uint32(part), pos); p != nil && *p > 0 {
			*p = max(*p, n+1) - n
		}
	}
}

// blockExpired says whether all elements of a block that isn't the last have expired, and how many they are.
func (t *listTable) blockExpired(b *listBlock, now int64) (gone bool, n uint32) {
	for off := uint32(0); off < b.used; n++ {
		p := unsafe.Add(unsafe.Pointer(b), blockHead+uintptr(off))
		if !t.expired(p, now) {
			return false, 0
		}
		_, size := t.payload(p)
		off += uint32(size)
	}
	return true, n
}

// movePart moves the blocks of all lists of a part.
func (t *listTable) movePart(part int) (err error) {
	if err := t.ix.touchPart(part); err != nil {
		return err
	}
	t.ix.scanRows(part, func(_ uint32, row unsafe.Pointer) bool {
		head := (*listHead)(unsafe.Add(row, t.ix.slotOff))
		if t.scattered(head, func(r ref) bool { return t.blocks.chunks[r>>refOffsetBits].old }) {
			err = t.moveList(head, true)
		}
		return err == nil
	})
	return err
}

// scattered says whether a list has a block of some kind.
func (t *listTable) scattered(head *listHead, has func(ref) bool) bool {
	for r := head.first; head.count > 0; r = t.block(r).next {
		if has(r) {
			return true
		}
		if r == head.last {
			break
		}
	}
	return false
}

// renew makes all blocks of a list writable.
func (t *listTable) renew(head *listHead) error {
	if len(t.store.open) == 0 || !t.scattered(head, t.blocks.frozen) {
		return nil
	}
	return t.moveList(head, false)
}

// moveList moves all blocks of a list that a compaction or a snapshot holds fast: one that is moved changes the one before
// it. After an error the list is whole, partly moved. Paced, it stops when the step has copied enough.
func (t *listTable) moveList(head *listHead, paced bool) error {
	link := &head.first
	for {
		if paced && t.blocks.credit <= 0 {
			return errPaused
		}
		r := *link
		to, err := t.blocks.renew(r, int(t.block(r).room)+int(blockHead))
		if err != nil {
			return err
		}
		*link = to
		if r == head.last {
			head.last = to
			return nil
		}
		link = &t.block(to).next
	}
}
