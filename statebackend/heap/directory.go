package heap

import (
	"fmt"
	"math"
	"unsafe"
)

const (
	// pageSlots is the number of entries of a page, less for wide ones.
	pageSlots = 2048
	// pageBytes bounds a page of wide entries.
	pageBytes = 64 << 10
	// minPageSlots keeps pages of very wide entries worth having.
	minPageSlots = 32
	// maxDepth is the number of high hash bits that can tell pages apart, less where index words keep fewer.
	maxDepth = 21
	// smallPages is the number of pages up to which a table is kept half empty, which is faster and costs little.
	smallPages = 32
	// block is the number of keys that are looked up together, so that their memory accesses overlap.
	block = 512
)

// directory finds pages by the high bits of the hash, as extendible hashing does: a page that is full splits alone.
// Pages, their addresses and what is known of them lie apart, so that a snapshot copies the first and an update reads
// only the addresses.
type directory struct {
	ledger  *ledger
	dir     []unsafe.Pointer // page by the high 64-shift bits of the hash; at least 2, so that the shift is below 64
	ids     []uint32         // the page's number, beside dir
	pages   []page
	shift   uint8
	perPage int     // entries
	bytes   uintptr // of a page
	n       int     // entries
	deepest uint8   // the greatest depth of a page
	epoch   uint64  // of a rowIndex, see row_word.go
	guard           // last: what lookups read lies together
}

// page is what is known of a page. Its entries have equal high bits, depth of them.
type page struct {
	mem   unsafe.Pointer
	n     int32
	depth uint8
	since uint8 // no index word of the page is claimed in an epoch before this one; of a rowIndex
}

const dirEntryBytes = 12

// slotsPerPage fits entries of that size into a page: a power of two.
func slotsPerPage(size uintptr) int {
	n := pageSlots
	for n > minPageSlots && uintptr(n)*size > pageBytes {
		n /= 2
	}
	return n
}

// openPages makes the first page.
func (d *directory) openPages(l *ledger, slots int, size uintptr) error {
	d.ledger, d.perPage, d.bytes = l, slots, uintptr(slots)*size
	if err := l.reserve(int64(d.bytes) + 2*dirEntryBytes); err != nil {
		return err
	}
	d.reset()
	return nil
}

// reset drops all pages and begins with one; its memory is reserved already.
func (d *directory) reset() {
	mem := memory(d.bytes)
	d.dir = []unsafe.Pointer{mem, mem}
	d.ids = []uint32{0, 0}
	d.pages = append(make([]page, 0, 1), page{mem: mem, since: uint8(d.epoch)})
	d.shift, d.n = 63, 0
}

// shrink begins anew when the last entry of a table that was larger once is gone.
func (d *directory) shrink() {
	if d.n == 0 && len(d.pages) > 1 {
		if d.ledger.reserve(int64(d.bytes)+2*dirEntryBytes) != nil {
			return // it can stay as it is
		}
		d.ledger.release(d.held() - d.leave(d.ledger))
		d.reset()
	}
}

// touch must come before a change of an entry.
func (d *directory) touch(id uint32, pos uint64) error {
	mem, err := d.preserve(int(id), int(pos), d.pages[id].mem, d.ledger)
	d.replace(id, mem)
	return err
}

// touchPage must come before a change of any entry of a page.
func (d *directory) touchPage(id uint32) error {
	if !d.guarded() {
		return nil
	}
	mem, err := d.preserveAll(int(id), d.pages[id].mem, d.ledger)
	d.replace(id, mem)
	return err
}

// replace makes mem the memory of a page.
func (d *directory) replace(id uint32, mem unsafe.Pointer) {
	p := &d.pages[id]
	if mem == p.mem {
		return
	}
	p.mem = mem
	for i, other := range d.ids {
		if other == id {
			d.dir[i] = mem
		}
	}
}

func (d *directory) held() int64 {
	return int64(len(d.pages))*int64(d.bytes) + int64(len(d.dir))*dirEntryBytes
}

// limit is the number of entries at which a page splits.
func (d *directory) limit() int32 { return d.limitOf(len(d.pages)) }

// limitOf is limit for so many pages.
func (d *directory) limitOf(pages int) int32 {
	if pages < smallPages {
		return int32(d.perPage / 2)
	}
	return int32(d.perPage / 16 * 13)
}

// expect makes the pages of an empty table that n entries are about to split it into, so that none of them has to move. It makes
// only those that would come to be with near certainty, and none if there is no memory: who has less than n entries in the end
// finds the table as it was, only larger.
func (d *directory) expect(n int64) {
	if d.n > 0 || len(d.pages) > 1 {
		return
	}
	depth := uint8(0)
	for depth < d.deepest {
		full := d.limitOf(1 << depth)
		if n>>depth < int64(full)+int64(4*math.Sqrt(float64(full))) {
			break
		}
		depth++
	}
	pages := 1 << depth
	if depth == 0 || d.ledger.reserve(int64(pages-1)*int64(d.bytes)+int64(pages-2)*dirEntryBytes) != nil {
		return
	}
	d.dir, d.ids = make([]unsafe.Pointer, pages), make([]uint32, pages)
	d.pages = append(make([]page, 0, pages), d.pages...)
	for len(d.pages) < pages {
		d.pages = append(d.pages, page{mem: memory(d.bytes), since: uint8(d.epoch)})
	}
	for i := range d.pages {
		d.pages[i].depth = depth
		d.dir[i], d.ids[i] = d.pages[i].mem, uint32(i)
	}
	d.shift = 64 - depth
}

// split adds a page for those entries of the hash's page that have the next high bit set. The caller moves them; both
// pages' counts are its business.
func (d *directory) split(hash uint64) (low, high uint32, err error) {
	at := hash >> (d.shift & 63)
	low = d.ids[at]
	depth := d.pages[low].depth
	if depth >= d.deepest {
		return 0, 0, d.errDeepest()
	}
	need := int64(d.bytes)
	double := 64-d.shift == depth
	if double {
		need += int64(len(d.dir)) * dirEntryBytes
	}
	if err := d.ledger.reserve(need); err != nil {
		return 0, 0, err
	}
	if double {
		d.double()
		at = hash >> (d.shift & 63)
	}
	high = uint32(len(d.pages))
	mem := memory(d.bytes)
	d.pages = append(d.pages, page{mem: mem, depth: depth + 1, since: d.pages[low].since})
	d.pages[low].depth = depth + 1
	span := uint64(1) << (64 - d.shift - depth)
	first := at &^ (span - 1)
	for i := first + span/2; i < first+span; i++ {
		d.dir[i], d.ids[i] = mem, high
	}
	return low, high, nil
}

// errDeepest is the error of a page that would have to split and can't.
func (d *directory) errDeepest() error {
	if len(d.pages) > 1<<d.deepest/2 { // there are that many keys
		return d.ledger.store.errTooMany(d.ledger.state)
	}
	return fmt.Errorf("operator %q: state %q: more than %d keys have hashes alike", d.ledger.store.Operator, d.ledger.state, d.perPage/2)
}

func (d *directory) double() {
	dir, ids := make([]unsafe.Pointer, 2*len(d.dir)), make([]uint32, 2*len(d.ids))
	for i, p := range d.dir {
		dir[2*i], dir[2*i+1] = p, p
		ids[2*i], ids[2*i+1] = d.ids[i], d.ids[i]
	}
	d.dir, d.ids = dir, ids
	d.shift--
}

// drop releases everything.
func (d *directory) drop() {
	d.ledger.release(d.held() - d.leave(d.ledger))
	d.dir, d.ids, d.pages, d.n = nil, nil, nil, 0
}
