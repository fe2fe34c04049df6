package heap

import "unsafe"

// slots finds or inserts keys [from,to) of the run.
func (x *rowIndex) slots(from, to int, out []unsafe.Pointer, fresh []bool) error {
	out, fresh = out[:to-from], fresh[:to-from]
	if to-from == 1 {
		row, _, new, err := x.insert(from, x.hashOf(from))
		if err != nil {
			return err
		}
		out[0], fresh[0] = unsafe.Add(row, x.slotOff), new
		return nil
	}
	shifts := x.rows.shifts
	clear(fresh)
	for at := 0; at < len(out); at += block {
		part := out[at:min(at+block, len(out))]
		hashes := x.blockHashes(from+at, len(part))
		missed := x.match(from+at, hashes, part)
		if err := x.claim(hashes, part); err != nil {
			return err
		}
		for _, i := range missed {
			row, _, new, err := x.insert(from+at+int(i), hashes[i])
			if err != nil {
				return err
			}
			part[i], fresh[at+int(i)] = unsafe.Add(row, x.slotOff), new
		}
	}
	if x.rows.shifts != shifts { // rows are elsewhere
		return x.lookup(from, to, out, false)
	}
	return nil
}

// lookup implements index.
func (x *rowIndex) lookup(from, to int, out []unsafe.Pointer, own bool) error {
	shifts := x.rows.shifts
	out = out[:to-from]
	for at := 0; at < len(out); at += block {
		part := out[at:min(at+block, len(out))]
		hashes := x.blockHashes(from+at, len(part))
		missed := x.match(from+at, hashes, part)
		if own {
			if err := x.claim(hashes, part); err != nil {
				return err
			}
		}
		for _, i := range missed {
			row, w := x.search(from+at+int(i), hashes[i])
			if own && row != nil {
				var err error
				if row, err = x.claimFound(row, w, hashes[i]); err != nil {
					return err
				}
			}
			part[i] = x.slotOf(row)
		}
	}
	if x.rows.shifts != shifts { // rows are elsewhere
		return x.lookup(from, to, out, false)
	}
	return nil
}

func (x *rowIndex) slotOf(row unsafe.Pointer) unsafe.Pointer {
	if row == nil {
		return nil
	}
	return unsafe.Add(row, x.slotOff)
}

// match writes the slots of keys that are the first in their page with their tag to out, nil for others, and returns the positions
// of these. Each pass touches the memory that the next one reads: index words, rows, text.
func (x *rowIndex) match(from int, hashes []uint64, out []unsafe.Pointer) []uint16 {
	x.loadHomes(hashes)
	x.candidates(hashes, out)
	x.touchRows(out)
	if x.width == 0 {
		x.touchTexts(out)
		if !x.suffixed && x.src.canon.Width == 0 {
			return x.compareTexts(x.src.canon.Text[from:from+len(out)], out)
		}
	}
	m := 0
	for i, row := range out {
		if row != nil && x.same(row, from+i) {
			out[i] = unsafe.Add(row, x.slotOff)
			continue
		}
		out[i] = nil
		x.miss[m&(block-1)] = uint16(i)
		m++
	}
	return x.miss[:m]
}

// loadHomes reads the index word at each key's home.
func (x *rowIndex) loadHomes(hashes []uint64) {
	dir, shift := unsafe.Pointer(unsafe.SliceData(x.dir)), x.shift&63
	first := x.first[:len(hashes)]
	for i, h := range hashes {
		page := *(*unsafe.Pointer)(unsafe.Add(dir, uintptr(h>>shift)*unsafe.Sizeof(dir)))
		first[i] = *(*uint64)(unsafe.Add(page, uintptr(h&(pageSlots-1))*8))
	}
}

// candidates finds the first row with each key's tag, nil if there is none.
func (x *rowIndex) candidates(hashes []uint64, out []unsafe.Pointer) {
	first := x.first[:len(hashes)]
	out = out[:len(hashes)]
	for i, h := range hashes {
		w := first[i]
		if tagIn(w) != tagOf(h) && w != 0 {
			w = x.nextTagged(h)
			first[i] = w
		}
		if w == 0 {
			out[i] = nil
			continue
		}
		out[i] = x.rows.at(rowIn(w))
	}
}

// touchRows reads a byte of the key of each row. It is a loop of its own because the branches of candidates are often
// mispredicted, which would end the overlap of these reads.
func (x *rowIndex) touchRows(out []unsafe.Pointer) {
	var sum byte
	for _, row := range out {
		if row != nil {
			sum += *(*byte)(unsafe.Add(row, x.keyOff))
		}
	}
	x.touched = sum
}

// nextTagged is the first index word after the home that has the hash's tag, or 0.
func (x *rowIndex) nextTagged(h uint64) uint64 {
	mem, tag := x.dir[h>>(x.shift&63)], tagOf(h)
	for pos := h + 1; ; pos++ {
		w := word(mem, pos)
		if w == 0 || tagIn(w) == tag {
			return w
		}
	}
}

// word is an entry of an index page; pos is taken modulo the page.
func word(mem unsafe.Pointer, pos uint64) uint64 {
	return *(*uint64)(unsafe.Add(mem, uintptr(pos&(pageSlots-1))*8))
}

func setWord(mem unsafe.Pointer, pos, w uint64) {
	*(*uint64)(unsafe.Add(mem, uintptr(pos&(pageSlots-1))*8)) = w
}

// touchTexts finds the text of each row and reads a byte of it.
func (x *rowIndex) touchTexts(out []unsafe.Pointer) {
	at := x.at[:len(out)]
	for i, row := range out {
		at[i] = nil
		if row != nil {
			at[i], _ = x.textAt(row)
		}
	}
	var sum byte
	for _, p := range at {
		if p != nil {
			sum += *(*byte)(p)
		}
	}
	x.touched += sum
}

// compareTexts is the last pass of match for plain text keys, whose addresses touchTexts has left.
func (x *rowIndex) compareTexts(texts []string, out []unsafe.Pointer) []uint16 {
	at := x.at[:len(out)]
	texts = texts[:len(out)]
	m := 0
	for i, row := range out {
		if row != nil {
			s := texts[i]
			n := int(*(*uint64)(unsafe.Add(row, x.keyOff)) >> refBits)
			if n == len(s) && (n == 0 || unsafe.String((*byte)(at[i]), n) == s) {
				out[i] = unsafe.Add(row, x.slotOff)
				continue
			}
		}
		out[i] = nil
		x.miss[m&(block-1)] = uint16(i)
		m++
	}
	return x.miss[:m]
}
