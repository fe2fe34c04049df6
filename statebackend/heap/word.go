package heap

import (
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

const (
	wordBytes = 8
	// widestWordEntry is the entry size up to which values lie beside their keys; wider ones go to a rowIndex, whose
	// rows are not kept partly empty.
	widestWordEntry = 64
)

// wordIndex is a hash table of keys of up to 8 bytes. A page is an array of entries {key word, slot}; word 0 means empty,
// and the key 0 has an entry of its own. The low bits of the hash choose a home entry. Entries are grouped by cache
// line (ways of them); an entry lies in the group of its home or, if all groups between are full, in a later one. So a
// search ends at the first group with an empty entry.
type wordIndex struct {
	directory
	src   *source
	key   *serde.Key
	seed  uint64
	ahead *lookahead // emptied when entries move
	size  uintptr    // bytes of an entry
	ways  uint64
	mask  uint64 // pageSlots - 1, less for wide entries
	per   uint64 // 2^32 / size, rounded up

	zero    unsafe.Pointer // the entry of key 0
	hasZero bool

	moves   uint64 // counts what invalidates addresses
	touched byte   // keeps the compiler from dropping the touch pass
	miss    [block]uint16
	hashes  []uint64 // of a page that is being split
	dead    []uint64 // of a page that is being swept
}

func newWordIndex(l *ledger, slot uintptr, ahead *lookahead) (*wordIndex, error) {
	s := l.store
	x := &wordIndex{src: &s.run, key: s.Key, seed: s.Seed, ahead: ahead, size: wordBytes + slot, ways: 1}
	for x.ways < 4 && uintptr(x.ways)*2*x.size <= 64 {
		x.ways *= 2
	}
	x.deepest = maxDepth
	if err := x.openPages(l, slotsPerPage(x.size), x.size); err != nil {
		return nil, err
	}
	x.mask = uint64(x.perPage) - 1
	x.per = (1<<32 + uint64(x.size) - 1) / uint64(x.size)
	x.zero = memory(x.size)
	return x, nil
}

func (x *wordIndex) length() int { return x.n + one(x.hasZero) }

func (x *wordIndex) moved() {
	x.moves++
	x.ahead.forget()
}

// slots finds or inserts keys [from,to) of the run.
func (x *wordIndex) slots(from, to int, out []unsafe.Pointer, fresh []bool) error {
	words, hashes := x.src.widen()[from:to], x.src.hashes[from:to]
	out, fresh = out[:len(words)], fresh[:len(words)]
	if len(words) == 1 {
		var err error
		if out[0], fresh[0], err = x.insert(words[0], hashes[0]); err != nil {
			return err
		}
		return x.claim(from, to, out)
	}
	moves := x.moves
	clear(fresh)
	for at := 0; at < len(words); at += block {
		end := min(at+block, len(words))
		for _, i := range x.firstProbe(words[at:end], hashes[at:end], out[at:end]) {
			j := at + int(i)
			p, new, err := x.insert(words[j], hashes[j])
			if err != nil {
				return err
			}
			out[j], fresh[j] = p, new
		}
	}
	if x.moves != moves {
		if err := x.lookup(from, to, out, false); err != nil {
			return err
		}
	}
	return x.claim(from, to, out)
}

// claim makes the slots of keys [from,to) ones that may be written to, and notes that they change; nil stays nil.
func (x *wordIndex) claim(from, to int, out []unsafe.Pointer) error {
	for x.guarded() || x.track != nil {
		shifts := x.shifts
		if err := x.claimAll(x.src.hashes[from:to], out); err != nil {
			return err
		}
		if x.shifts == shifts {
			break
		}
		x.moves++
		if err := x.lookup(from, to, out, false); err != nil { // some are elsewhere
			return err
		}
	}
	return nil
}

// posOf is the position of an entry in its page.
func (x *wordIndex) posOf(mem, e unsafe.Pointer) uint64 {
	return uint64(uintptr(e)-uintptr(mem)) * x.per >> 32
}

// claimAll touches the entries of keys with these hashes and notes that they change, until a page is replaced.
func (x *wordIndex) claimAll(hashes []uint64, slots []unsafe.Pointer) error {
	t, marked, guarded, shifts := x.track, x.marked(), x.guarded(), x.shifts
	slots = slots[:len(hashes)]
	for i, h := range hashes {
		if slots[i] == nil {
			continue
		}
		at, e := h>>(x.shift&63), unsafe.Add(slots[i], -wordBytes)
		if e == x.zero {
			if t != nil {
				t.zeroChanged = true
			}
			continue
		}
		id, pos := x.ids[at], x.posOf(x.dir[at], e)
		if marked && t.changed.has(id, pos) { // it was touched then
			continue
		}
		if guarded && (marked || !x.preserved(int(id), int(pos))) {
			if err := x.touch(id, pos); err != nil {
				return err
			}
		}
		if t != nil {
			t.mark(id, pos)
		}
		if x.shifts != shifts {
			break
		}
	}
	return nil
}

// lookup implements index.
func (x *wordIndex) lookup(from, to int, out []unsafe.Pointer, own bool) error {
	words, hashes := x.src.widen()[from:to], x.src.hashes[from:to]
	out = out[:len(words)]
	for at := 0; at < len(words); at += block {
		end := min(at+block, len(words))
		for _, i := range x.firstProbe(words[at:end], hashes[at:end], out[at:end]) {
			j := at + int(i)
			out[j] = x.search(words[j], hashes[j])
		}
	}
	if own {
		return x.claim(from, to, out)
	}
	return nil
}

// firstProbe writes the slot of each key's home entry to out and returns the positions of keys that are not there.
// First all home lines are touched, so that the processor waits for many at once; then they are compared without a
// branch, which it would mispredict for a third of the keys.
func (x *wordIndex) firstProbe(words, hashes []uint64, out []unsafe.Pointer) []uint16 {
	if x.size == 16 {
		return x.firstProbe16(words, hashes, out)
	}
	dir, shift, mask, size := x.dir, x.shift&63, x.mask, x.size
	out = out[:len(hashes)]
	var sum byte
	for i, h := range hashes {
		e := unsafe.Add(dir[h>>shift], uintptr(h&mask)*size)
		sum += *(*byte)(e)
		out[i] = e
	}
	x.touched = sum
	return x.compare(words, out)
}

// firstProbe16 is firstProbe for entries of 16 bytes, the keyed counts of this world.
func (x *wordIndex) firstProbe16(words, hashes []uint64, out []unsafe.Pointer) []uint16 {
	dir, shift := unsafe.Pointer(unsafe.SliceData(x.dir)), x.shift&63
	out = out[:len(hashes)]
	var sum byte
	for i, h := range hashes {
		page := *(*unsafe.Pointer)(unsafe.Add(dir, uintptr(h>>shift)*unsafe.Sizeof(dir)))
		e := unsafe.Add(page, uintptr(h&(pageSlots-1))*16)
		sum += *(*byte)(e)
		out[i] = e
	}
	x.touched = sum
	return x.compare(words, out)
}

func (x *wordIndex) compare(words []uint64, out []unsafe.Pointer) []uint16 {
	miss, m := &x.miss, 0
	out = out[:len(words)]
	for i, k := range words {
		e := out[i]
		miss[m&(block-1)] = uint16(i)
		m += one(*(*uint64)(e) != k) | one(k == 0)
		out[i] = unsafe.Add(e, wordBytes)
	}
	return miss[:m]
}

// find gives the slot of key i of the run, or nil.
func (x *wordIndex) find(i int) unsafe.Pointer { return x.search(x.src.widen()[i], x.src.hashes[i]) }

func (x *wordIndex) search(k, h uint64) unsafe.Pointer {
	if k == 0 {
		if x.hasZero {
			return unsafe.Add(x.zero, wordBytes)
		}
		return nil
	}
	if e, found := x.probe(x.dir[h>>(x.shift&63)], k, h); found {
		return unsafe.Add(e, wordBytes)
	}
	return nil
}

// probe looks for key k in a page: its entry, or the empty entry where it belongs.
func (x *wordIndex) probe(mem unsafe.Pointer, k, h uint64) (e unsafe.Pointer, found bool) {
	home := unsafe.Add(mem, uintptr(h&x.mask)*x.size)
	if *(*uint64)(home) == k {
		return home, true
	}
	for group := h & x.mask &^ (x.ways - 1); ; group = (group + x.ways) & x.mask {
		var hole unsafe.Pointer
		for j := group; j < group+x.ways; j++ {
			e := unsafe.Add(mem, uintptr(j)*x.size)
			switch *(*uint64)(e) {
			case k:
				return e, true
			case 0:
				hole = e
			}
		}
		if hole != nil {
			if *(*uint64)(home) == 0 {
				return home, false
			}
			return hole, false
		}
	}
}

// insert finds or inserts one key.
func (x *wordIndex) insert(k, h uint64) (slot unsafe.Pointer, fresh bool, err error) {
	if k == 0 {
		fresh, x.hasZero = !x.hasZero, true
		if t := x.track; t != nil && fresh {
			t.zeroChanged, t.zeroMade = true, true
		}
		return unsafe.Add(x.zero, wordBytes), fresh, nil
	}
	for {
		at := h >> (x.shift & 63)
		e, found := x.probe(x.dir[at], k, h)
		if found {
			return unsafe.Add(e, wordBytes), false, nil
		}
		if p := &x.pages[x.ids[at]]; p.n < x.limit() {
			if x.guarded() {
				shifts := x.shifts
				if err := x.touch(x.ids[at], x.posOf(x.dir[at], e)); err != nil {
					return nil, false, err
				}
				if x.shifts != shifts {
					x.moves++
					continue
				}
			}
			p.n++
			x.n++
			*(*uint64)(e) = k
			if x.track != nil {
				x.track.make(x.ids[at], x.posOf(x.dir[at], e))
			}
			return unsafe.Add(e, wordBytes), true, nil
		}
		if err := x.splitPage(h); err != nil {
			return nil, false, err
		}
	}
}

// splitPage moves half of the entries of the hash's page to a new one.
func (x *wordIndex) splitPage(h uint64) error {
	if err := x.touchPage(x.ids[h>>(x.shift&63)]); err != nil {
		return err
	}
	low, high, err := x.split(h)
	if err != nil {
		return err
	}
	x.moved()
	a, b := &x.pages[low], &x.pages[high]
	old := unsafe.Pointer(unsafe.SliceData(x.ledger.store.spareWords(int(x.bytes / 8))))
	copyBytes(old, a.mem, x.bytes)
	clearBytes(a.mem, x.bytes)
	if x.hashes == nil {
		x.hashes = make([]uint64, x.perPage)
	}
	x.key.Hash(&serde.Canon{Width: x.key.Width, P: old, Stride: x.size, N: x.perPage}, x.seed, x.hashes)
	bit := 64 - a.depth
	a.n, b.n = 0, 0
	moved := x.liftBits(low)
	for i, h := range x.hashes {
		e := unsafe.Add(old, uintptr(i)*x.size)
		k := *(*uint64)(e)
		if k == 0 {
			continue
		}
		to, id := a, low
		if h>>bit&1 != 0 {
			to, id = b, high
		}
		hole, _ := x.probe(to.mem, k, h)
		copyBytes(hole, e, x.size)
		to.n++
		moved.put(uint64(i), id, x.posOf(to.mem, hole))
	}
	return nil
}

// liftedBits are what is noted of a page's entries while they move.
type liftedBits struct {
	track         *tracker // nil: nothing
	changed, made [pageSlots / 64]uint64
}

// liftBits takes what is noted of a page's entries out of the tracker.
func (x *wordIndex) liftBits(page uint32) (l liftedBits) {
	if x.track == nil {
		return l
	}
	l.track = x.track
	for w := range uint64((x.perPage + 63) / 64) {
		l.changed[w] = *bitsAt(x.track.changed.bitmap(int(page)), w)
		l.made[w] = *bitsAt(x.track.made.bitmap(int(page)), w)
	}
	for i := range uint64(x.perPage) {
		x.track.forget(page, i)
	}
	return l
}

// put notes of an entry at its new place what was noted at the old one.
func (l *liftedBits) put(from uint64, page uint32, pos uint64) {
	switch {
	case l.track == nil:
	case l.made[from/64]>>(from%64)&1 != 0:
		l.track.make(page, pos)
	case l.changed[from/64]>>(from%64)&1 != 0:
		l.track.mark(page, pos)
	}
}

// touchPart implements index.
func (x *wordIndex) touchPart(part int) error { return x.touchPage(uint32(part)) }

// own implements index.
func (x *wordIndex) own(i int, slot unsafe.Pointer) (unsafe.Pointer, error) {
	out := [1]unsafe.Pointer{slot}
	err := x.claim(i, i+1, out[:])
	return out[0], err
}

// ownWhole implements index.
func (x *wordIndex) ownWhole(i int, slot unsafe.Pointer) (unsafe.Pointer, error) {
	if !x.guarded() {
		return slot, nil
	}
	err := x.touchPage(x.ids[x.src.hashes[i]>>(x.shift&63)])
	return x.find(i), err
}

// follow implements index.
func (x *wordIndex) follow(ahead *lookahead) { x.guard.ahead = ahead }

// freeze implements index.
func (x *wordIndex) freeze(f *frozen, c *changes) *leaf {
	mem := make([]unsafe.Pointer, len(x.pages))
	for i := range x.pages {
		mem[i] = x.pages[i].mem
	}
	shape := pageShape{size: x.size, slots: x.perPage, bytes: x.bytes}.withUnits()
	l := newLeaf(f, newShadow(f, &x.guard, shape, mem, c.only()), keyLayout{width: x.key.Width, slotOff: wordBytes}, x.key)
	if x.hasZero && (c == nil || c.trackers[0].zeroChanged) {
		l.zero = memory(x.size)
		copyWords(l.zero, x.zero, x.size)
	}
	return l
}

// tracked implements index.
func (x *wordIndex) tracked() tracked { return tracked{&x.guard, x.perPage} }

// remove implements index.
func (x *wordIndex) remove(i int, slot unsafe.Pointer) { x.removeAt(x.src.hashes[i], slot) }

// removeAt removes the entry of a slot whose key has hash h.
func (x *wordIndex) removeAt(h uint64, slot unsafe.Pointer) {
	x.moved()
	e := unsafe.Add(slot, -wordBytes)
	if *(*uint64)(e) == 0 {
		if t := x.track; t != nil {
			if !t.zeroMade {
				t.gone.add(x.keyBytes(e), nil, nil)
			}
			t.zeroChanged, t.zeroMade = false, false
		}
		x.hasZero = false
		clearBytes(x.zero, x.size)
		return
	}
	at := h >> (x.shift & 63)
	mem := x.dir[at]
	x.pages[x.ids[at]].n--
	x.n--
	pos := x.posOf(mem, e)
	if t := x.track; t != nil && !t.forget(x.ids[at], pos) {
		t.gone.add(x.keyBytes(e), nil, nil)
	}
	x.closeHole(mem, x.ids[at], pos)
	x.shrink()
}

// closeHole empties the entry at position pos and restores the rule that an entry outside of its home group has only
// full groups before it: the first entry of a later group that could lie in the hole's group moves there, and leaves a
// hole of its own.
func (x *wordIndex) closeHole(mem unsafe.Pointer, page uint32, pos uint64) {
	for {
		hole := unsafe.Add(mem, uintptr(pos)*x.size)
		group := pos &^ (x.ways - 1)
		open := false
		for j := group; j < group+x.ways; j++ {
			open = open || j != pos && x.at(mem, j) == 0
		}
		clearBytes(hole, x.size)
		if open {
			return // nobody went past this group
		}
		from, ok := x.passedOver(mem, group)
		if !ok {
			return
		}
		copyBytes(hole, unsafe.Add(mem, uintptr(from)*x.size), x.size)
		if x.track != nil {
			x.track.moved(page, from, pos)
		}
		pos = from
	}
}

// passedOver finds the first entry after a group whose home is that group or one before it.
func (x *wordIndex) passedOver(mem unsafe.Pointer, group uint64) (pos uint64, ok bool) {
	for next := (group + x.ways) & x.mask; next != group; next = (next + x.ways) & x.mask {
		full := true
		for j := next; j < next+x.ways; j++ {
			k := x.at(mem, j)
			if k == 0 {
				full = false
				continue
			}
			home := x.hashAt(mem, j) & x.mask &^ (x.ways - 1)
			if (next-home)&x.mask >= (next-group)&x.mask {
				return j, true
			}
		}
		if !full {
			return 0, false
		}
	}
	return 0, false
}

func (x *wordIndex) at(mem unsafe.Pointer, pos uint64) uint64 {
	return *(*uint64)(unsafe.Add(mem, uintptr(pos)*x.size))
}

func (x *wordIndex) hashAt(mem unsafe.Pointer, pos uint64) uint64 {
	return x.key.HashOne(x.keyBytes(unsafe.Add(mem, uintptr(pos)*x.size)), x.seed)
}

func (x *wordIndex) keyBytes(e unsafe.Pointer) []byte { return bytesAt(e, x.key.Width) }

func (x *wordIndex) setSuffix([]byte) {} // tables with a namespace are rowIndexes

func (x *wordIndex) parts() int { return len(x.pages) }

// scan implements index; a part is a page, and the zero key comes with page 0.
func (x *wordIndex) scan(part int, f func(e *entry) bool) bool {
	var e entry
	show := func(p unsafe.Pointer) bool {
		e.key, e.slot = x.keyBytes(p), unsafe.Add(p, wordBytes)
		return f(&e)
	}
	if part == 0 && x.hasZero && !show(x.zero) {
		return false
	}
	mem := x.pages[part].mem
	for i := range x.perPage {
		p := unsafe.Add(mem, uintptr(i)*x.size)
		if *(*uint64)(p) != 0 && !show(p) {
			return false
		}
	}
	return true
}

// sweep implements index. Removing moves entries of the page, so the dead are listed first.
func (x *wordIndex) sweep(part int, dead func(slot unsafe.Pointer) bool, release func(slot unsafe.Pointer)) {
	list := x.dead[:0]
	x.scan(part, func(e *entry) bool {
		if dead(e.slot) {
			list = append(list, *(*uint64)(unsafe.Add(e.slot, -wordBytes)))
		}
		return true
	})
	x.dead = list
	if len(list) > 0 && x.touchPage(uint32(part)) != nil {
		return // no memory for copies: it can wait
	}
	for i := range list {
		k := list[i]
		h := x.key.HashOne(bytesAt(unsafe.Pointer(&list[i]), x.key.Width), x.seed)
		slot := x.search(k, h)
		release(slot)
		x.removeAt(h, slot)
	}
}

func (x *wordIndex) close() {
	x.directory.drop()
	x.hasZero = false
}
