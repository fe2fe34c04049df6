package sessions

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

type entry struct {
	at int64
	id uint32
}

// drain pops everything until a time.
func (w *wheel) drain(upTo int64) (got []entry) {
	for {
		at, name, c := w.pop(upTo)
		if c == nil {
			return got
		}
		for _, id := range c.ids[:c.n] {
			got = append(got, entry{at, id})
		}
		w.freeNear(name, c)
	}
}

func byTime(a, b entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) }

// The wheel is a list in order of time, whatever the distances between times are and though time may be set back.
func TestWheelIsAListInOrderOfTime(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 8))
		w := &wheel{ledger: &ledger{}}
		var want []entry
		now := []int64{math.MinInt64, -5, 0, 1_700_000_000_000, math.MaxInt64 - 1_000_000}[rng.IntN(5)]
		w.base = ordered(now)
		for step := range 300 {
			for range rng.IntN(40) {
				at := sum(now, rng.Int64()>>rng.IntN(64))
				if rng.IntN(4) == 0 {
					at = sum(now, rng.Int64N(20)) // many at the same time
				}
				e := entry{at, uint32(rng.IntN(1000))}
				w.add(e.at, e.id)
				want = append(want, e)
			}
			slices.SortFunc(want, byTime)
			if len(want) != 0 {
				if at, ok := w.bound(); !ok || at > want[0].at {
					t.Fatalf("seed %d, step %d: bound %d, %v; the first is at %d", seed, step, at, ok, want[0].at)
				}
			}
			if rng.IntN(50) == 0 && now > math.MinInt64+100_000 {
				now -= rng.Int64N(100_000)
				continue
			}
			upTo := sum(now, rng.Int64()>>rng.IntN(64))
			if rng.IntN(3) > 0 {
				upTo = sum(now, rng.Int64N(50))
			}
			n, _ := slices.BinarySearchFunc(want, entry{upTo, math.MaxUint32}, byTime)
			got := w.drain(upTo)
			if !slices.IsSortedFunc(got, func(a, b entry) int { return cmp.Compare(a.at, b.at) }) {
				t.Fatalf("seed %d, step %d: out of order", seed, step)
			}
			slices.SortFunc(got, byTime)
			if !slices.Equal(got, want[:n]) || w.n != len(want)-n {
				t.Fatalf("seed %d, step %d: got %v until %d, want %v; %d left", seed, step, got, upTo, want[:n], w.n)
			}
			want = want[n:]
			w.rest(upTo)
			now = upTo
		}
		if got := w.drain(math.MaxInt64); len(got) != len(want) || w.n != 0 {
			t.Fatalf("seed %d: %d left, want %d", seed, len(got), len(want))
		}
		if _, ok := w.bound(); ok {
			t.Fatalf("seed %d: an empty wheel has a bound", seed)
		}
	}
}

// Chunks are used again: memory is that of the entries there are.
func TestWheelKeepsToItsMemory(t *testing.T) {
	l := &ledger{}
	w := &wheel{ledger: l}
	held := int64(0)
	for round := range 100 {
		for i := range uint32(5000) {
			w.add(int64(round)*20_000+int64(i*i%40_000), i)
		}
		w.drain(int64(round+1) * 20_000)
		if round == 20 {
			held = l.held
		}
	}
	if l.held != held {
		t.Errorf("%d bytes became %d", held, l.held)
	}
}

// Entries of one time stand close together, near and far.
func TestWheelIsDense(t *testing.T) {
	for _, at := range []int64{5, 1 << 40} {
		l := &ledger{}
		w := &wheel{ledger: l, base: ordered(0)}
		const n = 20_000
		for i := range uint32(n) {
			w.add(at, i)
		}
		if most := int64(n*20 + 2*farBytes + farLevelBytes); l.held > most {
			t.Errorf("%d entries at %d take %d bytes, want %d at most", n, at, l.held, most)
		}
		if got := w.drain(at); len(got) != n {
			t.Errorf("%d entries at %d became %d", n, at, len(got))
		}
	}
}
