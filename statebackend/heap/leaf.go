package heap

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// leaf gives the entries of the pages of a snapshot, stretch by stretch: it copies the entries of as many pages as fit into its
// memory, one page after the other, which is how the processor reads fastest and what lets the updater have them back soonest;
// each copy goes to those of its key group, which are shown one behind the other then. What the updater has copied before follows
// behind the pages, see leaf_kept.go. It belongs to the writer.
type leaf struct {
	keyLayout
	sh     *shadow
	also   *shadow // ends with this one; nil: none
	hasher serde.Hasher
	zero   unsafe.Pointer // an entry that is in no page; nil: there is none
	lots   []uint16       // by page: its lot, see lots; nil: pages are of all groups

	first, last, max int   // key groups
	held             int64 // bytes reserved for what follows

	spare   []uint64      // memory for copies, of an earlier leaf
	copies  []uint64      // of the entries of a stretch, in segments of entries of one group
	per     uint32        // entries in a segment
	next    []uint32      // by segment: the next one of the group, plus one
	used    int           // segments
	allFit  bool          // there is room for everything
	groups  []groupCopies // by group
	bare    bool          // what follows is not asked for
	hashes  []uint64      // by copy: of its key
	places  []entryPlace  // by copy: where the entry lies, in a snapshot of changes
	wanted  []uint64      // which entries of the updater's copies follow behind the pages, see leaf_kept.go; nil: all or none
	shown   uint32        // the copy that is shown
	touched byte          // keeps the compiler from dropping a pass
}

// groupCopies is what a stretch has of a key group.
type groupCopies struct {
	first uint32 // segment, plus one; 0: there is none
	last  uint32 // the segment that is being filled
	to    uint32 // the next copy's number
	end   uint32 // the number behind the segment
}

// entryPlace is where an entry lies: its page and position.
type entryPlace struct {
	page uint32
	pos  uint16
}

// How much of a table is a stretch: enough for a good block of each key group.
const (
	groupStretch = 64 << 10
	leastStretch = 1 << 20
	mostStretch  = 16 << 20

	// groupSegments is how many segments a group should have: the last one is half empty.
	groupSegments = 16
	// mostSegment is a stretch that is long enough for the processor to read ahead.
	mostSegment = 8 << 10
)

func newLeaf(f *frozen, sh *shadow, keys keyLayout, key *serde.Key) *leaf {
	s := f.store
	return &leaf{
		keyLayout: keys, sh: sh, hasher: key.Hasher(s.Seed), first: s.FirstGroup, last: s.LastGroup, max: s.MaxParallelism,
		spare: sh.guard.takeStretch(),
	}
}

// place is where the entry that is shown lies, in a snapshot of changes.
func (l *leaf) place() (page uint32, pos uint64) {
	p := l.places[l.shown]
	return p.page, uint64(p.pos)
}

// each calls begin once for every group, and f for every entry: stretch by stretch, and group by group in each, until f fails or
// one of them returns false. The entry is a copy that is valid during the call.
func (l *leaf) each(begin func(group int) bool, f func(e unsafe.Pointer, r *statebackend.Row) (bool, error)) error {
	defer l.close()
	if err := l.open(); err != nil {
		return err
	}
	return l.stretches(func() (bool, error) {
		more, err := l.show(begin, f)
		begin = nil
		return more, err
	})
}

// segments calls begin once for every group, and f for all copies, some of one group at a time, until one of them returns false.
// Their order is that of each. The hashes of keys and the places of entries are not known.
func (l *leaf) segments(begin func(group int) bool, f func(group int, from, to uint32) bool) error {
	l.bare = true
	defer l.close()
	if err := l.open(); err != nil || l.lots != nil && !l.ownPages(f) {
		return err
	}
	return l.stretches(func() (bool, error) {
		for i := range l.groups {
			g := &l.groups[i]
			if begin != nil && !begin(l.first+i) {
				return false, nil
			}
			for s := g.first; s != 0; s = l.next[s-1] {
				if !f(l.first+i, (s-1)*l.per, l.end(g, s)) {
					return false, nil
				}
			}
		}
		begin = nil
		return true, nil
	})
}

