package heap

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/internal/keygroup"
)

// TestRunsOverPagesByKeyGroup changes a table of which key groups have pages of their own from some size on, while snapshots of it
// are read: each holds what was there at its moment, and each page rows of its group only.
func TestRunsOverPagesByKeyGroup(t *testing.T) {
	for seed := range uint64(4) {
		d := newValued(t, newRand(seed), func(r *rand.Rand) int64 { return r.Int64N(4000) },
			func(r *rand.Rand) account { return account{r.Int64(), 7: r.Int64()} })
		x := d.table.(*valueTable).ix.(*rowIndex)
		x.rows.from = 500
		own := 0
		d.runChains(func() {
			if own = max(own, len(x.rows.all)); d.r.IntN(90) == 0 {
				d.removeMost()
			}
			checkLots(t, x)
		})
		if own != 1+128 {
			t.Errorf("seed %d: there were %d lots", seed, own)
		}
	}
}

// checkLots checks that the rows of pages of a group are of that group, and that what is free is free.
func checkLots(t *testing.T, x *rowIndex) {
	t.Helper()
	if len(x.rows.lotOf) != len(x.rows.pages) {
		t.Fatalf("the lots of %d pages are known, of %d", len(x.rows.lotOf), len(x.rows.pages))
	}
	n := 0
	for page := range x.rows.pages {
		x.rows.scan(page, func(_ uint32, row unsafe.Pointer) bool {
			n++
			_, h := x.hashOfRow(row)
			if lot := int(x.rows.lotOf[page]); lot != 0 && keygroup.Of(uint32(h), x.rows.max) != x.rows.first+lot-1 {
				t.Fatalf("a page of lot %d has a row of key group %d", lot, keygroup.Of(uint32(h), x.rows.max))
			}
			return true
		})
	}
	if n != x.rows.live {
		t.Fatalf("%d rows are in pages, want %d", n, x.rows.live)
	}
	for _, l := range x.rows.all {
		for free := l.free; free != 0; free = *(*uint32)(x.rows.at(free - 1)) {
			if x.rows.has(free - 1) {
				t.Fatalf("row %d is in use and free", free-1)
			}
		}
	}
}

// TestEmptySlabsForgetLots makes and drops rows of four groups: their places are used again, those in pages of all groups first, and an
// empty slab begins as a new one does.
func TestEmptySlabsForgetLots(t *testing.T) {
	k := newKit[int64](t)
	s := newSlab(&ledger{store: k.store}, 24)
	s.tellApart(0, 3, 4, 1)
	s.from = 10
	var ids []uint32
	fill := func() {
		for hash := range 4 * uint64(s.rows) {
			id, _, err := s.make(hash)
			ok(t, err)
			ids = append(ids, id)
		}
	}
	fill()
	if len(s.all) != 5 || len(s.pages) != 5 {
		t.Fatalf("%d lots with %d pages", len(s.all), len(s.pages))
	}
	shared, own := ids[0], ids[len(ids)-1]
	group := s.lotOf[own>>s.bits] - 1
	hash := uint64(0)
	for keygroup.Of(uint32(hash), 4) != int(group) {
		hash++
	}
	s.drop(own)
	s.drop(shared)
	for _, want := range []uint32{shared, own} {
		if id, _, err := s.make(hash); id != want || err != nil {
			t.Errorf("row %d was made, want %d; error %v", id, want, err)
		}
	}
	for _, id := range ids {
		s.drop(id)
	}
	s.shrink(1)
	if len(s.all) != 1 || len(s.pages) != 1 || len(s.lotOf) != 1 {
		t.Errorf("an empty slab has %d lots and %d pages, whose lots are %v", len(s.all), len(s.pages), s.lotOf)
	}
	ids = ids[:0]
	if fill(); ids[0] != 0 || len(s.all) != 5 || len(s.pages) != 5 {
		t.Errorf("filled again it begins with row %d and has %d lots with %d pages", ids[0], len(s.all), len(s.pages))
	}
}
