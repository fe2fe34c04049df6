package heap

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// TestUpdaterLeavesAPageThatIsBeingRead changes a page while the writer holds it: the writer keeps the old one.
func TestUpdaterLeavesAPageThatIsBeingRead(t *testing.T) {
	t.Run("words", func(t *testing.T) { testHeldPage(t, func(n int) int64 { return int64(n + 1) }) })
	t.Run("rows", func(t *testing.T) { testHeldPage(t, func(n int) string { return fmt.Sprint(n) }) })
}

func testHeldPage[K comparable](t *testing.T, key func(int) K) {
	k := newKit[K](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[int64](t)})
	ok(t, err)
	keys := make([]K, 500)
	for i := range keys {
		keys[i] = key(i)
	}
	write := func(v int64) {
		k.run(keys...)
		for i := range keys {
			x := v + int64(i)
			ok(t, table.Save(i, unsafe.Pointer(&x)))
		}
	}
	write(1000)
	want := freeze(t, k.store)
	a, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	b, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	sh := a.(*frozen).shadows[0]
	view, held := sh.view(0)
	if !held || view.kept != nil {
		t.Fatal("the page is not as it was")
	}
	before := string(bytesAt(view.base, view.bytes))
	state := k.memory.held
	write(2000)
	if string(bytesAt(view.base, view.bytes)) != before {
		t.Error("the page changed while it was being read")
	}
	sh.unhold(0)
	if got := sh.states[0].Load(); got != pageLeft {
		t.Errorf("the page is in state %d", got)
	}
	if extra := k.memory.held - state; extra < int64(view.bytes) || extra > 2*int64(view.bytes+view.keptBytes()) {
		t.Errorf("%d bytes are kept for two snapshots of a page of %d", extra, view.bytes)
	}
	sameRows(t, readAll(t, a).tables["v"], want.tables["v"])
	write(3000)
	sameRows(t, readAll(t, b).tables["v"], want.tables["v"])
	k.run(keys...)
	for i := range keys {
		var v int64
		found, err := table.Load(i, unsafe.Pointer(&v))
		if ok(t, err); !found || v != 3000+int64(i) {
			t.Fatalf("key %d holds %d", i, v)
		}
	}
	if k.memory.held != state {
		t.Errorf("%d bytes are held after the snapshots, %d before", k.memory.held, state)
	}
	k.checkClosed()
}

// TestPagesThatNobodyTouchesAreNotCopied reads a snapshot of many pages while few are changed.
func TestPagesThatNobodyTouchesAreNotCopied(t *testing.T) {
	c := newCounter[int64](t)
	keys := make([]int64, block)
	for i := range int64(400) {
		for j := range keys {
			keys[j] = i*block + int64(j)
		}
		c.count(keys)
	}
	state := c.memory.held
	f, err := c.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	if c.memory.held != state {
		t.Errorf("freezing reserved %d bytes", c.memory.held-state)
	}
	for range 100 {
		c.count(keys[:3])
	}
	if n := f.(*frozen).held.Load(); n <= 0 || n > copyChunk+mostTables {
		t.Errorf("%d bytes were copied for three keys", n)
	}
	if got := readAll(t, f).tables["count"]; len(got.rows) != 400*block {
		t.Errorf("%d rows", len(got.rows))
	}
	if c.memory.held != state {
		t.Errorf("%d bytes are left after the release", c.memory.held-state)
	}
	c.checkClosed()
}

