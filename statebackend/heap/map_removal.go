package heap

import "unsafe"

// drop removes a row from its map, and the map with its last row. After an error nothing has changed.
func (t *mapTable) drop(id, owner uint32) error {
	if err := t.touchAround(id, owner); err != nil {
		return err
	}
	row := t.entries.rows.at(id)
	head, l := t.headOf(owner), *(*mapLinks)(row)
	if l.prev == 0 {
		head.first = l.next
	} else {
		t.links(l.prev).next = l.next
	}
	if l.next == 0 {
		head.last = l.prev
	} else {
		t.links(l.next).prev = l.prev
	}
	head.count--
	for i := range t.walks {
		if w := &t.walks[i]; w.row == id+1 {
			w.row, w.before = l.next, true
		}
	}
	t.noteGone(row, id, owner)
	t.dropRow(row, id)
	if head.count == 0 {
		t.dropOwner(owner)
	}
	return nil
}

// noteGone notes the key of an entry that is about to be removed, if snapshots of changes have to tell.
func (t *mapTable) noteGone(row unsafe.Pointer, id, owner uint32) {
	rows := &t.entries.rows
	if rows.track == nil || t.clears || rows.track.wasMade(rows.place(id)) {
		return
	}
	key, namespace := t.owners.keyBytes(t.owners.rows.at(owner))
	mapKey, _ := t.entries.keyBytes(row)
	t.base.gone.add(key, namespace, mapKey)
}

// noteCleared notes that a map is about to be removed.
func (t *mapTable) noteCleared(owner uint32) {
	rows := &t.owners.rows
	if rows.track == nil || rows.track.wasMade(rows.place(owner)) {
		return
	}
	t.base.gone.addMap(t.owners.keyBytes(rows.at(owner)))
}

// touchAround touches all that changes when a row is removed from its map.
func (t *mapTable) touchAround(id, owner uint32) error {
	if err := t.owners.rows.touch(owner); err != nil {
		return err
	}
	rows := &t.entries.rows
	if !rows.guarded() {
		return nil
	}
	l := *(*mapLinks)(rows.at(id))
	for _, row := range []uint32{id + 1, l.prev, l.next} {
		if row == 0 {
			continue
		}
		if err := rows.touch(row - 1); err != nil {
			return err
		}
	}
	return nil
}

// dropRow removes a row, whose page was touched and that no chain needs any more.
func (t *mapTable) dropRow(row unsafe.Pointer, id uint32) {
	t.cells.free(t.value(row))
	h, _ := t.entries.hashOfRow(row)
	t.entries.removeRow(h, id)
}

// dropOwner removes an empty map.
func (t *mapTable) dropOwner(owner uint32) {
	t.endWalks(owner)
	h, _ := t.owners.hashOfRow(t.owners.rows.at(owner))
	t.owners.removeRow(h, owner)
}

// endWalks ends the iterations over a map.
func (t *mapTable) endWalks(owner uint32) {
	for i := range t.walks {
		if w := &t.walks[i]; w.owner == owner {
			*w = walk{before: true, owner: noOwner}
		}
	}
}

// doom makes a large map unreachable at once and leaves its rows to upkeep.
func (t *mapTable) doom(i int, owner uint32) error {
	if err := t.owners.rows.touch(owner); err != nil {
		return err
	}
	t.endWalks(owner)
	t.noteCleared(owner)
	t.owners.detach(t.owners.hashOf(i), owner)
	t.doomed = append(t.doomed, owner)
	t.dead += int(t.headOf(owner).count)
	return nil
}

// bury drops some rows of doomed maps.
func (t *mapTable) bury() {
	for n := buryStep; n > 0 && len(t.doomed) > 0; n-- {
		last := len(t.doomed) - 1
		owner := t.doomed[last]
		id := t.headOf(owner).first - 1
		if t.owners.rows.touch(owner) != nil || t.entries.rows.touch(id) != nil {
			return // no memory for a copy: it can wait
		}
		head, row := t.headOf(owner), t.entries.rows.at(id)
		head.first = (*mapLinks)(row).next
		head.count--
		t.dead--
		t.dropRow(row, id)
		if head.count == 0 {
			t.doomed = t.doomed[:last]
			t.owners.rows.drop(owner)
			t.owners.rows.shrink(1)
		}
	}
}

// sweep drops the expired rows of a part.
func (t *mapTable) sweep() {
	parts := t.entries.parts()
	if t.stamp == 0 || parts == 0 {
		return
	}
	t.entries.scanRows(t.care.nextExpiry(parts), func(id uint32, row unsafe.Pointer) bool {
		_, suffix := t.entries.keyBytes(row)
		owner := *(*uint32)(unsafe.Pointer(&suffix[0]))
		if t.expired(row) && t.owners.rows.has(owner) { // not of a doomed map
			return t.drop(id, owner) == nil // else it can wait
		}
		return true
	})
}

// upkeep implements keeper.
func (t *mapTable) upkeep() {
	if !t.care.due(t.n) {
		return
	}
	t.bury()
	t.sweep()
	compact(t.cells.arena, &t.care.move, t.entries.parts(), func(part int) (err error) {
		if err := t.entries.touchPart(part); err != nil {
			return err
		}
		t.entries.scanRows(part, func(_ uint32, row unsafe.Pointer) bool {
			err = t.cells.move(t.value(row))
			return err == nil
		})
		return err
	})
	t.entries.compactTexts(&t.care.texts)
	t.owners.compactTexts(&t.texts)
}
