package heap

import (
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// newIntMap opens a map int64 -> int64 with the entries 0..n-1 for key 1.
func newIntMap(t *testing.T, n int64) (*kit[int64], statebackend.MapTable) {
	k := newKit[int64](t)
	mk, err := serde.KeyOf[int64]()
	ok(t, err)
	table, err := k.store.Map(statebackend.TableSpec{Name: "m", Value: handle[int64](t), MapKey: mk})
	ok(t, err)
	k.run(1, 2)
	for i := range n {
		ok(t, table.Save(0, unsafe.Pointer(&i), unsafe.Pointer(&i)))
	}
	return k, table
}

// iterate lists the map's keys and calls f for each.
func iterate(t *testing.T, table statebackend.MapTable, f func(k int64)) (seen []int64) {
	var k, v int64
	ok(t, table.Each(0, unsafe.Pointer(&k), unsafe.Pointer(&v), func() bool {
		seen = append(seen, k)
		if len(seen) > 100 {
			t.Fatal("the iteration does not end")
		}
		f(k)
		return true
	}))
	return seen
}

func TestLargeMapIsDeletedAtOnceAndBuriedInSteps(t *testing.T) {
	const n = 3 * doomFrom
	k, table := newIntMap(t, n)
	full := k.memory.held
	ok(t, table.Delete(0))
	if table.Len() != 0 || table.Count(0) != 0 || len(iterate(t, table, func(int64) {})) != 0 {
		t.Error("the deleted map is still seen")
	}
	ok(t, table.Range(func(*statebackend.Entry) bool {
		t.Error("Range shows an entry of a deleted map")
		return false
	}))
	one := int64(1)
	ok(t, table.Save(0, unsafe.Pointer(&one), unsafe.Pointer(&one)))
	m := table.(*mapTable)
	if m.entries.length() <= n/2 {
		t.Errorf("the delete itself dropped all but %d rows", m.entries.length())
	}
	for range 40 {
		k.run(make([]int64, sweepEvery)...)
	}
	k.run(1)
	if got := iterate(t, table, func(int64) {}); len(got) != 1 || table.Len() != 1 || m.entries.length() != 1 || m.owners.length() != 1 {
		t.Errorf("saw %v, Len %d, %d rows of %d maps", got, table.Len(), m.entries.length(), m.owners.length())
	}
	ok(t, table.Delete(0))
	if k.memory.held > full/2 {
		t.Errorf("%d of %d bytes are left", k.memory.held, full)
	}
	k.checkClosed()
}

func TestExpiryLeavesTheRowsOfDeletedMapsToTheirBurial(t *testing.T) {
	k := newKit[int64](t)
	table, err := k.store.Map(statebackend.TableSpec{Name: "m", Value: handle[int64](t), MapKey: k.key, TTL: ttl(10)})
	ok(t, err)
	m := table.(*mapTable)
	k.run(1, 2)
	for i := range int64(2 * doomFrom) {
		ok(t, table.Save(0, unsafe.Pointer(&i), unsafe.Pointer(&i)))
	}
	ok(t, table.Delete(0))
	ok(t, table.Save(1, unsafe.Pointer(&k.keys[1]), unsafe.Pointer(&k.keys[1])))
	k.now = 100
	m.care.expiry = 2 // not where the burial is
	for range 20 {
		k.run(make([]int64, sweepEvery)...)
	}
	if table.Len() != 0 || m.entries.length() != 0 || m.owners.length() != 0 || m.dead != 0 || m.owners.rows.live != 0 {
		t.Errorf("Len %d, %d rows, %d maps of %d rows, %d dead", table.Len(), m.entries.length(), m.owners.length(), m.owners.rows.live, m.dead)
	}
	k.checkClosed()
}
