package pebble

import (
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// mapTable is a table with a map per key. Each entry has a number, in the order of insertion and never used again. There
// are three kinds of rows: heads know the first and last number and the count of a map, the index knows the number of a
// map key, and entries are {value}{map key}{tail}. The tail chains the entries of a
// map, so that an iteration meets whatever is added and removed meanwhile.
type mapTable struct {
	ledger
	last    uint64 // the highest number that was given out
	scratch serde.KeyScratch
	walks   []walk
	rowKey  []byte
}

// walk is an iteration over the map of an owner.
type walk struct {
	owner  []byte // the key of its head; nil once the map is gone
	at     uint64 // the entry that is shown, or the next one if before is set; 0: the end
	before bool
}

// mapHead is the value of a row of heads.
type mapHead struct{ first, last, count uint64 }

// tail is the end of an entry's row.
type tail struct {
	prev, next uint64
	at         int64
	key        uint32 // length
}

const (
	mapHeadBytes = 24
	tailBytes    = 28
	numberBytes  = 8
)

func newMapTable(l ledger) *mapTable {
	l.tail = tailBytes
	return &mapTable{ledger: l}
}

// told implements keeper.
func (t *mapTable) told() metaTable {
	m := t.ledger.told()
	m.last = t.last
	return m
}

// begin implements keeper.
func (t *mapTable) begin(last uint64) { t.last = last }

func readTail(row []byte) (t tail) {
	b := row[len(row)-tailBytes:]
	t.prev, t.next = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	t.at = int64(binary.LittleEndian.Uint64(b[16:]))
	t.key = binary.LittleEndian.Uint32(b[24:])
	return t
}

func (t *tail) write(row []byte) {
	b := row[len(row)-tailBytes:]
	binary.LittleEndian.PutUint64(b, t.prev)
	binary.LittleEndian.PutUint64(b[8:], t.next)
	binary.LittleEndian.PutUint64(b[16:], uint64(t.at))
	binary.LittleEndian.PutUint32(b[24:], t.key)
}

// mapKey gives the map key of an entry's row.
func mapKey(row []byte, t *tail) []byte {
	end := len(row) - tailBytes
	return row[end-int(t.key) : end : end]
}

// mapValue gives the value of an entry's row.
func mapValue(row []byte, t *tail) []byte { return row[:len(row)-tailBytes-int(t.key)] }

// ownerOf gives the key of the head of the map of key i, in memory of its own.
func (t *mapTable) ownerOf(i int) []byte { return slices.Clone(t.compose(t.shape.spaces[0], i)) }

func (t *mapTable) head(owner []byte) (h mapHead, err error) {
	r, err := t.store.cache.get(&t.ledger, owner, 0)
	if err != nil || !r.is(live) {
		return h, err
	}
	b := r.value()
	h.first, h.last = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	h.count = binary.LittleEndian.Uint64(b[16:])
	return h, nil
}

func (t *mapTable) setHead(owner []byte, h mapHead) error {
	r, err := t.store.cache.get(&t.ledger, owner, 0)
	if err != nil {
		return err
	}
	if h.count == 0 {
		if r.is(live) {
			t.store.cache.drop(r)
		}
		return nil
	}
	if r, err = t.store.cache.put(r, mapHeadBytes); err != nil {
		return err
	}
	b := r.value()
	h.write(b)
	return nil
}

func (h *mapHead) write(b []byte) {
	binary.LittleEndian.PutUint64(b, h.first)
	binary.LittleEndian.PutUint64(b[8:], h.last)
	binary.LittleEndian.PutUint64(b[16:], h.count)
}

// part makes the key of a row of an owner in another space.
func (t *mapTable) part(space uint16, owner, rest []byte) []byte {
	b := binary.BigEndian.AppendUint16(t.rowKey[:0], space)
	b = append(b, owner[spaceBytes:]...)
	t.rowKey = append(b, rest...)
	return t.rowKey
}

func (t *mapTable) numbered(owner []byte, number uint64) []byte {
	var b [numberBytes]byte
	binary.BigEndian.PutUint64(b[:], number)
	return t.part(t.shape.spaces[2], owner, b[:])
}

// entry gives the row of a number that is in use.
func (t *mapTable) entry(owner []byte, number uint64) (*row, error) {
	r, err := t.store.cache.get(&t.ledger, t.numbered(owner, number), t.what())
	if err == nil && !r.is(live) {
		err = t.wrap("read", errors.New("an entry of a map is lost"))
	}
	return r, err
}

// canon gives the canonical bytes of map key k, good until the next call.
func (t *mapTable) canon(k unsafe.Pointer) ([]byte, error) {
	c, err := t.s.MapKey.Canon(serde.Column{P: k, N: 1, Stride: t.s.MapKey.Size}, &t.scratch)
	if err != nil {
		return nil, t.wrap("map key of", err)
	}
	return c.Bytes(0), nil
}

// number gives the number of the entry of map key k in the map of key i; 0 if there is none.
func (t *mapTable) number(i int, k unsafe.Pointer) (number uint64, owner []byte, err error) {
	key, err := t.canon(k)
	if err != nil {
		return 0, nil, err
	}
	owner = t.compose(t.shape.spaces[0], i)
	r, err := t.store.cache.get(&t.ledger, t.part(t.shape.spaces[1], owner, key), 0)
	if err != nil || !r.is(live) {
		return 0, owner, err
	}
	return binary.LittleEndian.Uint64(r.value()), owner, nil
}

// find gives the row of map key k in the map of key i; nil if there is none. The owner is good until the next call.
func (t *mapTable) find(i int, k unsafe.Pointer) (r *row, number uint64, owner []byte, err error) {
	if err := t.enter(0); err != nil {
		return nil, 0, nil, err
	}
	if number, owner, err = t.number(i, k); err != nil || number == 0 {
		return nil, 0, nil, err
	}
	r, err = t.entry(owner, number)
	return r, number, owner, err
}

// write finds or inserts the entry of map key k and makes room for a value of n bytes, which keeps what it held as far as
// it fits.
func (t *mapTable) write(i int, k unsafe.Pointer, n int, at int64) (r *row, fresh bool, err error) {
	number, owner, err := t.number(i, k)
	if err != nil {
		return nil, false, err
	}
	if number == 0 {
		r, err = t.insert(slices.Clone(owner), k, n, at)
		return r, true, err
	}
	if r, err = t.entry(owner, number); err != nil {
		return nil, false, err
	}
	old := readTail(r.value())
	if len(mapValue(r.value(), &old)) == n {
		t.store.cache.touch(r)
		old.at = at
		old.write(r.value())
		return r, false, nil
	}
	key := slices.Clone(mapKey(r.value(), &old))
	if r, err = t.store.cache.put(r, n+len(key)+tailBytes); err != nil {
		return nil, false, err
	}
	copy(r.value()[n:], key)
	old.at = at
	old.write(r.value())
	return r, false, nil
}

// insert makes the entry of map key k, at the end of the map of an owner.
func (t *mapTable) insert(owner []byte, k unsafe.Pointer, n int, at int64) (*row, error) {
	h, err := t.head(owner)
	if err != nil {
		return nil, err
	}
	key, err := t.canon(k)
	if err != nil {
		return nil, err
	}
	t.last++
	number := t.last
	size := n + len(key) + tailBytes
	r, err := t.store.cache.fresh(&t.ledger, t.numbered(owner, number), t.what(), size)
	if err == nil {
		r, err = t.store.cache.put(r, size)
	}
	if err != nil {
		return nil, err
	}
	value := r.value()
	clear(value)
	copy(value[n:], key)
	(&tail{prev: h.last, at: at, key: uint32(len(key))}).write(value)
	ix, err := t.store.cache.get(&t.ledger, t.part(t.shape.spaces[1], owner, key), 0)
	if err == nil {
		ix, err = t.store.cache.put(ix, numberBytes)
	}
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(ix.value(), number)
	if h.last != 0 {
		if err := t.relink(owner, h.last, func(l *tail) { l.next = number }); err != nil {
			return nil, err
		}
	} else {
		h.first = number
	}
	h.last = number
	h.count++
	t.n++
	for j := range t.walks {
		if w := &t.walks[j]; w.at == 0 && string(w.owner) == string(owner) {
			w.at = number
		}
	}
	return r, t.setHead(owner, h)
}

// relink changes the tail of an entry.
func (t *mapTable) relink(owner []byte, number uint64, change func(*tail)) error {
	r, err := t.entry(owner, number)
	if err != nil {
		return err
	}
	l := readTail(r.value())
	change(&l)
	t.store.cache.touch(r)
	l.write(r.value())
	return nil
}

// drop removes an entry from its map.
func (t *mapTable) drop(owner []byte, number uint64) error {
	owner = slices.Clone(owner)
	l, err := t.dropRows(owner, number)
	if err != nil {
		return err
	}
	h, err := t.head(owner)
	if err != nil {
		return err
	}
	if l.prev == 0 {
		h.first = l.next
	} else if err := t.relink(owner, l.prev, func(p *tail) { p.next = l.next }); err != nil {
		return err
	}
	if l.next == 0 {
		h.last = l.prev
	} else if err := t.relink(owner, l.next, func(n *tail) { n.prev = l.prev }); err != nil {
		return err
	}
	h.count--
	for j := range t.walks {
		if w := &t.walks[j]; w.at == number && string(w.owner) == string(owner) {
			w.at, w.before = l.next, true
		}
	}
	if h.count == 0 {
		t.endWalks(owner)
	}
	return t.setHead(owner, h)
}

// dropRows removes an entry and its place in the index, and gives its tail.
func (t *mapTable) dropRows(owner []byte, number uint64) (tail, error) {
	r, err := t.entry(owner, number)
	if err != nil {
		return tail{}, err
	}
	l := readTail(r.value())
	ix, err := t.store.cache.get(&t.ledger, t.part(t.shape.spaces[1], owner, mapKey(r.value(), &l)), 0)
	if err != nil {
		return l, err
	}
	t.store.cache.drop(ix)
	t.store.cache.drop(r)
	t.n--
	return l, nil
}

// endWalks ends the iterations over a map that is gone.
func (t *mapTable) endWalks(owner []byte) {
	for j := range t.walks {
		if w := &t.walks[j]; string(w.owner) == string(owner) {
			*w = walk{before: true}
		}
	}
}
