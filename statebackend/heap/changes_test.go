package heap

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// changesKit is a store with tables of each kind, of n keys each, frozen as a base.
type changesKit[K comparable] struct {
	*kit[K]
	keys  []K
	value statebackend.Table
	list  statebackend.ListTable
	maps  statebackend.MapTable
}

func newChangesKit[K comparable](t *testing.T, n int, key func(int) K) *changesKit[K] {
	c := &changesKit[K]{kit: newKit[K](t)}
	mk, err := serde.KeyOf[int64]()
	ok(t, err)
	c.value, err = c.store.Table(statebackend.TableSpec{Name: "value", Value: handle[int64](t)})
	ok(t, err)
	c.list, err = c.store.List(statebackend.TableSpec{Name: "list", Value: handle[int64](t), List: true})
	ok(t, err)
	c.maps, err = c.store.Map(statebackend.TableSpec{Name: "map", Value: handle[int64](t), MapKey: mk})
	ok(t, err)
	for i := range n {
		c.keys = append(c.keys, key(i))
	}
	c.write(c.keys, 1)
	c.freeze(statebackend.Freezing{Anchor: true})
	return c
}

// write writes to all tables.
func (c *changesKit[K]) write(keys []K, v int64) {
	for from := 0; from < len(keys); from += block {
		c.run(keys[from:min(len(keys), from+block)]...)
		for i := range c.kit.keys {
			ok(c.t, c.value.Save(i, unsafe.Pointer(&v)))
			ok(c.t, c.list.Append(i, unsafe.Pointer(&v)))
			ok(c.t, c.maps.Save(i, unsafe.Pointer(&v), unsafe.Pointer(&v)))
		}
	}
}

// freeze freezes, reads and says how many rows each table has, and whether they are changes.
func (c *changesKit[K]) freeze(how statebackend.Freezing) (rows map[string]int, changes map[string]bool) {
	f, err := c.store.Freeze(how)
	ok(c.t, err)
	rows, changes = map[string]int{}, map[string]bool{}
	for _, table := range f.Tables() {
		changes[table.Name] = table.Changes
		for _, err := range table.Rows {
			ok(c.t, err)
			rows[table.Name]++
		}
	}
	f.Release()
	c.run(c.keys[0])
	return rows, changes
}

// check checks the numbers of rows.
func (c *changesKit[K]) check(how statebackend.Freezing, changes bool, want int) {
	c.t.Helper()
	rows, are := c.freeze(how)
	for _, name := range []string{"value", "list", "map"} {
		if are[name] != changes || rows[name] != want {
			c.t.Errorf("%s: %d rows, changes: %v; want %d, %v", name, rows[name], are[name], want, changes)
		}
	}
}

func changesSince() statebackend.Freezing { return statebackend.Freezing{Anchor: true, Changes: true} }

func TestChangesAreNoMoreThanHasChanged(t *testing.T) {
	t.Run("words", func(t *testing.T) { testChanges(t, func(n int) int64 { return int64(n) }) })
	t.Run("rows", func(t *testing.T) { testChanges(t, func(n int) string { return fmt.Sprint(n) }) })
}

