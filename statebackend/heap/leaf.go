package heap

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// leaf gives the entries of the pages of a snapshot key group by key group. First it looks at each page once and keeps the
// positions of its entries in the order of their groups; then it visits, for each group, the pages that have entries of
// it. It belongs to the writer.
type leaf struct {
	keyLayout
	sh     *shadow
	also   *shadow // ends with this one; nil: none
	hasher serde.Hasher
	zero   unsafe.Pointer // an entry that is in no page; nil: there is none

	first, last, max int              // key groups
	zeroGroup        int              // of zero
	orders           [][]uint16       // by page, in slabs
	slabs            [][]uint16       // that were taken from the shadow, or made; the last one is being filled
	at               []uint32         // where the next group of a page begins in its order
	heads            []int32          // by group: the first page whose next group it is, plus one
	next             []int32          // by page: the next one of the same group, plus one
	held             int64            // bytes reserved for the above
	page             []uint64         // the entries at hand
	from             []unsafe.Pointer // the entries that are being gathered
	touched          byte             // keeps the compiler from dropping a pass
	places           []entryPlace     // where they lie, in a snapshot of changes
	shown            int              // which one is shown
}

// entryPlace is where an entry lies: its page and position.
type entryPlace struct {
	page uint32
	pos  uint16
}

// An order is made of runs: a group, then the positions of its entries in the page; the last one has lastOfGroup set.
const (
	lastOfGroup   = 1 << 15
	leafPageBytes = 24 + 4 + 4 // of orders, at and next
)

func newLeaf(f *frozen, sh *shadow, keys keyLayout, key *serde.Key) *leaf {
	s := f.store
	return &leaf{
		keyLayout: keys, sh: sh, hasher: key.Hasher(s.Seed), first: s.FirstGroup, last: s.LastGroup, max: s.MaxParallelism,
	}
}

// group gives the key group of an entry.
func (l *leaf) group(e unsafe.Pointer) (int, error) {
	key, _ := l.keyBytes(e)
	g := keygroup.Of(uint32(l.hasher.One(key)), l.max)
	if g < l.first || g > l.last {
		return 0, fmt.Errorf("a key of group %d: the subtask has groups %d to %d of %d", g, l.first, l.last, l.max)
	}
	return g, nil
}

// place is where the entry that is shown lies, in a snapshot of changes.
func (l *leaf) place() (page uint32, pos uint64) {
	p := l.places[l.shown]
	return p.page, uint64(p.pos)
}

// each calls begin for every group and f for every entry of it, until f fails or one of them returns false. The entry is a
// copy that is valid during the call.
func (l *leaf) each(begin func(group int) bool, f func(e unsafe.Pointer, r *statebackend.Row) (bool, error)) error {
	defer l.close()
	if err := l.order(); err != nil {
		return err
	}
	var r statebackend.Row
	for r.Group = l.first; r.Group <= l.last; r.Group++ {
		l.sh.passed.Store(int32(r.Group))
		if !begin(r.Group) {
			return nil
		}
		if l.zero != nil && l.zeroGroup == r.Group {
			if more, err := l.show(l.zero, &r, f); err != nil || !more {
				return err
			}
		}
		for next := l.heads[r.Group-l.first]; next != 0; {
			var n int
			n, next = l.gather(next)
			for i := range n {
				l.shown = i
				if more, err := l.show(unsafe.Add(unsafe.Pointer(&l.page[0]), uintptr(i)*l.sh.size), &r, f); err != nil || !more {
					return err
				}
			}
		}
	}
	return nil
}

func (l *leaf) show(e unsafe.Pointer, r *statebackend.Row, f func(e unsafe.Pointer, r *statebackend.Row) (bool, error)) (bool, error) {
	r.Key, r.Namespace = l.keyBytes(e)
	r.Hash = l.hasher.One(r.Key)
	if !l.suffixed {
		r.Namespace = nil
	}
	return f(e, r)
}

