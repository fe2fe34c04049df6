package heap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

func TestIndexWordsKeepTheirParts(t *testing.T) {
	const tags = 1<<(tagHighBits+tagLowBits) - 1
	if tagLowBits != len(fmt.Sprintf("%b", pageSlots-1)) {
		t.Errorf("%d bits of a tag for the homes of a page of %d", tagLowBits, pageSlots)
	}
	for _, tag := range []uint64{0, 1, tags &^ 1, tags} {
		for _, epoch := range []uint64{0, 1, epochs} {
			for _, id := range []uint32{0, 1, maxRows - 1, maxRows} {
				w := indexWord(tag, 17, id)
				w = withEpoch(w, epoch)
				if w == 0 || tagIn(w) != tag || epochIn(w) != epoch || rowIn(w) != id || w != indexWord(tag, epoch, id) {
					t.Errorf("tag %x, epoch %d, row %d: %x is tag %x, epoch %d, row %d", tag, epoch, id, w, tagIn(w), epochIn(w), rowIn(w))
				}
			}
		}
	}
	for _, h := range []uint64{0, 1, 1 << 63, pageSlots - 1, ^uint64(0)} {
		w := indexWord(tagOf(h), epochs, 0)
		if w>>(64-tagHighBits) != h>>(64-tagHighBits) || tagIn(w)&(pageSlots-1) != h&(pageSlots-1) {
			t.Errorf("the word of hash %x is %x", h, w)
		}
	}
}

// rowWords is an index of rows of bytes with a model of what is claimed.
type rowWords struct {
	*kit[string]
	x       *rowIndex
	n       int // rows that were made, some of which are gone
	freezes int
	claimed map[uint32]claimOf // by row
}

// claimOf is when a row was claimed last.
type claimOf struct {
	hash  uint64
	after int // so many freezes
}

func newRowWords(t *testing.T) *rowWords {
	w := &rowWords{kit: newKit[string](t), claimed: map[uint32]claimOf{}}
	var err error
	w.x, err = newRowIndex(&ledger{store: w.store, state: "v"}, rowShape{slot: 8, key: w.key, src: &w.store.run})
	ok(t, err)
	return w
}

// row finds or inserts the row of a number, which claims it.
func (w *rowWords) row(n int) {
	w.run(fmt.Sprint("row ", n))
	_, id, fresh, err := w.x.insert(0, w.hashes[0])
	ok(w.t, err)
	if !fresh { // nothing is tracked, so that insert leaves it at that
		ok(w.t, w.x.claimRow(w.hashes[0], id))
	}
	w.claimed[id] = claimOf{w.hashes[0], w.freezes}
}

func (w *rowWords) remove(n int) {
	w.run(fmt.Sprint("row ", n))
	if row, id := w.x.locate(0, w.hashes[0]); row != nil {
		w.x.removeRow(w.hashes[0], id)
		delete(w.claimed, id)
	}
}

// freeze begins the next epoch and compares the words of all rows with the model.
func (w *rowWords) freeze() {
	w.t.Helper()
	w.x.advance()
	w.freezes++
	w.check()
}

func (w *rowWords) check() {
	w.t.Helper()
	for id, c := range w.claimed {
		word := word(w.x.dir[c.hash>>w.x.shift], w.x.posOf(c.hash, id))
		if is := epochIn(word) == w.x.epoch; is != (c.after == w.freezes) {
			w.t.Fatalf("after %d freezes: row %d, which was claimed after %d: claimed is %v", w.freezes, id, c.after, is)
		}
	}
	if len(w.claimed) != w.x.n {
		w.t.Fatalf("%d rows, want %d", w.x.n, len(w.claimed))
	}
}

// TestClaimsEndWithTheirEpoch claims rows between many freezes, while their pages split as in tables that grow slowly, fast, by fits
// and starts, or are emptied now and then.
func TestClaimsEndWithTheirEpoch(t *testing.T) {
	grow := map[string]func(freezes int, r *rand.Rand) (splits, rows int){
		"not":      func(int, *rand.Rand) (splits, rows int) { return 0, 0 },
		"slowly":   func(_ int, r *rand.Rand) (splits, rows int) { return r.IntN(3), r.IntN(9) },
		"fast":     func(_ int, r *rand.Rand) (splits, rows int) { return 40, 20 },
		"fitfully": func(f int, r *rand.Rand) (splits, rows int) { return 600 * one(f%70 == 45), r.IntN(2) },
		"twice":    func(f int, r *rand.Rand) (splits, rows int) { return (20 + f%130/2) * one(f%130 > 20), r.IntN(5) },
	}
	for name, more := range grow {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newRowWords(t), newRand(uint64(len(name)))
			for w.n < 2000 {
				w.row(w.n)
				w.n++
			}
			for range 5*epochs + 7 {
				splits, rows := more(w.freezes, r)
				for range splits {
					if h := r.Uint64(); len(w.x.pages) < 2500 && w.x.pages[w.x.ids[h>>w.x.shift]].depth < tagHighBits {
						ok(t, w.x.splitPage(h))
					}
				}
				for range rows {
					w.row(w.n)
					w.n++
					w.remove(r.IntN(w.n))
				}
				for range r.IntN(60) {
					w.row(r.IntN(w.n))
				}
				w.check()
				w.freeze()
				if name == "twice" && w.freezes%130 == 0 {
					for n := range w.n {
						w.remove(n)
					}
				}
			}
			w.x.close()
		})
	}
}