// TestCopiesDrawOnTheBudget lets no copy be made: the update fails, names the operator and changes nothing.
func TestCopiesDrawOnTheBudget(t *testing.T) {
	mk, err := serde.KeyOf[string]()
	ok(t, err)
	k := newKit[int64](t)
	fixed, err := k.store.Table(statebackend.TableSpec{Name: "fixed", Value: handle[int64](t)})
	ok(t, err)
	wide, err := k.store.Table(statebackend.TableSpec{Name: "wide", Value: handle[[20]int64](t)})
	ok(t, err)
	list, err := k.store.List(statebackend.TableSpec{Name: "list", Value: handle[string](t), List: true})
	ok(t, err)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "map", Value: handle[int64](t), MapKey: mk})
	ok(t, err)
	v, row, text := int64(5), [20]int64{7}, "text"
	k.run(1, 2, 3)
	for i := range 3 {
		ok(t, fixed.Save(i, unsafe.Pointer(&v)))
		ok(t, wide.Save(i, unsafe.Pointer(&row)))
		ok(t, list.Append(i, unsafe.Pointer(&text)))
		ok(t, maps.Save(i, unsafe.Pointer(&text), unsafe.Pointer(&v)))
	}
	want := freeze(t, k.store)
	f, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	k.memory.limit = k.memory.held
	var out [3]unsafe.Pointer
	var fresh [3]bool
	other := "other"
	for name, write := range map[string]func() error{
		"save":        func() error { return fixed.Save(1, unsafe.Pointer(&v)) },
		"slots":       func() error { return fixed.Slots(0, 3, out[:], fresh[:]) },
		"delete":      func() error { return fixed.Delete(1) },
		"save wide":   func() error { return wide.Save(1, unsafe.Pointer(&row)) },
		"delete wide": func() error { return wide.Delete(1) },
		"append":      func() error { return list.Append(1, unsafe.Pointer(&text)) },
		"clear list":  func() error { return list.Delete(1) },
		"put":         func() error { return maps.Save(1, unsafe.Pointer(&text), unsafe.Pointer(&v)) },
		"put other":   func() error { return maps.Save(1, unsafe.Pointer(&other), unsafe.Pointer(&v)) },
		"remove":      func() error { _, err := maps.Remove(1, unsafe.Pointer(&text)); return err },
		"clear map":   func() error { return maps.Delete(1) },
	} {
		err := write()
		if !errors.Is(err, statebackend.ErrOutOfMemory) || !errors.Is(err, errFull) {
			t.Fatalf("%s: got %v", name, err)
		}
		if !strings.Contains(err.Error(), `operator "test"`) || !strings.Contains(err.Error(), "state") {
			t.Errorf("%s: %q names neither operator nor state", name, err)
		}
	}
	for table, err := range map[string]error{"fixed": firstError(f, "fixed"), "list": firstError(f, "list")} {
		if !errors.Is(err, statebackend.ErrOutOfMemory) || !strings.Contains(err.Error(), `operator "test": snapshot of state "`+table) {
			t.Errorf("reading %s without memory: %v", table, err)
		}
	}
	k.memory.limit = 0
	f.Release()
	again := freeze(t, k.store)
	for _, name := range want.names {
		sameRows(t, again.tables[name], want.tables[name])
	}
	k.checkClosed()
}

