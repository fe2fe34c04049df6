package heap

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// TestReadsCopyNothing reads state in all ways while a snapshot is open.
func TestReadsCopyNothing(t *testing.T) {
	t.Run("words", func(t *testing.T) { testReads(t, func(n int) int64 { return int64(n) }) })
	t.Run("rows", func(t *testing.T) { testReads(t, func(n int) string { return fmt.Sprint(n) }) })
}

func testReads[K comparable](t *testing.T, key func(int) K) {
	k := newKit[K](t)
	mk, err := serde.KeyOf[string]()
	ok(t, err)
	fixed, err := k.store.Table(statebackend.TableSpec{Name: "fixed", Value: handle[int64](t)})
	ok(t, err)
	text, err := k.store.Table(statebackend.TableSpec{Name: "text", Value: handle[string](t)})
	ok(t, err)
	list, err := k.store.List(statebackend.TableSpec{Name: "list", Value: handle[int64](t), List: true})
	ok(t, err)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "map", Value: handle[int64](t), MapKey: mk})
	ok(t, err)
	keys := make([]K, 500)
	for i := range keys {
		keys[i] = key(i)
	}
	k.run(keys...)
	name, n := "name", int64(0)
	for i := range keys {
		n = int64(i)
		ok(t, fixed.Save(i, unsafe.Pointer(&n)))
		ok(t, text.Save(i, unsafe.Pointer(&name)))
		ok(t, list.Append(i, unsafe.Pointer(&n)))
		ok(t, maps.Save(i, unsafe.Pointer(&name), unsafe.Pointer(&n)))
	}
	if len(fixed.Lookahead().Slots) == 0 {
		t.Fatal("the table did not look ahead")
	}
	f, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	if len(fixed.Lookahead().Slots) != 0 {
		t.Error("slots may be written to that a snapshot needs")
	}
	for i := range keys {
		if p := fixed.Find(i); p == nil || *(*int64)(p) != int64(i) || !fixed.Has(i) || list.Count(i) != 1 {
			t.Fatalf("key %d is not as it was", i)
		}
		_, err := text.Load(i, unsafe.Pointer(&name))
		ok(t, err)
		ok(t, list.Each(i, unsafe.Pointer(&n), func() bool { return true }))
		_, err = maps.Load(i, unsafe.Pointer(&name), unsafe.Pointer(&n))
		ok(t, err)
		ok(t, maps.Each(i, unsafe.Pointer(&name), unsafe.Pointer(&n), func() bool { return true }))
	}
	ok(t, fixed.Range(func(*statebackend.Entry) bool { return true }))
	if n := f.(*frozen).held.Load(); n != 0 {
		t.Errorf("reading copied %d bytes", n)
	}
	f.Release()
	k.run(keys[0])
	k.checkClosed()
}

// TestEmptiedTablesLeavePagesToSnapshots drops all pages of a table, among them one that was empty before, and fills it
// again, while two snapshots are open.
func TestEmptiedTablesLeavePagesToSnapshots(t *testing.T) {
	t.Run("words", func(t *testing.T) { testEmptied(t, func(n int) int64 { return int64(n) }) })
	t.Run("rows", func(t *testing.T) { testEmptied(t, func(n int) string { return fmt.Sprint(n) }) })
}

func testEmptied[K comparable](t *testing.T, key func(int) K) {
	k := newKit[K](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[int64](t)})
	ok(t, err)
	for i := range 8000 {
		n := int64(i)
		k.run(key(i))
		ok(t, table.Save(0, unsafe.Pointer(&n)))
	}
	// All but the first page in which a key may lie is emptied.
	page := func() int {
		switch x := table.(*valueTable).ix.(type) {
		case *wordIndex:
			return int(x.ids[k.hashes[0]>>x.shift])
		case *rowIndex:
			_, id := x.locate(0, k.hashes[0])
			return int(id >> x.rows.bits)
		}
		return 0
	}
	var rest []K
	for i := range 8000 {
		k.run(key(i))
		if page() == 1 {
			rest = append(rest, key(i))
			continue
		}
		ok(t, table.Delete(0))
	}
	want := freeze(t, k.store)
	a, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	b, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	for _, x := range rest {
		k.run(x)
		ok(t, table.Delete(0))
	}
	for i := range 3000 {
		n := int64(-1)
		k.run(key(i + 100_000))
		ok(t, table.Save(0, unsafe.Pointer(&n)))
	}
	if k.memory.held != k.store.MemoryBytes() || a.(*frozen).held.Load() < 2*int64(a.(*frozen).shadows[0].bytes) {
		t.Errorf("budget holds %d bytes, store %d, %d of them for a snapshot", k.memory.held, k.store.MemoryBytes(), a.(*frozen).held.Load())
	}
	sameRows(t, readAll(t, a).tables["v"], want.tables["v"])
	sameRows(t, readAll(t, b).tables["v"], want.tables["v"])
	if len(want.tables["v"].rows) != len(rest) || len(rest) < 100 || table.Len() != 3000 {
		t.Errorf("%d rows of %d; %d values", len(want.tables["v"].rows), len(rest), table.Len())
	}
	k.run(key(0))
	k.checkClosed()
}