// TestClaimsAreDroppedLittleByLittle counts how many rows lose their claims at once in a table that all are claimed of again and again.
func TestClaimsAreDroppedLittleByLittle(t *testing.T) {
	w := newRowWords(t)
	for w.x.n < 40_000 {
		w.row(w.n)
		w.n++
	}
	before, most := w.n, 0
	for range 2 * epochs {
		w.freeze()
		kept := 0
		for i := range w.x.pages {
			for _, word := range unsafe.Slice((*uint64)(w.x.pages[i].mem), pageSlots) {
				kept += one(epochIn(word) != 0)
			}
		}
		most = max(most, before-kept)
		before = kept
	}
	if before != 0 {
		t.Errorf("%d rows have an epoch of long ago", before)
	}
	if most > w.n/20 {
		t.Errorf("%d of %d rows lost their claims at once", most, w.n)
	}
}

// TestTablesTellThatTheyAreFull lets pages split no deeper than twice.
func TestTablesTellThatTheyAreFull(t *testing.T) {
	w := newRowWords(t)
	w.x.deepest = 2
	err := error(nil)
	for n := 0; err == nil && n <= 5*pageSlots; n++ {
		w.run(fmt.Sprint("row ", n))
		_, _, _, err = w.x.insert(0, w.hashes[0])
	}
	if err == nil || !strings.Contains(err.Error(), "raise the parallelism") || w.x.n < pageSlots {
		t.Errorf("with %d rows: %v", w.x.n, err)
	}
}

// claimsHold checks that each claimed row of a store was touched for all snapshots that may need it, and that its change is noted.
func claimsHold(t testing.TB, s *store) (claimed int) {
	t.Helper()
	for _, table := range s.tables {
		var indexes []*rowIndex
		switch table := table.(type) {
		case *valueTable:
			if x, is := table.ix.(*rowIndex); is {
				indexes = append(indexes, x)
			}
		case *listTable:
			indexes = append(indexes, table.ix)
		case *mapTable:
			indexes = append(indexes, table.owners, table.entries)
		}
		for _, x := range indexes {
			for i := range x.pages {
				for _, w := range unsafe.Slice((*uint64)(x.pages[i].mem), pageSlots) {
					if w != 0 && epochIn(w) == x.epoch {
						claimed++
						claimHolds(t, x, rowIn(w))
					}
				}
			}
		}
	}
	return claimed
}

func claimHolds(t testing.TB, x *rowIndex, id uint32) {
	t.Helper()
	page, pos := x.rows.place(id)
	if track := x.rows.track; track != nil && !track.lost && !track.changed.has(page, pos) {
		t.Fatalf("row %d is claimed, and its change is not noted", id)
	}
	for _, sh := range x.rows.shadows {
		if page, pos := int(page), int(pos); !sh.isSettled(page, pos) && !hasCopy(sh, page, pos) {
			t.Fatalf("row %d is claimed, and snapshot %d has no copy of it", id, sh.frozen.id)
		}
	}
}

// hasCopy says whether a snapshot has a copy of an entry, or needs none, of a page that it has not read.
func hasCopy(sh *shadow, page, pos int) bool {
	if sh.only != nil && !sh.someOf(sh.only.bitmap(page), pos) {
		return true
	}
	return sh.kept[page] != nil && *sh.numberOf(page, pos) != 0
}

// TestRowsAreClaimedAgainWhenTheirEpochComesAgain leaves rows of all kinds of tables alone for as many freezes as there are epochs,
// and about as many, while the tables grow, and changes them then: an open snapshot has them as they were, and the next one of changes
// has the change.
func TestRowsAreClaimedAgainWhenTheirEpochComesAgain(t *testing.T) {
	c := newChangesKit(t, 3000, func(n int) string { return fmt.Sprint("key ", n) })
	rarely := make([]string, 150)
	for i := range rarely {
		rarely[i] = c.keys[i*20]
	}
	entry, made := int64(1), 0
	write := func(v int64, keys ...string) {
		c.run(keys...)
		for i := range keys {
			ok(t, c.value.Save(i, unsafe.Pointer(&v)))
			ok(t, c.list.Append(i, unsafe.Pointer(&v)))
			ok(t, c.maps.Save(i, unsafe.Pointer(&entry), unsafe.Pointer(&v)))
		}
	}
	v := int64(1)
	for _, gap := range []int{epochs - 1, epochs, epochs + 1, 2 * epochs, epochs, epochs + 1} {
		v++
		write(v, rarely...)
		for i := range gap - 1 {
			for range 3 {
				made++
				write(0, fmt.Sprint("new ", made))
			}
			c.check(changesSince(), true, 3+len(rarely)*one(i == 0))
		}
		f, err := c.store.Freeze(statebackend.Freezing{Anchor: true})
		ok(t, err)
		write(v+1, rarely...)
		if n := claimsHold(t, c.store); n < 4*len(rarely) {
			t.Errorf("%d rows are claimed after %d were changed in each of 4 indexes", n, len(rarely))
		}
		for _, table := range f.Tables() {
			last := map[string]byte{}
			for r, err := range table.Rows {
				ok(t, err)
				last[string(r.Key)] = r.Value[0]
			}
			for _, key := range rarely {
				if last[key] != byte(v) {
					t.Fatalf("%s: %d freezes after key %q was set to %d a snapshot has %d", table.Name, gap, key, v, last[key])
				}
			}
		}
		f.Release()
		v++
		c.check(changesSince(), true, len(rarely))
	}
	c.checkClosed()
}
