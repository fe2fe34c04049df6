package heap

import "unsafe"

// This file is how rows of a snapshot get into indexes of values. Their keys are new ones as a rule, many come at once, and
// nobody else knows the index yet.

// load implements index. The values are written before the next entry moves, so that nobody has to look for them again.
func (x *wordIndex) load(from, to int, out []unsafe.Pointer) (n int, err error) {
	words, hashes := x.src.widen()[from:to], x.src.hashes[from:to]
	out = out[:len(words)]
	x.firstProbe(words, hashes, out) // brings the entries near
	for i, h := range hashes {
		if i > 0 && x.pages[x.ids[h>>(x.shift&63)]].n >= x.limit() {
			return i, nil
		}
		if out[i], _, err = x.insert(words[i], h); err != nil {
			return i, err
		}
	}
	return len(words), nil
}

// expect implements index.
func (x *rowIndex) expect(n int64) {
	x.directory.expect(n)
	x.rows.lots.begin(int(n))
}

// load implements index. Rows never move.
func (x *rowIndex) load(from, to int, out []unsafe.Pointer) (n int, err error) {
	hashes := x.blockHashes(from, to-from)
	x.loadHomes(hashes)
	for i, h := range hashes {
		row, err := x.enter(from+i, h)
		if err != nil {
			return i, err
		}
		out[i] = unsafe.Add(row, x.slotOff)
	}
	return len(hashes), nil
}

// enter finds or inserts key i of the run in one pass over its page.
func (x *rowIndex) enter(i int, h uint64) (row unsafe.Pointer, err error) {
	at, tag := h>>(x.shift&63), tagOf(h)
	mem, pos := x.dir[at], h
	for w := word(mem, pos); w != 0; w = word(mem, pos) {
		if tagIn(w) == tag {
			if row = x.rows.at(rowIn(w)); x.same(row, i) {
				return row, nil
			}
		}
		pos++
	}
	p := &x.pages[x.ids[at]]
	if p.n >= x.limit() {
		row, _, _, err = x.insert(i, h)
		return row, err
	}
	id, row, ok := uint32(0), unsafe.Pointer(nil), false
	if x.width == 8 && !x.suffixed {
		if id, row, ok = x.rows.append(x.src.hashes[i]); ok {
			c := &x.src.canon
			*(*uint64)(unsafe.Add(row, x.keyOff)) = *(*uint64)(unsafe.Add(c.P, uintptr(i)*c.Stride))
		}
	}
	if !ok {
		if id, row, err = x.makeRow(i); err != nil {
			return nil, err
		}
	}
	setWord(mem, pos, indexWord(tag, x.epoch, id))
	p.n++
	x.n++
	return row, nil
}