// gather copies the entries of the next group of some pages, those of a list that begins with one. Pages are taken hold
// of together, so that the processor waits for the entries of many at once.
func (l *leaf) gather(first int32) (n int, next int32) {
	var (
		views [gatherPages]pageView
		held  [gatherPages]bool
		pages [gatherPages]int
	)
	k := 0
	for next = first; next != 0 && k < len(pages); k++ {
		p := int(next - 1)
		pages[k], next = p, l.next[p]
		views[k], held[k] = l.sh.view(p)
	}
	l.from = l.from[:0]
	for i, p := range pages[:k] {
		if len(l.from) > l.sh.slots { // there may be no room for another page
			next = int32(p + 1)
			l.drop(pages[i:k], held[i:k])
			k = i
			break
		}
		l.collect(p, &views[i])
	}
	l.copyAll()
	l.drop(pages[:k], held[:k])
	for _, p := range pages[:k] {
		l.enqueue(p)
	}
	return len(l.from), next
}

// gatherPages is the number of pages that are taken hold of together.
const gatherPages = 16

func (l *leaf) drop(pages []int, held []bool) {
	for i, p := range pages {
		if held[i] {
			l.sh.unhold(p)
		}
	}
}

// collect notes the addresses of a page's entries of its next group, and moves on to the group after it.
func (l *leaf) collect(p int, v *pageView) {
	order, at := l.orders[p], l.at[p]+1
	for more := true; more; at++ {
		pos := order[at]
		if len(l.places) > 0 {
			l.places[len(l.from)] = entryPlace{uint32(p), pos &^ lastOfGroup}
		}
		l.from = append(l.from, v.at(int(pos&^lastOfGroup)))
		more = pos&lastOfGroup == 0
	}
	l.at[p] = at
}

// copyAll copies the entries that were collected. First it reads a byte of each line of them, so that the processor waits
// for many lines at once.
func (l *leaf) copyAll() {
	var sum byte
	last := l.sh.size - 1
	for _, e := range l.from {
		for off := uintptr(0); off < last; off += cacheLine {
			sum += *(*byte)(unsafe.Add(e, off))
		}
		sum += *(*byte)(unsafe.Add(e, last))
	}
	l.touched = sum
	dst, size := unsafe.Pointer(&l.page[0]), l.sh.size
	if size > cacheLine {
		for i, e := range l.from {
			copyBytes(unsafe.Add(dst, uintptr(i)*size), e, size)
		}
		return
	}
	for i, e := range l.from {
		copyWords(unsafe.Add(dst, uintptr(i)*size), e, size)
	}
}

const cacheLine = 64

// enqueue notes a page for its next group.
func (l *leaf) enqueue(p int) {
	if order, at := l.orders[p], l.at[p]; int(at) < len(order) {
		head := &l.heads[int(order[at])-l.first]
		l.next[p] = *head
		*head = int32(p + 1)
	}
}

// order makes the orders of all pages.
func (l *leaf) order() error {
	pages, groups := len(l.sh.states), l.last-l.first+1
	scratch := int(2 * l.sh.bytes)     // for the entries of two pages
	most := scratch/int(l.sh.size) + 1 // entries
	places := 0
	if l.sh.only != nil {
		places = most
	}
	if err := l.reserve(pages*leafPageBytes + groups*4 + scratch + places*8 + most*8); err != nil {
		return err
	}
	l.orders, l.at, l.next = make([][]uint16, pages), make([]uint32, pages), make([]int32, pages)
	l.heads = make([]int32, groups)
	l.page = make([]uint64, scratch/8)
	l.places, l.from = make([]entryPlace, places), make([]unsafe.Pointer, 0, most)
	s := sorter{width: bits.Len(uint(groups - 1))}
	for p := range pages {
		if !l.sh.needs(p) {
			continue
		}
		if yield := l.sh.frozen.store.Yield; yield != nil && p%yieldPages == 0 {
			yield()
		}
		if err := l.survey(p, &s); err != nil {
			return err
		}
		runs := s.sort()
		if err := l.reserve(2 * (len(s.keys) + runs)); err != nil {
			return err
		}
		l.orders[p] = s.order(l.room(len(s.keys)+runs), l.first)
		l.enqueue(p)
	}
	if l.zero == nil {
		return nil
	}
	var err error
	l.zeroGroup, err = l.group(l.zero)
	return err
}

