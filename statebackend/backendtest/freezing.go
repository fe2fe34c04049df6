package backendtest

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// link is a snapshot of a chain in which some build on others.
type link struct {
	*snapshot
	how    statebackend.Freezing
	from   *link // the base that its changes are since; nil: it is whole
	now    int64
	ended  bool
	merged *merged // nil before it is known
}

// changesMakeTheWhole applies changes to their bases: the outcome is the truth of the moment, whatever else was frozen,
// read or given up meanwhile.
func changesMakeTheWhole(t *tester) {
	t.Run("words", func(t *tester) {
		testChanges(t, 11, 400, func(n int) int64 { return int64(n) * 3 })
	})
	t.Run("texts", func(t *tester) {
		testChanges(t, 62, 200, func(n int) string { return strings.Repeat("k", n%20) + fmt.Sprint(n) })
	})
	t.Run("pairs", func(t *tester) {
		testChanges(t, 13, 200, func(n int) pair { return pair{int64(n), int64(n % 7)} })
	})
}

// chained drives a store whose snapshots build on each other.
type chained[K comparable] struct {
	*driver[K]
	open    []*link
	base    *link // the last one with Anchor; nil if it was given up
	known   []*link
	merges  int
	refills int
}

func testChanges[K comparable](t *tester, seed uint64, keys int, key func(n int) K) {
	t.Parallel()
	c := &chained[K]{driver: newDriver(t, seed, keys, 1, key)}
	for i := range rounds(160) {
		for _, m := range c.models {
			m.Fades = i%40 >= 32
		}
		c.steps()
		if i%50 == 49 {
			c.now += 150
		}
		if len(c.open) < 4 && c.r.IntN(3) == 0 {
			c.freezeNext()
		}
		for n := len(c.open) - 1; n >= 0; n-- {
			if c.r.IntN(2) == 0 && c.read(c.open[n].snapshot) {
				c.close(n)
			}
		}
		c.checkMemory()
	}
	for len(c.open) > 0 {
		for !c.read(c.open[0].snapshot) {
		}
		c.close(0)
	}
	c.run(c.key1(0))
	c.checkClosed()
	if c.merges < rounds(10) || c.refills < 1 { // fewer where changes are whole tables, which take long to read
		t.Errorf("only %d merges, %d restores", c.merges, c.refills)
	}
}

// freezeNext freezes in one of the ways there are.
func (c *chained[K]) freezeNext() {
	how := statebackend.Freezing{Anchor: true}
	switch n := c.r.IntN(8); {
	case n == 0:
		how.Anchor = false
	case n == 1 && c.base != nil: // changes on which nothing builds
		how = statebackend.Freezing{Changes: true}
	case n > 2 && c.base != nil:
		how.Changes = true
	}
	s := c.freezeAs(how)
	s.late = c.r.IntN(12) == 0
	l := &link{snapshot: s, how: how, now: c.now}
	if how.Changes {
		l.from = c.base
	}
	if how.Anchor {
		c.base = l
	}
	c.open, c.known = append(c.open, l), append(c.known, l)
}

// close ends a snapshot that was read, or given up.
func (c *chained[K]) close(n int) {
	l := c.open[n]
	c.open = slices.Delete(c.open, n, n+1)
	for _, g := range l.reads {
		g.stop()
	}
	l.frozen.Release()
	l.ended = true
	if l.late && c.base == l {
		c.base = nil // the next one has to be whole
	}
	c.merge()
}

// merge finds out what snapshots come to that have ended, in their order, and checks it.
func (c *chained[K]) merge() {
	for len(c.known) > 0 && c.known[0].ended {
		l := c.known[0]
		c.known = c.known[1:]
		if l.late || l.from != nil && l.from.merged == nil {
			continue
		}
		h, changes := &held{tables: map[string]*heldTable{}}, map[string]bool{}
		for _, g := range l.reads {
			h.names = append(h.names, g.table.Name)
			h.tables[g.table.Name] = &heldTable{g.table.TableInfo, g.rows}
			changes[g.table.Name] = g.table.Changes
			if g.table.Changes && !l.how.Changes {
				c.t.Fatalf("table %q: changes that nobody asked for", g.table.Name)
			}
		}
		var from *merged
		if l.from != nil {
			from = l.from.merged
			c.merges++
		}
		l.merged = from.after(c.t, h, changes)
		whole := l.merged.held()
		for i, m := range c.models {
			m.Check(c.t, whole.tables[m.Spec.Name].alive(l.now), l.want[i])
		}
		if l.from != nil && c.merges%10 == 0 {
			c.restore(whole, l)
		}
	}
}

// restore opens a store with what was merged.
func (c *chained[K]) restore(whole *held, l *link) {
	c.refills++
	k := restoredKit[K](c.t, whole)
	k.now = l.now
	for _, m := range c.models {
		n := *m
		n.Open(c.t, k.store)
	}
	again := freeze(c.t, k.store)
	for i, m := range c.models {
		m.Check(c.t, again.tables[m.Spec.Name].rows, l.want[i])
	}
	k.checkClosed()
}

