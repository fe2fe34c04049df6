package loops

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLoopsGiveTheChecksumsOfTheDefinition(t *testing.T) {
	es := events(t)
	counts := map[uint64]int64{}
	var sum uint64
	for _, e := range es {
		counts[e.Key] += e.Val
		sum += uint64(e.Val)
	}
	var keyed, rolling uint64
	for k, n := range counts {
		keyed += k*31 + uint64(n)*k
		rolling += k * uint64(n*(n+1)/2)
	}
	for _, workers := range []int{1, 2} {
		c, got := KeyedCount(es, 100, workers)
		if got != keyed {
			t.Errorf("keyed count of %d workers: checksum %d, want %d", workers, got, keyed)
		}
		if got := c.Rolling(func(k, n uint64) uint64 { return k * n }); got != rolling {
			t.Errorf("rolling counts of %d workers: %d, want %d", workers, got, rolling)
		}
	}
	if got := Exchange(es); got != sum {
		t.Errorf("exchange: %d, want %d", got, sum)
	}
	if got := Union(es[:1000], es[1000:]); got != sum {
		t.Errorf("union: %d, want %d", got, sum)
	}
}

func TestChainsKeepTwoThirds(t *testing.T) {
	var want, flat uint64
	for _, e := range events(t) {
		if e.Key%3 != 0 {
			want += uint64(e.Val+2) * 2
		}
		flat += e.Key % 3
	}
	if got := Chain(events(t), 3); got != 3*want {
		t.Errorf("chain: %d, want %d", got, 3*want)
	}
	if got := FlatMap(events(t), 3); got != 3*flat {
		t.Errorf("flat map: %d, want %d", got, 3*flat)
	}
	rs := Records(10_000)
	value, pointer := RecordChain(rs, 3), RecordPointerChain(rs, 3)
	if value != pointer || value == 0 {
		t.Errorf("chain of records: %d by value, %d by pointer", value, pointer)
	}
	if rs[0].Amount != 1 {
		t.Errorf("the loop by pointer has changed its input: amount %d", rs[0].Amount)
	}
}

func TestWindowsCountEveryEvent(t *testing.T) {
	es := Events(50_000, 100, 1000) // 50 s of event time
	var want uint64
	for _, e := range es {
		want += e.Key * uint64(e.TS/10_000+1)
	}
	seen := map[[2]uint64]bool{}
	for _, e := range es {
		if at := [2]uint64{e.Key, uint64(e.TS / 10_000)}; !seen[at] {
			seen[at] = true
			want += e.Key * 31 * (at[1] + 1)
		}
	}
	if got := Tumbling(es, 100); got != want {
		t.Errorf("tumbling: %d, want %d", got, want)
	}
}

func TestSlidingWindowsHaveTheirEvents(t *testing.T) {
	es := Events(20_000, 100, 1000) // 20 s of event time
	for _, w := range []struct{ size, slide int64 }{{6000, 1000}, {6000, 700}, {5000, 5000}, {1500, 1000}} {
		var counts, times uint64
		for start := -w.size / w.slide * w.slide; start+w.size <= es[len(es)-1].TS; start += w.slide {
			if start+w.size <= 0 {
				continue
			}
			last := map[uint64]int64{}
			for _, e := range es {
				if e.TS >= start && e.TS < start+w.size {
					counts += e.Key / Spread
					last[e.Key] = e.TS
				}
			}
			for key, ts := range last {
				times += uint64(ts) * (key + 1)
			}
		}
		if got := Sliding(es, w.size, w.slide); got != counts {
			t.Errorf("%+v: counts %d, want %d", w, got, counts)
		}
		if got := SlidingMax(es, w.size, w.slide); got != times {
			t.Errorf("%+v: times %d, want %d", w, got, times)
		}
	}
}

func TestSessionsEndWithAGap(t *testing.T) {
	es := []Event{{0, 0, 1}, {Spread, 1, 1}, {0, 5, 1}, {Spread, 6, 1}, {0, 11, 1}, {0, 16, 1}}
	want := SessionChecksum(0, 0, 10, 2) + SessionChecksum(0, 11, 21, 2) + SessionChecksum(Spread, 1, 11, 2)
	if got := Sessions(es, 2, 5); got != want {
		t.Errorf("checksum %d, want %d", got, want)
	}
}

func TestIntervalJoinFindsEveryPair(t *testing.T) {
	left, right := Events(3000, 20, 1000), EventsFrom(3000, 20, 1000, 5)
	pairs, want := 0, uint64(0)
	for _, a := range left {
		for _, b := range right {
			if a.Key == b.Key && b.TS >= a.TS-100 && b.TS <= a.TS+200 {
				pairs++
				want += PairChecksum(a.Key, a.TS, b.TS)
			}
		}
	}
	if n, got := IntervalJoin(left, right, 20, 100, 200); n != pairs || got != want || n == 0 {
		t.Errorf("%d pairs, checksum %d, want %d and %d", n, got, pairs, want)
	}
}

func TestDisorderKeepsTheEvents(t *testing.T) {
	es := events(t)
	mixed := Disorder(es, 50)
	var sum, front int64
	late := 0
	for _, e := range mixed {
		sum += e.TS * int64(e.Key)
		if e.TS < front {
			late++
		}
		if front-e.TS > 50 {
			t.Fatalf("an event comes %d ms late", front-e.TS)
		}
		front = max(front, e.TS)
	}
	for _, e := range es {
		sum -= e.TS * int64(e.Key)
	}
	if sum != 0 || late < len(es)/20 {
		t.Errorf("the events differ by %d, %d of them are late", sum, late)
	}
}

func TestWordCountCutsWordsAtNonLetters(t *testing.T) {
	dir := t.TempDir()
	long := make([]byte, MaxWord+3)
	for i := range long {
		long[i] = 'X'
	}
	text := "To be, or not to be; " + string(long) + "\nend"
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	words, n, sum := WordCount(GoFiles(dir))
	if want := uint64(2*2 + 2*2 + 2 + 3 + MaxWord + 2 + 3); n != 9 || sum != want {
		t.Errorf("%d words, checksum %d, want 9 and %d", n, sum, want)
	}
	if got := words.Rolling(func(_ string, n uint64) uint64 { return n }); got != 3+3+5 {
		t.Errorf("rolling counts add up to %d, want 11", got)
	}
}

func events(t *testing.T) []Event {
	t.Helper()
	return Events(10_000, 100, 1000)
}
