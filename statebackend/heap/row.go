package heap

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// rowIndex is a hash table of keys of any width, each with an optional suffix (a namespace, or the number of the map
// that a map key belongs to). Keys and values are rows of a slab and never move; a page is an array of index words, see
// row_word.go, probed one by one.
//
// A row is {head, key, slot}: the head belongs to the owner; the key is its bytes and the suffix's, or for keys of
// varying width a reference to them.
type rowIndex struct {
	directory
	keyLayout
	rows slab
	src  *source
	key  *serde.Key
	seed uint64

	suffix     []byte // of the keys that calls mean
	suffixHash uint64
	hashSuffix func(suffix []byte) uint64

	touched   byte
	nextReset int // the page whose claims advance drops next

	hashes    [block]uint64
	first     [block]uint64         // the first index word with each key's tag
	at        [block]unsafe.Pointer // texts or rows; it may keep dropped memory alive until the next run
	miss      [block]uint16
	unclaimed [block]uint16 // found, and to be claimed
}

// keyLayout says where the keys lie in rows.
type keyLayout struct {
	width       uintptr // of a key; 0: keys are text
	suffixed    bool
	suffixWidth uintptr // 0: varying, then the suffix ends with its own length in 4 bytes
	keyOff      uintptr
	slotOff     uintptr
	texts       *arena // of text keys
}

// rowShape says what a rowIndex keeps beside keys.
type rowShape struct {
	head, slot uintptr
	key        *serde.Key
	src        *source
	suffix     *serde.Key // namespace; nil without
	owner      bool       // the suffix is the number of an owner, 4 bytes
}

const (
	// textLenBits is what a key reference has for the length.
	textLenBits = 64 - refBits
	maxText     = 1<<textLenBits - 1
	lengthBytes = 4
	ownerBytes  = 4
)

func newRowIndex(l *ledger, shape rowShape) (*rowIndex, error) {
	x := &rowIndex{src: shape.src, key: shape.key, seed: l.store.Seed}
	x.width, x.keyOff = shape.key.Width, shape.head
	switch {
	case shape.owner:
		x.suffixed, x.suffixWidth = true, ownerBytes
		x.hashSuffix = func(b []byte) uint64 { return uint64(*(*uint32)(unsafe.Pointer(&b[0]))) * 0x9e3779b97f4a7c15 }
	case shape.suffix != nil:
		ns, seed := shape.suffix, x.seed
		x.suffixed, x.suffixWidth = true, ns.Width
		x.hashSuffix = func(b []byte) uint64 { return ns.HashOne(b, seed) }
		if ns.Width == 0 {
			x.width = 0
		}
	}
	keyBytes := uintptr(8)
	if x.width == 0 {
		x.texts = newArena(l, false)
	} else {
		keyBytes = roundUp(x.width + x.suffixWidth)
	}
	x.slotOff = x.keyOff + keyBytes
	x.rows = newSlab(l, x.slotOff+shape.slot)
	x.deepest, x.epoch = tagHighBits, 1
	return x, x.openPages(l, pageSlots, 8)
}

func (x *rowIndex) length() int { return x.n }