// firstError is the error of reading a table.
func firstError(f statebackend.Frozen, table string) error {
	for _, t := range f.Tables() {
		if t.Name == table {
			for _, err := range t.Rows {
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// TestSnapshotsOutliveTheStore closes the store before the writer has read anything.
func TestSnapshotsOutliveTheStore(t *testing.T) {
	k := newKit[string](t)
	value, err := k.store.Table(statebackend.TableSpec{Name: "value", Value: handle[[]string](t)})
	ok(t, err)
	list, err := k.store.List(statebackend.TableSpec{Name: "list", Value: handle[string](t), List: true})
	ok(t, err)
	for i := range 5000 {
		s := fmt.Sprint("key ", i)
		v := []string{s, s}
		k.run(s)
		ok(t, value.Save(0, unsafe.Pointer(&v)))
		ok(t, list.Append(0, unsafe.Pointer(&s)))
	}
	want := freeze(t, k.store)
	f, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	for i := range 5000 {
		k.run(fmt.Sprint("key ", i))
		ok(t, list.Delete(0)) // the last one drops all pages
	}
	state := k.memory.held
	ok(t, k.store.Close())
	if k.memory.held < state/2 {
		t.Errorf("%d of %d bytes are held for the snapshot", k.memory.held, state)
	}
	got := readAll(t, f)
	for _, name := range want.names {
		sameRows(t, got.tables[name], want.tables[name])
	}
	if k.memory.held != 0 {
		t.Errorf("%d bytes are held after the release", k.memory.held)
	}
}

// TestSnapshotsHoldTheValuesOfTheBarrier is trap B024: values are changed behind pointers and through addresses of slots
// after the snapshot was taken and before it is read.
func TestSnapshotsHoldTheValuesOfTheBarrier(t *testing.T) {
	t.Run("words", func(t *testing.T) { testBarrier(t, func(n int) int64 { return int64(n) }) })
	t.Run("rows", func(t *testing.T) { testBarrier(t, func(n int) string { return fmt.Sprint(n) }) })
}

func testBarrier[K comparable](t *testing.T, key func(int) K) {
	type counter struct{ N *int64 }
	k := newKit[K](t)
	pointed, err := k.store.Table(statebackend.TableSpec{Name: "pointed", Value: handle[counter](t)})
	ok(t, err)
	plain, err := k.store.Table(statebackend.TableSpec{Name: "plain", Value: handle[int64](t)})
	ok(t, err)
	keys := make([]K, 1000)
	for i := range keys {
		keys[i] = key(i)
	}
	n := int64(7)
	v := counter{&n}
	slots, fresh := make([]unsafe.Pointer, len(keys)), make([]bool, len(keys))
	update := func() {
		k.run(keys...)
		for i := range keys {
			ok(t, pointed.Save(i, unsafe.Pointer(&v)))
		}
		ok(t, plain.Slots(0, len(keys), slots, fresh))
		for _, p := range slots {
			*(*int64)(p) += n
		}
	}
	update()
	f, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	for range 20 {
		n++
		update()
	}
	got := readAll(t, f)
	for _, name := range got.names {
		rows := got.tables[name].rows
		if len(rows) != len(keys) {
			t.Errorf("%s: %d rows", name, len(rows))
		}
		for _, r := range rows {
			if last := r.Value[len(r.Value)-8:]; string(last) != "\x07\x00\x00\x00\x00\x00\x00\x00" {
				t.Fatalf("%s: key %x holds %x, not 7", name, r.Key, r.Value)
			}
		}
	}
	k.run(keys[0])
	k.checkClosed()
}

// TestSweepsLeaveSnapshotsAlone lets state expire and be swept that a snapshot holds, with nothing else going on.
func TestSweepsLeaveSnapshotsAlone(t *testing.T) {
	t.Run("words", func(t *testing.T) { testSweep(t, func(n int) int64 { return int64(n) }) })
	t.Run("rows", func(t *testing.T) { testSweep(t, func(n int) string { return fmt.Sprint(n) }) })
}

func testSweep[K comparable](t *testing.T, key func(int) K) {
	k := newKit[K](t)
	mk, err := serde.KeyOf[string]()
	ok(t, err)
	spec := statebackend.TableSpec{Name: "value", Value: handle[int64](t), TTL: &statebackend.TTL{Millis: 10}}
	value, err := k.store.Table(spec)
	ok(t, err)
	spec.Name, spec.Value = "encoded", handle[[]string](t)
	encoded, err := k.store.Table(spec)
	ok(t, err)
	spec.Name, spec.List = "list", true
	list, err := k.store.List(spec)
	ok(t, err)
	spec.Name, spec.List, spec.MapKey = "map", false, mk
	maps, err := k.store.Map(spec)
	ok(t, err)
	keys := make([]K, 3000)
	for i := range keys {
		keys[i] = key(i)
	}
	k.run(keys...)
	for i := range keys {
		n, v, name := int64(i), []string{fmt.Sprint(i)}, "entry"
		ok(t, value.Save(i, unsafe.Pointer(&n)))
		ok(t, encoded.Save(i, unsafe.Pointer(&v)))
		ok(t, list.Append(i, unsafe.Pointer(&v)))
		ok(t, maps.Save(i, unsafe.Pointer(&name), unsafe.Pointer(&v)))
	}
	want := freeze(t, k.store)
	f, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	k.now = 100
	for range 100 {
		k.run(keys[:sweepEvery]...)
	}
	if value.Len()+encoded.Len()+list.Len()+maps.Len() != 0 {
		t.Errorf("%d values, %d encoded, %d lists and %d entries were not swept", value.Len(), encoded.Len(), list.Len(), maps.Len())
	}
	got := readAll(t, f)
	for _, name := range want.names {
		sameRows(t, got.tables[name], want.tables[name])
	}
	k.run(keys[0])
	k.checkClosed()
}

// TestSnapshotsUseTheChunksOfEarlierOnes takes one snapshot after the other of a table that is updated.
func TestSnapshotsUseTheChunksOfEarlierOnes(t *testing.T) {
	c := newCounter[int64](t)
	keys := make([]int64, block)
	update := func() {
		for i := range int64(200) {
			for j := range keys {
				keys[j] = i*block + int64(j)
			}
			c.count(keys)
		}
	}
	update()
	g := c.table.(*valueTable).pages()[0].guard
	var first []unsafe.Pointer
	for n := range 3 {
		want := freeze(t, c.store)
		f, err := c.store.Freeze(statebackend.Freezing{})
		ok(t, err)
		update()
		sh := f.(*frozen).shadows[0]
		used := slices.DeleteFunc(slices.Clone(sh.copies), func(p unsafe.Pointer) bool { return p == nil })
		if len(used) < 5 || n > 0 && len(used) != len(first) {
			t.Fatalf("%d chunks, %d before", len(used), len(first))
		}
		for _, p := range used {
			if n > 0 && !slices.Contains(first, p) {
				t.Fatal("a new chunk was made")
			}
		}
		first = used
		sameRows(t, readAll(t, f).tables["count"], want.tables["count"])
		c.run(0)
	}
	if len(g.spare) != len(first) {
		t.Errorf("%d of %d chunks are kept", len(g.spare), len(first))
	}
	for range idleRuns + 2 {
		c.run(0)
	}
	if g.spare != nil {
		t.Error("chunks are kept that nobody uses")
	}
	c.checkClosed()
}
