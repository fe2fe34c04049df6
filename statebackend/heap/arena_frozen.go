package heap

import "slices"

// freeze begins a snapshot and gives what it reads records by.
func (a *arena) freeze() *arena {
	for i := range a.chunks {
		c := &a.chunks[i]
		c.frozen = uint32(c.size)
	}
	if a.end > 0 {
		a.chunks[a.cur].frozen = uint32(a.off)
	}
	return &arena{reach: slices.Clone(a.reach)}
}

// frozen says whether an open snapshot may need a record.
func (a *arena) frozen(r ref) bool {
	return len(a.ledger.store.open) > 0 && uint32(r&(1<<refOffsetBits-1))<<3 < a.chunks[r>>refOffsetBits].frozen
}

// renew copies a record of n bytes that a snapshot or a compaction holds fast, so that it can be changed; others stay.
func (a *arena) renew(r ref, n int) (ref, error) {
	old := a.chunks[r>>refOffsetBits].old
	if !old && !a.frozen(r) {
		return r, nil
	}
	to, err := a.make(n)
	if err != nil {
		return r, err
	}
	copyBytes(a.at(to), a.at(r), uintptr(n))
	if old {
		_, room := roomOf(n)
		a.live -= int64(room)
		a.credit -= int64(room)
	} else {
		a.drop(r, n)
	}
	return to, nil
}

const (
	freedBytes = 16
	// freeStep is the number of records whose room becomes usable in a step.
	freeStep = 1024
)

// freeLater notes a freed record that an open snapshot may need. If there is no memory for the note, its room is garbage
// for the next compaction.
func (a *arena) freeLater(r ref, n int) {
	if len(a.later) == cap(a.later) {
		grown := max(64, 2*(len(a.later)-a.settled))
		if a.ledger.reserve(int64(grown)*freedBytes) != nil {
			return
		}
		later := append(make([]freed, 0, grown), a.later[a.settled:]...)
		a.ledger.release(int64(cap(a.later)) * freedBytes)
		a.later, a.settled = later, 0
	}
	open := a.ledger.store.open
	a.later = append(a.later, freed{ref: r, n: uint32(n), last: uint32(open[len(open)-1].id)})
}

// settle makes the room of some records usable that were freed for snapshots that have been released since.
func (a *arena) settle() {
	open := a.ledger.store.open
	for range freeStep {
		if a.settled == len(a.later) {
			a.forgetFreed()
			return
		}
		l := a.later[a.settled]
		if len(open) > 0 && int32(l.last-uint32(open[0].id)) >= 0 {
			return
		}
		class, _ := roomOf(int(l.n))
		a.chain(l.ref, class)
		a.settled++
	}
}

// forgetFreed drops the notes of freed records.
func (a *arena) forgetFreed() {
	a.ledger.release(int64(cap(a.later)) * freedBytes)
	a.later, a.settled = nil, 0
}