func testChanges[K comparable](t *testing.T, key func(int) K) {
	c := newChangesKit(t, 5000, key)
	c.check(changesSince(), true, 0)
	c.write(c.keys[:100], 2)
	c.write(c.keys[:50], 2) // the lists grow again
	rows, _ := c.freeze(statebackend.Freezing{Changes: true})
	if rows["value"] != 100 || rows["list"] != 150 || rows["map"] != 100 {
		t.Errorf("%v rows after 100 keys were changed and 50 of them twice", rows)
	}
	rows, _ = c.freeze(statebackend.Freezing{})
	if rows["value"] != 5000 || rows["list"] != 5150 || rows["map"] != 5100 {
		t.Errorf("a savepoint has %v rows", rows)
	}
	again, changes := c.freeze(changesSince())
	if again["value"] != 100 || again["list"] != 150 || again["map"] != 100 || !changes["value"] {
		t.Errorf("%v rows after a savepoint, changes: %v", again, changes)
	}
	c.check(changesSince(), true, 0)
	v := int64(5)
	for i := range 30 { // what was there is told, what came and went is not
		c.run(c.keys[1000+i], key(100_000+i))
		ok(t, c.value.Save(1, unsafe.Pointer(&v)))
		ok(t, c.list.Append(1, unsafe.Pointer(&v)))
		ok(t, c.maps.Save(1, unsafe.Pointer(&v), unsafe.Pointer(&v)))
		for k := range 2 {
			ok(t, c.value.Delete(k))
			ok(t, c.list.Delete(k))
			ok(t, c.maps.Delete(k))
		}
	}
	c.check(changesSince(), true, 30)
	c.checkClosed()
}

// TestReadingIsNoChange reads all keys, by lookaheads and one by one.
func TestReadingIsNoChange(t *testing.T) {
	t.Run("words", func(t *testing.T) { testReading(t, func(n int) int64 { return int64(n) }) })
	t.Run("rows", func(t *testing.T) { testReading(t, func(n int) string { return fmt.Sprint(n) }) })
}

func testReading[K comparable](t *testing.T, key func(int) K) {
	c := newChangesKit(t, 2000, key)
	var v int64
	for from := 0; from < len(c.keys); from += block {
		c.run(c.keys[from:min(len(c.keys), from+block)]...)
		for i := range c.kit.keys {
			if p := c.value.Find(i); p == nil || !c.value.Has(i) {
				t.Fatalf("key %d is not there", from+i)
			}
			_, err := c.value.Load(i, unsafe.Pointer(&v))
			ok(t, err)
			ok(t, c.list.Each(i, unsafe.Pointer(&v), func() bool { return true }))
			ok(t, c.maps.Each(i, unsafe.Pointer(&v), unsafe.Pointer(&v), func() bool { return true }))
		}
		if len(c.value.Lookahead().Slots) > 0 {
			t.Fatal("slots may be written to whose change is not noted")
		}
	}
	c.check(changesSince(), true, 0)
	c.checkClosed()
}

// TestTablesThatHaveChangedMostlyAreFrozenWhole changes all keys, or forgets them.
func TestTablesThatHaveChangedMostlyAreFrozenWhole(t *testing.T) {
	c := newChangesKit(t, 2000, func(n int) int64 { return int64(n) })
	c.write(c.keys, 1)
	rows, changes := c.freeze(changesSince())
	if changes["value"] || changes["map"] || !changes["list"] || rows["value"] != 2000 || rows["list"] != 2000 || rows["map"] != 2000 {
		t.Errorf("changes: %v, %v rows", changes, rows)
	}
	for from := 0; from < len(c.keys); from += block {
		c.run(c.keys[from:min(len(c.keys), from+block)]...)
		for i := range c.kit.keys {
			ok(t, c.value.Delete(i))
			ok(t, c.list.Delete(i))
			ok(t, c.maps.Delete(i))
		}
	}
	c.check(changesSince(), false, 0)
	c.checkClosed()
}

// TestWhatCannotBeNotedIsFrozenWhole notes changes and removals without memory.
func TestWhatCannotBeNotedIsFrozenWhole(t *testing.T) {
	c := newChangesKit(t, 5000, func(n int) int64 { return int64(n) })
	c.memory.limit = c.memory.held + 100
	c.run(c.keys[:200]...)
	v := int64(9)
	for i := range 200 {
		ok(t, c.value.Save(i, unsafe.Pointer(&v)))
		ok(t, c.maps.Delete(i))
		ok(t, c.list.Delete(i))
	}
	c.memory.limit = 0
	rows, changes := c.freeze(changesSince())
	if changes["value"] || changes["list"] || changes["map"] || rows["value"] != 5000 || rows["list"] != 4800 || rows["map"] != 4800 {
		t.Errorf("changes: %v, %v rows", changes, rows)
	}
	c.check(statebackend.Freezing{Changes: true}, true, 0)
	c.checkClosed()
}