// changesTellWhatIsGone removes and makes again, in tables of each kind, what a base has and what it has not.
func changesTellWhatIsGone(t *tester) {
	k := newKit[string](t)
	value, err := k.store.Table(statebackend.TableSpec{Name: "value", Value: handle[int64](t)})
	ok(t, err)
	list, err := k.store.List(statebackend.TableSpec{Name: "list", Value: handle[int64](t), List: true})
	ok(t, err)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "map", Value: handle[int64](t), MapKey: keyOf[string](t)})
	ok(t, err)
	keys := make([]string, 200) // most of which do not change
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	k.run(keys...)
	put := func(i int, entry string, n int64) {
		ok(t, value.Save(i, unsafe.Pointer(&n)))
		ok(t, list.Append(i, unsafe.Pointer(&n)))
		ok(t, maps.Save(i, unsafe.Pointer(&entry), unsafe.Pointer(&n)))
	}
	clearAll := func(i int) {
		ok(t, value.Delete(i))
		ok(t, list.Delete(i))
		ok(t, maps.Delete(i))
	}
	remove := func(i int, entry string) {
		_, err := maps.Remove(i, unsafe.Pointer(&entry))
		ok(t, err)
	}
	for i := range keys {
		put(i, "a", int64(i))
		put(i, "b", int64(i))
	}
	freezeAs := func(how statebackend.Freezing) (*held, map[string]bool) {
		f, err := k.store.Freeze(how)
		ok(t, err)
		h, changes := readChanges(t, f)
		k.run(keys...)
		return h, changes
	}
	h, changes := freezeAs(statebackend.Freezing{Anchor: true})
	chain := (*merged)(nil).after(t, h, changes)
	for _, c := range []struct {
		what   string
		change func()
	}{
		{"nothing", func() {}},
		{"an update", func() { put(1, "a", 100) }},
		{"more", func() { put(2, "c", 100) }},
		{"all gone", func() { clearAll(3) }},
		{"gone and made again", func() { clearAll(4); put(4, "b", 100); put(4, "a", 101) }},
		{"made and gone", func() { clearAll(5); put(5, "a", 100); clearAll(5) }},
		{"an entry gone", func() { remove(6, "a") }},
		{"an entry made again", func() { remove(7, "a"); put(7, "a", 100) }},
		{"an entry changed, one new", func() { put(8, "d", 99); put(8, "b", 100); put(8, "c", 101) }},
		{"a new entry gone", func() { put(9, "d", 99); put(9, "e", 100); remove(9, "d") }},
		{"all entries gone singly", func() { remove(10, "a"); remove(10, "b") }},
		{"the same again", func() { remove(11, "b"); put(11, "b", 11); clearAll(11); put(11, "b", 11) }},
	} {
		c.change()
		freezeAs(statebackend.Freezing{})
		peek, peekChanges := freezeAs(statebackend.Freezing{Changes: true})
		h, changes := freezeAs(statebackend.Freezing{Anchor: true, Changes: true})
		want := freeze(t, k.store)
		peeked := chain.after(t, peek, peekChanges).held()
		chain = chain.after(t, h, changes)
		for _, name := range want.names {
			sameRows(t, chain.held().tables[name], want.tables[name])
			sameRows(t, peeked.tables[name], want.tables[name])
		}
		if t.Failed() {
			t.Fatalf("after %s", c.what)
		}
	}
	k.run(keys[0])
	k.checkClosed()
}

// changesOfUnopenedTables restores tables that nobody opens, and opens one of them later.
func changesOfUnopenedTables(t *tester) {
	k := newKit[int64](t)
	a, b := statebackend.TableSpec{Name: "a", Value: handle[int64](t)}, statebackend.TableSpec{Name: "b", Value: handle[string](t)}
	first, err := k.store.Table(a)
	ok(t, err)
	second, err := k.store.Table(b)
	ok(t, err)
	for i := range int64(500) {
		k.run(i)
		s := fmt.Sprint(i)
		ok(t, first.Save(0, unsafe.Pointer(&i)))
		ok(t, second.Save(0, unsafe.Pointer(&s)))
	}
	want := freeze(t, k.store)
	k = restoredKit[int64](t, want)
	first, err = k.store.Table(a)
	ok(t, err)
	var chain *merged
	for i := range int64(3) {
		f, err := k.store.Freeze(statebackend.Freezing{Anchor: true, Changes: i > 0})
		ok(t, err)
		h, changes := readChanges(t, f)
		chain = chain.after(t, h, changes)
		for _, name := range want.names {
			sameRows(t, chain.held().tables[name], want.tables[name])
		}
		if i == 1 {
			second, err = k.store.Table(b)
			ok(t, err)
		}
		k.run(i)
	}
	if first.Len() != 500 || second.Len() != 500 {
		t.Errorf("%d and %d values", first.Len(), second.Len())
	}
	k.checkClosed()
}