// yieldPages is the number of pages that are surveyed in a stretch.
const yieldPages = 8

// orderSlab is the number of positions that memory is made for at a time.
const orderSlab = 32 << 10

// room gives an empty order with room for n positions.
func (l *leaf) room(n int) []uint16 {
	last := len(l.slabs) - 1
	if last < 0 || cap(l.slabs[last])-len(l.slabs[last]) < n {
		var slab []uint16
		if spare := l.sh.orders; len(spare) > 0 {
			slab = spare[len(spare)-1][:0]
			l.sh.orders = spare[:len(spare)-1]
		} else {
			slab = make([]uint16, 0, orderSlab)
		}
		l.slabs = append(l.slabs, slab)
		last++
	}
	slab := l.slabs[last]
	at := len(slab)
	l.slabs[last] = slab[:at+n]
	return slab[at : at : at+n]
}

// survey gives the groups and positions of a page's entries to a sorter.
func (l *leaf) survey(p int, s *sorter) error {
	v, held := l.sh.view(p)
	if held {
		defer l.sh.unhold(p)
	}
	s.keys = s.keys[:0]
	for w := range v.words() {
		for live := v.live(w); live != 0; live &= live - 1 {
			pos := w*64 + bits.TrailingZeros64(live)
			group, err := l.group(v.at(pos))
			if err != nil {
				return err
			}
			s.keys = append(s.keys, uint32(group-l.first)<<16|uint32(pos))
		}
	}
	return nil
}

func (l *leaf) reserve(n int) error {
	f := l.sh.frozen
	if err := f.reserve(int64(n)); err != nil {
		return fmt.Errorf("%w: %d bytes are kept for the snapshot and its order needs %d more: %w",
			statebackend.ErrOutOfMemory, f.held.Load(), n, err)
	}
	l.held += int64(n)
	return nil
}

// close gives everything back.
func (l *leaf) close() {
	l.sh.frozen.release(l.held)
	l.sh.orders = append(l.sh.orders, l.slabs...) // for the next snapshot
	l.orders, l.slabs, l.at, l.heads, l.next, l.page, l.places, l.from, l.held = nil, nil, nil, nil, nil, nil, nil, nil, 0
	l.sh.finish()
	if l.also != nil {
		l.also.finish()
	}
}

// sorter sorts the entries of a page by group.
type sorter struct {
	keys, other []uint32 // group (from the first one) and position
	width       int      // bits of a group
}

// sort sorts the keys and counts the groups among them.
func (s *sorter) sort() (groups int) {
	if cap(s.other) < len(s.keys) {
		s.other = make([]uint32, cap(s.keys))
	}
	for done := 0; done < s.width; done += 8 {
		var counts [256]uint32
		for _, k := range s.keys {
			counts[k>>(16+done)&255]++
		}
		sum := uint32(0)
		for i, n := range counts {
			counts[i] = sum
			sum += n
		}
		to := s.other[:len(s.keys)]
		for _, k := range s.keys {
			at := &counts[k>>(16+done)&255]
			to[*at] = k
			*at++
		}
		s.keys, s.other = to, s.keys
	}
	for i, k := range s.keys {
		groups += one(i == 0 || k>>16 != s.keys[i-1]>>16)
	}
	return groups
}

// order writes the sorted keys as an order to out, which is empty and has the room.
func (s *sorter) order(out []uint16, first int) []uint16 {
	for i, k := range s.keys {
		if i == 0 || k>>16 != s.keys[i-1]>>16 {
			if i > 0 {
				out[len(out)-1] |= lastOfGroup
			}
			out = append(out, uint16(int(k>>16)+first))
		}
		out = append(out, uint16(k))
	}
	if len(out) > 0 {
		out[len(out)-1] |= lastOfGroup
	}
	return out
}
