package backendtest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

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

func newDriver[K comparable](t *tester, seed uint64, keys, fat int, key func(n int) K) *driver[K] {
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

func (d *driver[K]) freeze() *snapshot { return d.freezeAs(statebackend.Freezing{}) }

func (d *driver[K]) freezeAs(how statebackend.Freezing) *snapshot {
	f, err := d.store.Freeze(how)
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

func frozenRowsAreThoseOfTheMoment(t *tester) {
	t.Run("words", func(t *tester) {
		testFrozenRows(t, 1, 500, func(n int) int64 { return int64(n) * 3 })
	})
	t.Run("texts", func(t *tester) {
		testFrozenRows(t, 2, 300, func(n int) string { return strings.Repeat("k", n%20) + fmt.Sprint(n) })
	})
	t.Run("pairs", func(t *tester) {
		testFrozenRows(t, 3, 300, func(n int) pair { return pair{int64(n), int64(n % 7)} })
	})
}

func testFrozenRows[K comparable](t *tester, seed uint64, keys int, key func(n int) K) {
	t.Parallel()
	d := newDriver(t, seed, keys, 1, key)
	var open []*snapshot
	snapshots, refilled := 0, 0
	for i := range rounds(120) {
		d.steps()
		if len(open) < 3 && d.r.IntN(8) == 0 {
			open = append(open, d.freeze())
			snapshots++
		}
		for n := len(open) - 1; n >= 0; n-- {
			if d.r.IntN(3) == 0 && d.read(open[n]) {
				d.end(open[n])
				open = slices.Delete(open, n, n+1)
			}
		}
		if every := rounds(40); i%every == every-1 {
			d.refill()
			refilled++
		}
		d.checkMemory()
	}
	for _, s := range open {
		for !d.read(s) {
		}
		d.end(s)
	}
	d.run(d.key1(0)) // sees what was released
	d.checkClosed()
	if snapshots < rounds(5) || refilled < 3 {
		t.Errorf("only %d snapshots, %d restores", snapshots, refilled)
	}
}

func (d *driver[K]) refill() {
	whole := freeze(d.t, d.store)
	want := d.want()
	merged := &held{tables: map[string]*heldTable{}}
	for _, groups := range [][2]int{{0, 42}, {43, 85}, {86, 127}} {
		k := restoredKit[K](d.t, whole.of(groups[0], groups[1]), func(o *statebackend.Options) { o.FirstGroup, o.LastGroup = groups[0], groups[1] })
		k.now = d.now
		for _, m := range d.models {
			c := *m
			c.Open(d.t, k.store)
		}
		part := freeze(d.t, k.store)
		for _, name := range part.names {
			p := part.tables[name]
			if m := merged.tables[name]; m != nil {
				m.rows = append(m.rows, p.rows...)
			} else {
				merged.tables[name] = p
				merged.names = append(merged.names, name)
			}
		}
		k.checkClosed()
	}
	k := restoredKit[K](d.t, merged)
	k.now = d.now
	for _, m := range d.models {
		c := *m
		c.Open(d.t, k.store)
	}
	again := freeze(d.t, k.store)
	for i, m := range d.models {
		m.Check(d.t, again.tables[m.Spec.Name].rows, want[i])
	}
	k.checkClosed()
}
