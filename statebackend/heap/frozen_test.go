package heap

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/internal/modeltest"
)

// snapshot is one under way: what it must hold, and what was read of it.
type snapshot struct {
	frozen statebackend.Frozen
	want   []map[modeltest.Owner][]modeltest.Item // by model
	reads  []*reading
	late   bool // released without having been read to its end
}

type reading struct {
	table statebackend.FrozenTable
	next  func() (*statebackend.Row, error, bool)
	stop  func()
	rows  []statebackend.Row
	done  bool
}

// driver steps models and their store.
type driver[K comparable] struct {
	*kit[K]
	r      *rand.Rand
	key1   func(n int) K
	keys   int
	models []*modeltest.Model
	frozen int // snapshots: each other one is read by batches where there are some
}

func newDriver[K comparable](t testing.TB, seed uint64, keys, fat int, key func(n int) K) *driver[K] {
	d := &driver[K]{kit: newKit[K](t), r: newRand(seed), key1: key, keys: keys, models: modeltest.New(t, fat)}
	for _, m := range d.models {
		m.Open(t, d.store)
	}
	return d
}

// steps does a run of random things.
func (d *driver[K]) steps() {
	d.now += int64(d.r.IntN(4))
	run := make([]K, 1+d.r.IntN(40))
	base := d.r.IntN(d.keys)
	for i := range run {
		run[i] = d.key1((base + i*i%37) % d.keys)
	}
	d.run(run...)
	canonical := make([]string, len(run))
	for i := range run {
		canonical[i] = string(d.canon.Bytes(i))
	}
	for _, m := range d.models {
		m.Choose(modeltest.Namespace(d.r))
		for i := range run {
			if d.r.IntN(3) > 0 {
				m.Step(d.t, d.r, i, canonical[i], d.now)
			}
		}
	}
}

func (d *driver[K]) want() (out []map[modeltest.Owner][]modeltest.Item) {
	for _, m := range d.models {
		out = append(out, m.Want(d.now))
	}
	return out
}

func (d *driver[K]) freeze() *snapshot {
	f, err := d.store.Freeze(statebackend.Freezing{})
	ok(d.t, err)
	s := &snapshot{frozen: f, want: d.want(), late: d.r.IntN(4) == 0}
	d.frozen++
	for _, table := range f.Tables() {
		rows := table.Rows
		if d.frozen%2 == 0 {
			rows = rowsOf(table)
		}
		next, stop := iter.Pull2(rows)
		s.reads = append(s.reads, &reading{table: table, next: next, stop: stop})
	}
	return s
}

// read reads some rows of a snapshot, and says whether it is at the end.
func (d *driver[K]) read(s *snapshot) bool {
	if s.late && d.r.IntN(20) == 0 {
		return true
	}
	open := 0
	for _, g := range s.reads {
		for n := d.r.IntN(d.keys); n >= 0 && !g.done; n-- {
			row, err, more := g.next()
			if !more {
				g.done = true
				break
			}
			ok(d.t, err)
			g.rows = append(g.rows, copyRow(row))
		}
		open += one(!g.done)
	}
	return open == 0
}

func copyRow(r *statebackend.Row) statebackend.Row {
	c := *r
	for _, b := range []*[]byte{&c.Key, &c.Namespace, &c.MapKey, &c.Value} {
		if *b != nil {
			*b = append([]byte{}, *b...)
		}
	}
	return c
}

// end checks a snapshot that was read and releases it.
func (d *driver[K]) end(s *snapshot) {
	for _, g := range s.reads {
		g.stop()
	}
	if !s.late {
		for i, g := range s.reads {
			d.models[i].Check(d.t, g.rows, s.want[i])
		}
	}
	s.frozen.Release()
}

// TestFrozenRowsAreThoseOfTheMoment has more keys than the suite, so that tables get pages while snapshots are open.
func TestFrozenRowsAreThoseOfTheMoment(t *testing.T) {
	t.Run("words", func(t *testing.T) {
		testFrozenRows(t, 1, 1500, func(n int) int64 { return int64(n) * 3 })
	})
	t.Run("texts", func(t *testing.T) {
		testFrozenRows(t, 2, 600, func(n int) string { return strings.Repeat("k", n%20) + fmt.Sprint(n) })
	})
	t.Run("pairs", func(t *testing.T) {
		testFrozenRows(t, 3, 600, func(n int) pair { return pair{int64(n), int64(n % 7)} })
	})
}

func testFrozenRows[K comparable](t *testing.T, seed uint64, keys int, key func(n int) K) {
	d := newDriver(t, seed, keys, 1, key)
	var open []*snapshot
	snapshots := 0
	for range 160 {
		d.steps()
		claimsHold(t, d.store)
		if len(open) < 3 && d.r.IntN(6) == 0 {
			open = append(open, d.freeze())
			snapshots++
		}
		for n := len(open) - 1; n >= 0; n-- {
			if d.r.IntN(3) == 0 && d.read(open[n]) {
				d.end(open[n])
				open = slices.Delete(open, n, n+1)
			}
		}
		if d.memory.held != d.store.MemoryBytes() {
			t.Fatalf("budget holds %d bytes, store %d", d.memory.held, d.store.MemoryBytes())
		}
	}
	for _, s := range open {
		for !d.read(s) {
		}
		d.end(s)
	}
	d.run(d.key1(0)) // sees what was released
	d.checkClosed()
	if snapshots < 10 {
		t.Errorf("only %d snapshots", snapshots)
	}
}