// stretches calls f for each stretch, until it fails or returns false.
func (l *leaf) stretches(f func() (more bool, err error)) error {
	for at := 0; ; {
		var err error
		if at, err = l.fill(at); err != nil {
			return err
		}
		if more, err := f(); err != nil || !more || l.passed(at) {
			return err
		}
	}
}

// end is the number behind the copies of a segment of a group, which is counted from one.
func (l *leaf) end(g *groupCopies, segment uint32) uint32 {
	if segment-1 == g.last {
		return g.to
	}
	return segment * l.per
}

// column are n copies' bytes at an offset, from one on.
func (l *leaf) column(from uint32, n int, off, width uintptr) statebackend.ByteColumn {
	size := l.sh.size
	b := bytesAt(unsafe.Add(l.entry(from), off), uintptr(n)*size-off)
	return statebackend.ByteColumn{B: b, Stride: int(size), Width: int(width)}
}

// open makes the memory for a stretch.
func (l *leaf) open() error {
	groups, size := l.last-l.first+1, int(l.sh.size)
	all := len(l.sh.states) * l.sh.slots
	if l.sh.only != nil {
		all = l.sh.only.n
	}
	all++ // zero
	most := max(min(max(groups*groupStretch, leastStretch), mostStretch)/size, l.most()+1)
	l.allFit = all <= most
	most = min(most, all)
	per := min(max(1, most/(groups*groupSegments)), max(1, mostSegment/size))
	segments := most/per + min(groups, most) // of each group, one may not be full
	n, hashes, places, wanted := segments*per, 0, 0, 0
	if !l.bare {
		hashes = n
	}
	if !l.bare && l.sh.only != nil {
		places = n
	}
	if l.sh.only == nil {
		wanted = (len(l.sh.states)*l.sh.units()<<l.sh.shift + 63) / 64
	}
	if err := l.reserve(n*size + segments*4 + groups*16 + (hashes+places+wanted)*8); err != nil {
		return err
	}
	if l.sh.only == nil {
		l.wanted = make([]uint64, wanted)
	}
	l.per, l.next, l.groups = uint32(per), make([]uint32, segments), make([]groupCopies, groups)
	if l.copies = l.spare; len(l.copies) < n*size/8 {
		l.copies = make([]uint64, n*size/8)
	}
	l.spare = nil
	l.hashes, l.places = make([]uint64, hashes), make([]entryPlace, places)
	return nil
}

// entry is a copy.
func (l *leaf) entry(i uint32) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(l.copies)), uintptr(i)*l.sh.size)
}

// most is how many entries a page, or a chunk of copies, has at most.
func (l *leaf) most() int { return max(l.sh.slots, 1<<(l.sh.chunk+l.sh.shift)) }

// fits says whether there is room for the entries of another page, in the worst case.
func (l *leaf) fits() bool {
	if l.allFit {
		return true
	}
	slots := l.most() + 1
	return (len(l.next) - l.used) >= slots/int(l.per)+min(len(l.groups), slots)
}

// fill begins a stretch at a page, or a chunk of copies behind them, and returns where the next stretch begins.
func (l *leaf) fill(at int) (next int, err error) {
	clear(l.groups)
	l.used = 0
	if at == 0 && l.zero != nil {
		if err := l.copy(l.zero, entryPlace{}); err != nil {
			return 0, err
		}
	}
	yield, pages := l.sh.frozen.store.Yield, len(l.sh.states)
	for begin := at; !l.passed(at) && (at == begin || l.fits()); at++ {
		if at < pages && (!l.sh.needs(at) || l.isOwn(at)) {
			continue
		}
		if at == pages {
			l.sh.passed.Store(true)
		}
		if yield != nil && at%yieldPages == 0 {
			yield()
		}
		if at < pages {
			err = l.copyPage(at)
		} else {
			err = l.copyKept(at - pages)
		}
		if err != nil {
			return 0, err
		}
	}
	return at, nil
}

// yieldPages is the number of pages that are copied in a stretch of work.
const yieldPages = 4