// TestCompactionsAloneLeaveSnapshotsAlone begins a snapshot when arenas are full of garbage; nothing but compactions
// touches pages then.
func TestCompactionsAloneLeaveSnapshotsAlone(t *testing.T) {
	k := newKit[string](t)
	mk, err := serde.KeyOf[string]()
	ok(t, err)
	text, err := k.store.Table(statebackend.TableSpec{Name: "text", Value: handle[string](t)})
	ok(t, err)
	encoded, err := k.store.Table(statebackend.TableSpec{Name: "encoded", Value: handle[[]string](t)})
	ok(t, err)
	list, err := k.store.List(statebackend.TableSpec{Name: "list", Value: handle[string](t), List: true})
	ok(t, err)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "map", Value: handle[string](t), MapKey: mk})
	ok(t, err)
	const n = 2000
	key := func(i int) string { return fmt.Sprint(strings.Repeat("key", 50), i) }
	for i := range n {
		s := fmt.Sprint(strings.Repeat("value", 50), i)
		v := []string{s}
		k.run(key(i))
		ok(t, text.Save(0, unsafe.Pointer(&s)))
		ok(t, encoded.Save(0, unsafe.Pointer(&v)))
		ok(t, list.Append(0, unsafe.Pointer(&s)))
		ok(t, maps.Save(0, unsafe.Pointer(&s), unsafe.Pointer(&s)))
	}
	for i := range n {
		if i%8 != 0 {
			k.run(key(i))
			ok(t, text.Delete(0))
			ok(t, encoded.Delete(0))
			ok(t, list.Delete(0))
			ok(t, maps.Delete(0))
			for _, table := range k.store.tables { // not yet
				switch table := table.(type) {
				case *valueTable:
					table.care.credit = 0
				case *listTable:
					table.care.credit = 0
				case *mapTable:
					table.care.credit = 0
				}
			}
		}
	}
	state := k.memory.held
	want := freeze(t, k.store)
	f, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	idle := make([]string, sweepEvery)
	for range 300 {
		k.run(idle...)
	}
	got := readAll(t, f)
	for _, name := range want.names {
		sameRows(t, got.tables[name], want.tables[name])
	}
	k.run(idle...)
	if k.memory.held > state/2 {
		t.Errorf("%d of %d bytes are held: nothing was compacted", k.memory.held, state)
	}
	k.checkClosed()
}

// TestTheLastRecordIsNotWrittenOver deletes the only encoded value and writes another.
func TestTheLastRecordIsNotWrittenOver(t *testing.T) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[[]string](t)})
	ok(t, err)
	one, two := []string{"one"}, []string{"two"}
	k.run(1)
	ok(t, table.Save(0, unsafe.Pointer(&one)))
	f, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	ok(t, table.Delete(0))
	ok(t, table.Save(0, unsafe.Pointer(&two)))
	if got := readAll(t, f).tables["v"].rows; len(got) != 1 || !strings.HasSuffix(string(got[0].Value), "one") {
		t.Errorf("the snapshot holds %v", got)
	}
	k.checkClosed()
}

// TestOneKeyGroupHoldsAll reads a snapshot of a store whose pages lie in one key group wholly.
func TestOneKeyGroupHoldsAll(t *testing.T) {
	k := restoredKit[int64](t, nil, func(o *statebackend.Options) { o.MaxParallelism, o.FirstGroup, o.LastGroup = 1, 0, 0 })
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[int64](t)})
	ok(t, err)
	const n = 60_000
	keys := make([]int64, n)
	for i := range keys {
		keys[i] = int64(i)
	}
	write := func(v int64) {
		for from := 0; from < n; from += block {
			k.run(keys[from:min(n, from+block)]...)
			for i := range k.keys {
				ok(t, table.Save(i, unsafe.Pointer(&v)))
			}
		}
	}
	write(1)
	f, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	seen := map[string]bool{}
	for r, err := range f.Tables()[0].Rows {
		ok(t, err)
		if len(seen) == n/2 {
			sh := f.(*frozen).shadows[0]
			for i := range sh.states {
				if sh.states[i].Load() == pageReading {
					t.Fatalf("page %d is held while rows are shown", i)
				}
			}
			write(2)
		}
		if r.Value[0] != 1 {
			t.Fatalf("key %x holds %x", r.Key, r.Value)
		}
		seen[string(r.Key)] = true
	}
	if len(seen) != n {
		t.Errorf("%d keys, want %d", len(seen), n)
	}
	f.Release()
	k.run(0)
	k.checkClosed()
}

// TestKeysWithEqualTagsAreTouchedBoth writes through the lookahead to a row that is not the first one with its tag.
func TestKeysWithEqualTagsAreTouchedBoth(t *testing.T) {
	k := newKit[string](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[int64](t)})
	ok(t, err)
	tags := map[uint64]string{}
	var first, second string
	for i := 0; second == ""; i++ {
		s := fmt.Sprint("key ", i)
		h := tagOf(k.key.HashOne([]byte(s), testSeed))
		if first = tags[h]; first != "" {
			second = s
		}
		tags[h] = s
	}
	n := int64(1)
	save := func(s string) {
		k.run(s)
		ok(t, table.Save(0, unsafe.Pointer(&n)))
	}
	save(first)
	for i := range 2 * pageSlots { // the second row lies in another page of the slab
		save(fmt.Sprint("filler ", i))
	}
	save(second)
	f, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	var run []string // rows of the first page, but for the last one
	for i := range 20 {
		run = append(run, fmt.Sprint("filler ", i))
	}
	k.run(append(run, second)...)
	n = 2
	for i := range run {
		ok(t, table.Save(i, unsafe.Pointer(&n)))
	}
	ahead := table.Lookahead().Slots
	if len(ahead) != len(run)+1 || ahead[len(run)] == nil {
		t.Fatalf("the lookahead has %d slots", len(ahead))
	}
	*(*int64)(ahead[len(run)]) = 2
	for _, r := range readAll(t, f).tables["v"].rows {
		if r.Value[0] != 1 {
			t.Errorf("the snapshot holds %x of %q", r.Value, r.Key)
		}
	}
	k.run(second)
	k.checkClosed()
}