// setSuffix selects the suffix that calls mean by its canonical bytes, which are copied.
func (x *rowIndex) setSuffix(b []byte) {
	x.suffix = append(x.suffix[:0], b...)
	if x.suffixWidth == 0 {
		n := uint32(len(b))
		x.suffix = append(x.suffix, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	x.suffixHash = x.hashSuffix(b)
}

// bareSuffix is the suffix as it was set.
func (x *rowIndex) bareSuffix() []byte {
	if x.suffixWidth == 0 && x.suffixed {
		return x.suffix[:len(x.suffix)-lengthBytes]
	}
	return x.suffix
}

// setOwner selects an owner's number as the suffix.
func (x *rowIndex) setOwner(id uint32) {
	if len(x.suffix) == 0 {
		x.suffix = make([]byte, ownerBytes)
	}
	*(*uint32)(unsafe.Pointer(&x.suffix[0])) = id
	x.suffixHash = x.hashSuffix(x.suffix)
}

// combine makes one hash of a key's and a suffix's.
func combine(key, suffix uint64) uint64 {
	hi, lo := bits.Mul64(key^0x9e3779b97f4a7c15, bits.RotateLeft64(key, 32)^suffix)
	return hi ^ lo
}

func (x *rowIndex) hashOf(i int) uint64 {
	h := x.src.hashes[i]
	if x.suffixed {
		h = combine(h, x.suffixHash)
	}
	return h
}

// blockHashes gives the hashes of keys [from,from+n).
func (x *rowIndex) blockHashes(from, n int) []uint64 {
	if !x.suffixed {
		return x.src.hashes[from : from+n]
	}
	out := x.hashes[:n]
	for i, h := range x.src.hashes[from : from+n] {
		out[i] = combine(h, x.suffixHash)
	}
	return out
}

// text views key i as a string.
func (x *rowIndex) text(i int) string {
	c := &x.src.canon
	if c.Width == 0 {
		return c.Text[i]
	}
	return unsafe.String((*byte)(unsafe.Add(c.P, uintptr(i)*c.Stride)), c.Width)
}

// textAt gives the address and length of a row's text key, nil if it is empty.
func (k *keyLayout) textAt(row unsafe.Pointer) (unsafe.Pointer, int) {
	w := *(*uint64)(unsafe.Add(row, k.keyOff))
	n := int(w >> refBits)
	if n == 0 {
		return nil, 0
	}
	return k.texts.at(ref(w & (1<<refBits - 1))), n
}

// same says whether the row's key is key i of the run.
func (x *rowIndex) same(row unsafe.Pointer, i int) bool {
	if x.width == 0 {
		return x.sameText(row, i)
	}
	c := &x.src.canon
	p, q := unsafe.Add(row, x.keyOff), unsafe.Add(c.P, uintptr(i)*c.Stride)
	if x.width == 8 {
		if *(*uint64)(p) != *(*uint64)(q) {
			return false
		}
	} else if !equalBytes(p, q, x.width) {
		return false
	}
	return !x.suffixed || equalBytes(unsafe.Add(p, x.width), unsafe.Pointer(unsafe.SliceData(x.suffix)), x.suffixWidth)
}

func (x *rowIndex) sameText(row unsafe.Pointer, i int) bool {
	p, n := x.textAt(row)
	s := x.text(i)
	if n != len(s)+len(x.suffix) {
		return false
	}
	if n == 0 {
		return true
	}
	b := unsafe.String((*byte)(p), n)
	return b[:len(s)] == s && b[len(s):] == string(x.suffix)
}

// find gives the slot of key i of the run, or nil.
func (x *rowIndex) find(i int) unsafe.Pointer {
	row, _ := x.locate(i, x.hashOf(i))
	return x.slotOf(row)
}

// locate gives the row of key i of the run, or nil.
func (x *rowIndex) locate(i int, h uint64) (unsafe.Pointer, uint32) {
	row, w := x.search(i, h)
	return row, rowIn(w)
}

// search gives the row of key i of the run and its index word, or nil and 0.
func (x *rowIndex) search(i int, h uint64) (row unsafe.Pointer, w uint64) {
	mem, tag := x.dir[h>>(x.shift&63)], tagOf(h)
	for pos := h; ; pos++ {
		if w = word(mem, pos); w == 0 {
			return nil, 0
		}
		if tagIn(w) == tag {
			if row = x.rows.at(rowIn(w)); x.same(row, i) {
				return row, w
			}
		}
	}
}

// insert finds or inserts key i of the run and touches its row.
func (x *rowIndex) insert(i int, h uint64) (row unsafe.Pointer, id uint32, fresh bool, err error) {
	if row, w := x.search(i, h); row != nil {
		row, err = x.claimFound(row, w, h)
		return row, rowIn(w), false, err
	}
	for x.pages[x.ids[h>>(x.shift&63)]].n >= x.limit() {
		if err := x.splitPage(h); err != nil {
			return nil, 0, false, err
		}
	}
	if id, row, err = x.makeRow(i); err != nil {
		return nil, 0, false, err
	}
	at := h >> (x.shift & 63)
	place(x.dir[at], indexWord(tagOf(h), x.epoch, id))
	x.pages[x.ids[at]].n++
	x.n++
	return row, id, true, nil
}

// makeRow makes a row with key i of the run and a slot of zeros.
func (x *rowIndex) makeRow(i int) (id uint32, row unsafe.Pointer, err error) {
	var text uint64
	if x.width == 0 {
		if text, err = x.keepText(i); err != nil {
			return 0, nil, err
		}
	}
	if id, row, err = x.rows.make(x.src.hashes[i]); err != nil {
		x.dropText(text)
		return 0, nil, err
	}
	p := unsafe.Add(row, x.keyOff)
	if x.width == 0 {
		*(*uint64)(p) = text
		return id, row, nil
	}
	c := &x.src.canon
	copyBytes(p, unsafe.Add(c.P, uintptr(i)*c.Stride), x.width)
	if x.suffixed {
		copyBytes(unsafe.Add(p, x.width), unsafe.Pointer(unsafe.SliceData(x.suffix)), x.suffixWidth)
	}
	return id, row, nil
}

// keepText copies the text of key i and the suffix to the arena; 0 stands for the empty text.
func (x *rowIndex) keepText(i int) (uint64, error) {
	s := x.text(i)
	n := len(s) + len(x.suffix)
	if n == 0 {
		return 0, nil
	}
	if n > maxText {
		return 0, x.rows.ledger.store.errKeyTooLong(x.rows.ledger.state, n)
	}
	r, err := x.texts.make(n)
	if err != nil {
		return 0, err
	}
	b := bytesAt(x.texts.at(r), uintptr(n))
	copy(b, s)
	copy(b[len(s):], x.suffix)
	return uint64(n)<<refBits | uint64(r), nil
}

func (x *rowIndex) dropText(w uint64) {
	if n := int(w >> refBits); n != 0 {
		x.texts.drop(ref(w&(1<<refBits-1)), n)
	}
}

// place puts an index word into a page that has room.
func place(mem unsafe.Pointer, w uint64) {
	pos := tagIn(w)
	for word(mem, pos) != 0 {
		pos++
	}
	setWord(mem, pos, w)
}

// splitPage moves half of the words of the hash's page to a new one.
func (x *rowIndex) splitPage(h uint64) error {
	low, high, err := x.split(h)
	if err != nil {
		return err
	}
	a, b := &x.pages[low], &x.pages[high]
	old := x.ledger.store.spareWords(pageSlots)
	copy(old, unsafe.Slice((*uint64)(a.mem), pageSlots))
	clearBytes(a.mem, x.bytes)
	bit := 64 - a.depth
	a.n, b.n = 0, 0
	for _, w := range old {
		if w == 0 {
			continue
		}
		to := a
		if w>>bit&1 != 0 { // the high bits of a tag are those of the hash
			to = b
		}
		place(to.mem, w)
		to.n++
	}
	return nil
}

// guarded implements index.
func (x *rowIndex) guarded() bool { return x.rows.guarded() }

// touchPart implements index.
func (x *rowIndex) touchPart(part int) error { return x.rows.touchPage(part) }

// own implements index.
func (x *rowIndex) own(i int, slot unsafe.Pointer) (unsafe.Pointer, error) {
	if !x.rows.guarded() && x.rows.track == nil {
		return slot, nil
	}
	h := x.hashOf(i)
	row, w := x.search(i, h)
	row, err := x.claimFound(row, w, h)
	return unsafe.Add(row, x.slotOff), err
}

// ownWhole implements index.
func (x *rowIndex) ownWhole(i int, slot unsafe.Pointer) (unsafe.Pointer, error) {
	return x.own(i, slot)
}

// follow implements index.
func (x *rowIndex) follow(ahead *lookahead) { x.rows.ahead = ahead }

// freeze implements index.
func (x *rowIndex) freeze(f *frozen, c *changes) *leaf {
	l := newLeaf(f, x.freezeRows(f, c.only()), x.freezeKeys(), x.key)
	if l.sh.only == nil {
		l.lots = x.rows.owners()
	}
	return l
}

// freezeRows begins a snapshot of the rows.
func (x *rowIndex) freezeRows(f *frozen, only *pageBits) *shadow {
	x.advance()
	return newShadow(f, &x.rows.guard, x.rows.shape(), slices.Clone(x.rows.pages), only)
}

// tracked implements index.
func (x *rowIndex) tracked() tracked { return tracked{&x.rows.guard, int(x.rows.rows)} }

// freezeKeys is the key layout of a snapshot that begins.
func (x *rowIndex) freezeKeys() keyLayout {
	k := x.keyLayout
	if k.texts != nil {
		k.texts = k.texts.freeze()
	}
	return k
}

// remove implements index.
func (x *rowIndex) remove(i int, slot unsafe.Pointer) {
	h := x.hashOf(i)
	row := unsafe.Add(slot, -int(x.slotOff))
	mem, tag := x.dir[h>>(x.shift&63)], tagOf(h)
	for pos := h; ; pos++ {
		if w := word(mem, pos); tagIn(w) == tag && x.rows.at(rowIn(w)) == row {
			x.removeRow(h, rowIn(w))
			return
		}
	}
}

// removeRow removes a row, whose key has hash h and whose page was touched.
func (x *rowIndex) removeRow(h uint64, id uint32) {
	x.detach(h, id)
	x.rows.drop(id)
	x.rows.shrink(1)
}

// detach makes a row, whose key has hash h and whose page was touched, unreachable by its key and by scans, but keeps it and
// its number.
func (x *rowIndex) detach(h uint64, id uint32) {
	at := h >> (x.shift & 63)
	mem, pos := x.dir[at], x.posOf(h, id)
	for next := pos + 1; ; next++ {
		w := word(mem, next)
		if w == 0 {
			break
		}
		if home := tagIn(w); (next-home)&(pageSlots-1) >= next-pos {
			setWord(mem, pos, w)
			pos = next
		}
	}
	setWord(mem, pos, 0)
	x.pages[x.ids[at]].n--
	x.n--
	x.noteGone(id)
	if x.width == 0 {
		x.dropText(*(*uint64)(unsafe.Add(x.rows.at(id), x.keyOff)))
	}
	x.rows.hide(id)
	x.shrink()
}

// noteGone notes the key of a row that is about to be removed, if snapshots of changes have to tell.
func (x *rowIndex) noteGone(id uint32) {
	t := x.rows.track
	if t == nil || t.gone == nil || t.wasMade(x.rows.place(id)) {
		return
	}
	key, suffix := x.keyBytes(x.rows.at(id))
	t.gone.add(key, suffix, nil)
}

// keyBytes gives the canonical key and suffix of a row.
func (k *keyLayout) keyBytes(row unsafe.Pointer) (key, suffix []byte) {
	if k.width > 0 {
		p := unsafe.Add(row, k.keyOff)
		return bytesAt(p, k.width), bytesAt(unsafe.Add(p, k.width), k.suffixWidth)
	}
	p, n := k.textAt(row)
	b := bytesAt(p, uintptr(n))
	switch {
	case !k.suffixed:
		return b, nil
	case k.suffixWidth > 0:
		n -= int(k.suffixWidth)
		return b[:n], b[n:]
	}
	end := b[n-lengthBytes:]
	m := n - lengthBytes - int(uint32(end[0])|uint32(end[1])<<8|uint32(end[2])<<16|uint32(end[3])<<24)
	return b[:m], b[m : n-lengthBytes]
}

// hashOfRow computes the hash of a row's key, and that of the key without the suffix.
func (x *rowIndex) hashOfRow(row unsafe.Pointer) (whole, key uint64) {
	k, suffix := x.keyBytes(row)
	key = x.key.HashOne(k, x.seed)
	if !x.suffixed {
		return key, key
	}
	return combine(key, x.hashSuffix(suffix)), key
}

// parts implements index; a part is a page of the slab.
func (x *rowIndex) parts() int { return len(x.rows.pages) }

func (x *rowIndex) scanRows(part int, f func(id uint32, row unsafe.Pointer) bool) bool {
	return x.rows.scan(part, f)
}

// scan implements index.
func (x *rowIndex) scan(part int, f func(e *entry) bool) bool {
	var e entry
	return x.scanRows(part, func(_ uint32, row unsafe.Pointer) bool {
		e.key, e.suffix = x.keyBytes(row)
		e.slot = unsafe.Add(row, x.slotOff)
		return f(&e)
	})
}

// sweep implements index.
func (x *rowIndex) sweep(part int, dead func(slot unsafe.Pointer) bool, release func(slot unsafe.Pointer)) {
	if x.rows.touchPage(part) != nil {
		return // no memory for a copy: it can wait
	}
	x.scanRows(part, func(id uint32, row unsafe.Pointer) bool {
		if slot := unsafe.Add(row, x.slotOff); dead(slot) {
			release(slot)
			h, _ := x.hashOfRow(row)
			x.removeRow(h, id)
		}
		return true
	})
}

// close releases everything.
func (x *rowIndex) close() {
	x.directory.drop()
	x.rows.live = 0
	x.rows.shrink(0)
	if x.texts != nil {
		x.texts.close()
	}
}
