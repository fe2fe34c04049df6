package pebble

import (
	"errors"
	"testing"

	"github.com/flott-dev/flott/statebackend"
)

// purse is a budget.
type purse struct{ held, limit int64 }

var errPoor = errors.New("poor")

func (p *purse) Reserve(n int64) error {
	if p.limit > 0 && p.held+n > p.limit {
		return errPoor
	}
	p.held += n
	return nil
}

func (p *purse) Release(n int64) { p.held -= n }

// TestStoresStaySmallUntilTheyAreUsed opens many stores that share a cache of blocks.
func TestStoresStaySmallUntilTheyAreUsed(t *testing.T) {
	const stores = 20
	p := &purse{}
	b := Backend{Folder: t.TempDir(), Blocks: NewBlockCache(4 << 20)}
	var open []*counts
	for range stores {
		c := openCounts(t, b, statebackend.Options{Memory: p})
		c.add(1, 7)
		open = append(open, c)
	}
	if most := int64(4<<20 + stores*(leastTree+256<<10)); p.held > most {
		t.Errorf("%d stores hold %d bytes, want %d at most", stores, p.held, most)
	}
	sum := int64(0)
	for _, c := range open {
		sum += c.store.MemoryBytes()
	}
	if sum != p.held {
		t.Errorf("the stores say %d bytes, the budget %d", sum, p.held)
	}
	for _, c := range open {
		fatal(t, c.store.Close())
	}
	if p.held != 0 {
		t.Errorf("%d bytes are held at the end", p.held)
	}
	if c := openCounts(t, b, statebackend.Options{}); b.Blocks.users != 1 {
		t.Errorf("%d users of the cache of blocks", b.Blocks.users)
	} else {
		fatal(t, c.store.Close())
	}
}

func TestStoreIsNotOpenedWithoutItsLeastMemory(t *testing.T) {
	for _, limit := range []int64{1, 4<<20 + 1000} {
		p := &purse{limit: limit}
		_, err := tryCounts(t, Backend{Folder: t.TempDir(), Blocks: NewBlockCache(4 << 20)}, statebackend.Options{Memory: p})
		if !errors.Is(err, statebackend.ErrOutOfMemory) || !errors.Is(err, errPoor) || p.held != 0 {
			t.Errorf("%d bytes: got %v, %d bytes are held", limit, err, p.held)
		}
	}
}