// TestSnapshotsOfChangesKeepLittle updates all keys while a snapshot of few changes is open.
func TestSnapshotsOfChangesKeepLittle(t *testing.T) {
	c := newChangesKit(t, 5000, func(n int) int64 { return int64(n) })
	c.write(c.keys[100:110], 2)
	f, err := c.store.Freeze(changesSince())
	ok(t, err)
	before := f.(*frozen).held.Load()
	c.write(c.keys, 3)
	if n := f.(*frozen).held.Load() - before; n <= 0 || n > 60_000 {
		t.Errorf("%d bytes were copied for ten entries of each table", n)
	}
	for _, table := range f.Tables() {
		n := 0
		for r, err := range table.Rows {
			ok(t, err)
			if n++; r.Value[0] != 2 {
				t.Errorf("%s: a value of %d", table.Name, r.Value[0])
			}
		}
		if n != 10 {
			t.Errorf("%s: %d rows", table.Name, n)
		}
	}
	f.Release()
	c.run(c.keys[0])
	c.checkClosed()
}

// TestChangesThatNobodyReadsCostNothing releases snapshots of changes unread.
func TestChangesThatNobodyReadsCostNothing(t *testing.T) {
	c := newChangesKit(t, 5000, func(n int) int64 { return int64(n) })
	state := c.memory.held
	for range 3 {
		c.run(c.keys[:100]...)
		for i := range 100 {
			ok(t, c.maps.Delete(i))
		}
		c.write(c.keys[:100], 1)
		f, err := c.store.Freeze(changesSince())
		ok(t, err)
		f.Release()
	}
	c.check(changesSince(), true, 0)
	if c.memory.held > state+100_000 {
		t.Errorf("%d bytes are held, %d before", c.memory.held, state)
	}
	c.checkClosed()
}

// TestChangesThatHaveExpiredAreDeleted writes again what a base has, and lets it expire: no clock, however wrong it is when
// the changes are merged, finds the value of the base alive.
func TestChangesThatHaveExpiredAreDeleted(t *testing.T) {
	k := newKit[int64](t)
	mk, err := serde.KeyOf[int64]()
	ok(t, err)
	ttl := &statebackend.TTL{Millis: 10}
	value, err := k.store.Table(statebackend.TableSpec{Name: "value", Value: handle[int64](t), TTL: ttl})
	ok(t, err)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "map", Value: handle[int64](t), MapKey: mk, TTL: ttl})
	ok(t, err)
	write := func(n int64) {
		for i := range n {
			k.run(i)
			ok(t, value.Save(0, unsafe.Pointer(&i)))
			ok(t, maps.Save(0, unsafe.Pointer(&i), unsafe.Pointer(&i)))
		}
	}
	write(100)
	f, err := k.store.Freeze(statebackend.Freezing{Anchor: true})
	ok(t, err)
	f.Release()
	k.now = 5
	write(7)
	k.now = 20
	f, err = k.store.Freeze(changesSince())
	ok(t, err)
	for _, table := range f.Tables() {
		n := 0
		for r, err := range table.Rows {
			ok(t, err)
			n++
			if !r.Deleted || len(r.Value) > 0 || (r.MapKey == nil) != (table.Name == "value") {
				t.Errorf("%s: key %x, entry %x: deleted is %v", table.Name, r.Key, r.MapKey, r.Deleted)
			}
		}
		if n != 7 || !table.Changes {
			t.Errorf("%s: %d rows, changes: %v", table.Name, n, table.Changes)
		}
	}
	f.Release()
	k.run(0)
	k.checkClosed()
}
