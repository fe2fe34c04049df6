package slices

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/internal/host"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
)

func newColumns(memory *host.Memory) *columns {
	rt := kit.Runtime()
	rt.Memory = memory
	m := windows.MemoryOf[int64]()
	return &columns{ledger: ledger{rt: rt}, accs: &m}
}

func (m *columns) value(c *column, at uint32) *int64 { return (*int64)(m.accs.At(c.accs, int(at))) }

// contents are what a cursor finds, in the order of ids.
func (m *columns) contents(c *column, most int) (list [][2]int64) {
	x := newCursor(most)
	for x.start(); x.next(c); {
		for i, id := range x.ids {
			list = append(list, [2]int64{int64(id), *m.value(c, x.at[i])})
		}
	}
	slices.SortFunc(list, func(a, b [2]int64) int { return int(a[0] - b[0]) })
	return list
}

// A column is a map from ids to accumulators, whatever its shape and what it was before.
func TestColumnsAreMaps(t *testing.T) {
	m := newColumns(nil)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		limit := 1 + r.IntN(3000)
		want := map[uint32]int64{}
		c, err := m.make(r.IntN(limit)+1, r.IntN(2) == 0)
		kit.Must(t, err)
		for range 3000 {
			id := uint32(r.IntN(limit))
			switch n := r.IntN(100); {
			case n == 0 && c.dense:
				kit.Must(t, m.narrow(&c))
			case n == 0:
				kit.Must(t, m.widen(&c, limit))
			case n == 1:
				kit.Must(t, m.pack(&c, limit))
			case n < 20:
				if at, ok := m.find(&c, id); ok {
					m.remove(&c, id, at)
				}
				delete(want, id)
			default:
				at, fresh, err := m.insert(&c, id, limit)
				kit.Must(t, err)
				if _, is := want[id]; is == fresh || fresh && *m.value(&c, at) != 0 {
					t.Fatalf("seed %d: id %d is fresh %v, its memory has %d", seed, id, fresh, *m.value(&c, at))
				}
				want[id]++
				*m.value(&c, at)++
			}
		}
		got := m.contents(&c, 1+r.IntN(2000))
		if len(got) != len(want) || c.n != len(want) {
			t.Fatalf("seed %d: %d accumulators, the column says %d, want %d", seed, len(got), c.n, len(want))
		}
		for _, x := range got {
			if want[uint32(x[0])] != x[1] {
				t.Fatalf("seed %d: id %d has %d, want %d", seed, x[0], x[1], want[uint32(x[0])])
			}
		}
		m.free(&c)
		if c.accs != nil || len(m.spare) > maxSpare {
			t.Fatalf("a column was freed: %d are kept", len(m.spare))
		}
	}
}

// What is kept for later goes when memory is short.
func TestSpareMemoryIsGivenUpWhenThereIsNoOther(t *testing.T) {
	m := newColumns(host.NewMemory(20_000))
	small, err := m.make(1000, true)
	kit.Must(t, err)
	m.free(&small)
	again, err := m.make(900, true)
	kit.Must(t, err)
	if again.room != roomFor(1000) || len(m.spare) != 0 {
		t.Errorf("a column of 900 has room for %d", again.room)
	}
	m.free(&again)
	large, err := m.make(2000, true)
	kit.Must(t, err)
	if len(m.spare) != 0 || m.held != m.bytes(&large) {
		t.Errorf("%d columns are kept, %d bytes held", len(m.spare), m.held)
	}
	if _, err := m.make(2000, true); err == nil {
		t.Error("there is no end of the memory")
	}
}

// Without memory for a hash table a listed column is searched from its beginning.
func TestListsAreSearchedWithoutMemory(t *testing.T) {
	memory := host.NewMemory(0)
	m := newColumns(memory)
	c, err := m.make(1000, true)
	kit.Must(t, err)
	for id := range uint32(300) {
		at, _, err := m.insert(&c, id*3, 1000)
		kit.Must(t, err)
		*m.value(&c, at) = int64(id)
	}
	kit.Must(t, m.narrow(&c))
	m.rt.Memory = host.NewMemory(1)
	for id := range uint32(900) {
		at, ok := m.find(&c, id)
		if ok != (id%3 == 0) || ok && *m.value(&c, at) != int64(id/3) {
			t.Fatalf("id %d: %v", id, ok)
		}
	}
	if _, _, err := m.insert(&c, 1, 1000); err == nil {
		t.Error("an id was put in without memory")
	}
}

// Slices cost what lies in them, not what there is of keys.
func TestSlicesThatFewKeysAreInAreLists(t *testing.T) {
	p := newPair(t, eventTime(1000, 10), count(), 0, false)
	p.most = 10_000
	p.churn(0, 0, 8000, 10)
	o := p.driver()
	if !o.shelf.list[0].dense {
		t.Error("a slice of all keys is a list")
	}
	crowd := o.columns.held
	for at := range int64(90) {
		p.churn(1+at, 0, 50, 10)
	}
	if more := o.columns.held - crowd; more > 90*50*int64(unsafe.Sizeof(int64(0))+4+16)*2 {
		t.Errorf("90 slices of 50 keys took %d bytes, one of 8000 keys and what belongs to them %d", more, crowd)
	}
	p.mark(90)
	p.churn(91, 0, 8000, 10)
	if s := o.shelf.list[len(o.shelf.list)-1]; !s.dense || s.n != 8000 {
		t.Errorf("a slice of %d keys is a list", s.n)
	}
	p.mark(5000)
}