// copyPage copies the entries of a page, of which nothing is needed any more then but the copies that follow later.
func (l *leaf) copyPage(page int) error {
	v, _ := l.sh.view(page)
	defer l.sh.done(page)
	var at [located]uint16
	n := 0
	for w := range v.words() {
		live := l.postpone(&v, w)
		if n+bits.OnesCount64(live) > len(at) {
			if err := l.copyAll(&v, page, at[:n]); err != nil {
				return err
			}
			n = 0
		}
		for ; live != 0; live &= live - 1 {
			at[n] = uint16(w*64 + bits.TrailingZeros64(live))
			n++
		}
	}
	return l.copyAll(&v, page, at[:n])
}

// located is how many entries are looked for together: at least as many as a word of a bitmap has.
const located = 64

// copyAll copies entries of a page, at most located.
func (l *leaf) copyAll(v *pageView, page int, at []uint16) error {
	var from [located]unsafe.Pointer
	for i, pos := range at {
		from[i] = v.at(int(pos))
	}
	if v.only != nil {
		l.touch(from[:len(at)])
	}
	for i, pos := range at {
		if err := l.copy(from[i], entryPlace{uint32(page), pos}); err != nil {
			return err
		}
	}
	return nil
}

// touch reads a byte of each line of entries that do not lie one behind the other, so that the processor waits for many of them at
// once.
func (l *leaf) touch(from []unsafe.Pointer) {
	var sum byte
	last := l.sh.size - 1
	for _, e := range from {
		for off := uintptr(0); off < last; off += cacheLine {
			sum += *(*byte)(unsafe.Add(e, off))
		}
		sum += *(*byte)(unsafe.Add(e, last))
	}
	l.touched = sum
}

// copy copies an entry to those of its group.
func (l *leaf) copy(e unsafe.Pointer, place entryPlace) error {
	key, _ := l.keyBytes(e)
	h := l.hasher.One(key)
	group := keygroup.Of(uint32(h), l.max)
	if group < l.first || group > l.last {
		return fmt.Errorf("a key of group %d: the subtask has groups %d to %d of %d", group, l.first, l.last, l.max)
	}
	g := &l.groups[group-l.first]
	if g.to == g.end {
		l.segment(g)
	}
	i := g.to
	g.to++
	if len(l.hashes) > 0 {
		l.hashes[i] = h
	}
	if len(l.places) > 0 {
		l.places[i] = place
	}
	copyEntry(l.entry(i), e, l.sh.size)
	return nil
}

// segment gives a group another segment.
func (l *leaf) segment(g *groupCopies) {
	s := uint32(l.used)
	l.used++
	l.next[s] = 0
	if g.first == 0 {
		g.first = s + 1
	} else {
		l.next[g.last] = s + 1
	}
	g.last, g.to, g.end = s, s*l.per, (s+1)*l.per
}

// copyEntry copies an entry: short ones word by word.
func copyEntry(dst, src unsafe.Pointer, size uintptr) {
	if size > cacheLine {
		copyBytes(dst, src, size)
		return
	}
	copyWords(dst, src, size)
}

const cacheLine = 64

// show shows the copies. begin is nil after the first stretch.
func (l *leaf) show(begin func(group int) bool, f func(e unsafe.Pointer, r *statebackend.Row) (bool, error)) (more bool, err error) {
	var r statebackend.Row
	for i := range l.groups {
		g := &l.groups[i]
		r.Group = l.first + i
		if begin != nil && !begin(r.Group) {
			return false, nil
		}
		for s := g.first; s != 0; s = l.next[s-1] {
			end := l.end(g, s)
			for l.shown = (s - 1) * l.per; l.shown < end; l.shown++ {
				e := l.entry(l.shown)
				r.Hash = l.hashes[l.shown]
				if r.Key, r.Namespace = l.keyBytes(e); !l.suffixed {
					r.Namespace = nil
				}
				if more, err := f(e, &r); err != nil || !more {
					return false, err
				}
			}
		}
	}
	return true, nil
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
	l.sh.stretch = l.copies
	l.copies, l.next, l.groups, l.hashes, l.places, l.wanted, l.held = nil, nil, nil, nil, nil, nil, 0
	l.sh.finish()
	if l.also != nil {
		l.also.finish()
	}
}
