package heap

import "unsafe"

// An index word of a rowIndex is {tag, epoch, row number plus one}; 0 means that there is none.
//
// The tag keeps the hash bits that choose pages and those that choose the home in a page, so that splitting pages and closing
// holes look at no key.
//
// The epoch says which rows are claimed. It begins anew at each Freeze of the index: a row whose word has the current epoch was
// touched since then for all snapshots that are open, as none of them began later, and its change is noted, if changes are. So
// whoever is about to change a row need do neither, and knows from the word that it has found the row by. Epochs are few and come
// again, so that words must not keep one until then: see advance.
const (
	rowBits     = 29
	epochBits   = 6
	tagLowBits  = 11 // log2(pageSlots)
	tagHighBits = 64 - rowBits - epochBits - tagLowBits

	epochMask = (1<<epochBits - 1) << rowBits
	// epochs is the number of epochs that a row may be claimed in. A word with none has 0.
	epochs = 1<<epochBits - 1
	// resetSteps is the number of epochs in which each page's turn to lose its claims comes once: less than there are, so that few
	// pages have to be seen to at the last moment.
	resetSteps = epochs - 3
)

// tagOf keeps high bits and low bits of a hash.
func tagOf(h uint64) uint64 { return h>>(64-tagHighBits)<<tagLowBits | h&(1<<tagLowBits-1) }

// indexWord makes a word for a row.
func indexWord(tag, epoch uint64, id uint32) uint64 {
	return tag<<(rowBits+epochBits) | epoch<<rowBits | uint64(id+1)
}

// tagIn is the tag of a word. Its low bits are the home.
func tagIn(w uint64) uint64 { return w >> (rowBits + epochBits) }

// epochIn is the epoch that a word's row was claimed in, 0 for none.
func epochIn(w uint64) uint64 { return w & epochMask >> rowBits }

// withEpoch is a word with another epoch.
func withEpoch(w, epoch uint64) uint64 { return w&^epochMask | epoch<<rowBits }

// rowIn is the number of a word's row.
func rowIn(w uint64) uint32 { return uint32(w&(1<<rowBits-1)) - 1 }

// advance begins the next epoch: no row is claimed. It drops old claims, a share of the pages each time, before their epoch comes
// again.
//
// A page's since is the epoch that began when no word of the page was claimed, so that all its claims are of that epoch or later
// ones. Words change pages only when these split, and both halves keep it. When it is about to come again, the claims go. Mostly
// they went before: in turn, one page of sixty loses them each time.
func (x *rowIndex) advance() {
	x.epoch = x.epoch%epochs + 1
	first, share := x.nextReset, len(x.pages)/resetSteps+1
	for i := range x.pages {
		if p := &x.pages[i]; p.since == uint8(x.epoch) || uint(i-first) < uint(share) {
			dropClaims(p.mem)
			p.since = uint8(x.epoch)
		}
	}
	if x.nextReset += share; x.nextReset >= len(x.pages) {
		x.nextReset = 0
	}
}

// dropClaims takes the epochs from the words of a page. It writes to few of its lines if few rows are claimed.
func dropClaims(mem unsafe.Pointer) {
	const line = cacheLine / 8
	for words := unsafe.Slice((*uint64)(mem), pageSlots); len(words) >= line; words = words[line:] {
		l := (*[line]uint64)(words)
		if (l[0]|l[1]|l[2]|l[3]|l[4]|l[5]|l[6]|l[7])&epochMask == 0 {
			continue
		}
		for i := range l {
			l[i] &^= epochMask
		}
	}
}

// claim makes the rows whose slots match has found, for keys of these hashes, ones that may be written to, and notes that they
// change. Where few keys get most updates, most are such ones already.
func (x *rowIndex) claim(hashes []uint64, slots []unsafe.Pointer) error {
	if x.rows.track == nil && !x.rows.guarded() {
		return nil
	}
	list := x.listUnclaimed(slots)
	if x.rows.guarded() {
		x.bringNear(slots, list)
	}
	for _, i := range list {
		if err := x.claimRow(hashes[i], rowIn(x.first[i])); err != nil {
			return err
		}
	}
	return nil
}

// listUnclaimed gives the positions of slots, nil ones aside, of rows that are not claimed.
func (x *rowIndex) listUnclaimed(slots []unsafe.Pointer) []uint16 {
	n, epoch := 0, x.epoch
	first, list := x.first[:len(slots)], &x.unclaimed
	for i, w := range first {
		list[n&(block-1)] = uint16(i)
		n += one(slots[i] != nil) & one(epochIn(w) != epoch)
	}
	return list[:n]
}

// bringNear reads a byte of all that touching these rows reads or writes, as far as it is not one behind the other: the processor
// waits for much of it at once.
func (x *rowIndex) bringNear(slots []unsafe.Pointer, list []uint16) {
	var sum byte
	last := x.rows.size - 1
	for _, i := range list {
		row := unsafe.Add(slots[i], -int(x.slotOff))
		for off := uintptr(0); off < last; off += cacheLine {
			sum += *(*byte)(unsafe.Add(row, off))
		}
		page, pos := x.rows.place(rowIn(x.first[i]))
		sum += *(*byte)(unsafe.Add(row, last)) + x.rows.look(int(page), int(pos))
	}
	x.touched = sum
}

// claimFound claims the row of a word that search has found for hash h, and gives its address, which may be another one then.
func (x *rowIndex) claimFound(row unsafe.Pointer, w, h uint64) (unsafe.Pointer, error) {
	if epochIn(w) == x.epoch || x.rows.track == nil && !x.rows.guarded() {
		return row, nil
	}
	err := x.claimRow(h, rowIn(w))
	return x.rows.at(rowIn(w)), err
}

// claimRow makes a row, whose key has hash h, one that may be written to, and notes that it changes. After an error it is not
// claimed.
func (x *rowIndex) claimRow(h uint64, id uint32) error {
	if err := x.rows.touch(id); err != nil {
		return err
	}
	x.rows.mark(id)
	mem, pos := x.dir[h>>(x.shift&63)], x.posOf(h, id)
	setWord(mem, pos, withEpoch(word(mem, pos), x.epoch))
	return nil
}

// posOf is the position of the index word of a row, whose key has hash h, in its page.
func (x *rowIndex) posOf(h uint64, id uint32) uint64 {
	mem, pos := x.dir[h>>(x.shift&63)], h
	for rowIn(word(mem, pos)) != id {
		pos++
	}
	return pos
}