// TestCompactionsLeaveSnapshotsAlone lets fat state come and go, so that arenas are compacted, also while snapshots are
// open.
func TestCompactionsLeaveSnapshotsAlone(t *testing.T) {
	d := newDriver(t, 6, 150, 40, func(n int) string { return strings.Repeat("key", 100+n) })
	var arenas []*arena
	for _, table := range d.store.tables {
		switch table := table.(type) {
		case *valueTable:
			arenas = append(arenas, table.cells.arena)
			if rows, ok := table.ix.(*rowIndex); ok {
				arenas = append(arenas, rows.texts)
			}
		case *listTable:
			arenas = append(arenas, table.blocks, table.ix.texts)
		case *mapTable:
			arenas = append(arenas, table.cells.arena, table.owners.texts)
		}
	}
	var open []*snapshot
	compacted, later := map[*arena]bool{}, map[*arena]bool{}
	vacant := map[*arena]int{}
	for i := range 400 {
		for _, m := range d.models {
			m.Fades = i%60 >= 40
		}
		d.steps()
		for range 4 {
			d.run(d.keys1(sweepEvery)...)
		}
		if i%25 == 24 {
			open = append(open, d.freeze())
		}
		if len(open) > 0 && (len(open) > 2 || d.r.IntN(20) == 0) {
			for !d.read(open[0]) {
			}
			d.end(open[0])
			open = open[1:]
		}
		for _, a := range arenas {
			if a != nil && len(open) > 0 {
				compacted[a] = compacted[a] || len(a.vacant) > vacant[a] && a.live > 0
				vacant[a] = len(a.vacant)
				later[a] = later[a] || a.settled > 0
			}
		}
	}
	for _, s := range open {
		for !d.read(s) {
		}
		d.end(s)
	}
	d.run(d.key1(0))
	d.checkClosed()
	count := func(m map[*arena]bool) (n int) {
		for _, is := range m {
			n += one(is)
		}
		return n
	}
	if count(compacted) < len(later)/3 || count(later) < len(later)/3 {
		t.Errorf("of %d arenas %d were compacted and %d used room again while a snapshot was open", len(later), count(compacted), count(later))
	}
}

func (d *driver[K]) keys1(n int) (out []K) {
	for i := range n {
		out = append(out, d.key1(i%d.keys))
	}
	return out
}

// TestBigMapsGoWhileASnapshotIsOpen deletes maps that are too big to be deleted at once.
func TestBigMapsGoWhileASnapshotIsOpen(t *testing.T) {
	k := newKit[int64](t)
	mk, err := serde.KeyOf[int64]()
	ok(t, err)
	table, err := k.store.Map(statebackend.TableSpec{Name: "m", Value: handle[string](t), MapKey: mk})
	ok(t, err)
	k.run(1, 2, 3)
	for n := range int64(2 * doomFrom) {
		for i := range 3 {
			v := fmt.Sprint(n, i)
			ok(t, table.Save(i, unsafe.Pointer(&n), unsafe.Pointer(&v)))
		}
	}
	want := freeze(t, k.store)
	var open []statebackend.Frozen
	idle := make([]int64, sweepEvery)
	for i := range idle {
		idle[i] = 9
	}
	for i := range 3 {
		f, err := k.store.Freeze(statebackend.Freezing{})
		ok(t, err)
		open = append(open, f)
		k.run(1, 2, 3)
		ok(t, table.Delete(i))
		for range 2 {
			k.run(idle...)
		}
	}
	for range 20 {
		k.run(idle...)
	}
	if n := table.Len(); n != 0 || len(table.(*mapTable).doomed) != 0 {
		t.Errorf("%d entries are left", n)
	}
	for i, f := range open {
		got := readAll(t, f).tables["m"]
		var rows []statebackend.Row
		for _, r := range want.tables["m"].rows {
			if int(r.Key[0]) > i {
				rows = append(rows, r)
			}
		}
		sameRows(t, got, &heldTable{want.tables["m"].TableInfo, rows})
	}
	k.run(1)
	k.checkClosed()
}

// TestWriterReadsWhileTheStoreIsUsed reads snapshots on another goroutine while this one goes on.
func TestWriterReadsWhileTheStoreIsUsed(t *testing.T) {
	t.Run("words", func(t *testing.T) {
		testWriter(t, 4, 1500, func(n int) int64 { return int64(n) * 3 })
	})
	t.Run("texts", func(t *testing.T) {
		testWriter(t, 5, 600, func(n int) string { return strings.Repeat("k", n%20) + fmt.Sprint(n) })
	})
}

func testWriter[K comparable](t *testing.T, seed uint64, keys int, key func(n int) K) {
	d := newDriver(t, seed, keys, 1, key)
	for range 40 {
		d.steps()
	}
	for range 5 {
		f, err := d.store.Freeze(statebackend.Freezing{})
		ok(t, err)
		want := d.want()
		read := make(chan [][]statebackend.Row)
		go func() {
			var all [][]statebackend.Row
			for _, table := range f.Tables() {
				var rows []statebackend.Row
				for r, err := range table.Rows {
					if err != nil {
						t.Error(err)
						break
					}
					rows = append(rows, copyRow(r))
				}
				all = append(all, rows)
			}
			f.Release()
			read <- all
		}()
		var all [][]statebackend.Row
		for n := 0; all == nil || n < 10; n++ {
			d.steps()
			select {
			case all = <-read:
			default:
			}
		}
		for i, m := range d.models {
			m.Check(t, all[i], want[i])
		}
	}
	d.run(d.key1(0))
	d.checkClosed()
}
