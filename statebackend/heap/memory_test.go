package heap

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// TestStringsOutliveCompaction keeps strings that Load gave while everything around them is rewritten and compacted.
func TestStringsOutliveCompaction(t *testing.T) {
	k := newKit[int64](t)
	h := handle[textValue](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: h})
	ok(t, err)
	cells := &table.(*valueTable).cells
	text := func(key, version int64) string {
		return fmt.Sprintf("%d/%d/%s", key, version, strings.Repeat("x", int(key%40)))
	}
	keys := make([]int64, 3000)
	for i := range keys {
		keys[i] = int64(i)
	}
	var kept []textValue
	compactions, moving := 0, false
	for version := range int64(60) {
		k.run(keys...)
		for i, key := range keys {
			v := textValue{N: version, S: text(key, version), T: text(key, 0)}
			ok(t, table.Save(i, unsafe.Pointer(&v)))
			if key%97 == 0 {
				var got textValue
				_, err := table.Load(i, unsafe.Pointer(&got))
				ok(t, err)
				kept = append(kept, got)
			}
		}
		if cells.arena.moving && !moving {
			compactions++
		}
		moving = cells.arena.moving
	}
	if compactions < 3 {
		t.Errorf("%d compactions, want several", compactions)
	}
	n := 0
	for version := range int64(60) {
		for key := int64(0); key < 3000; key += 97 {
			if v := kept[n]; v.S != text(key, version) || v.T != text(key, 0) || v.N != version {
				t.Fatalf("kept value %d of key %d, version %d became %v", n, key, version, v)
			}
			n++
		}
	}
	for i, key := range keys {
		var got textValue
		if found, err := table.Load(i, unsafe.Pointer(&got)); !found || err != nil || got.S != text(key, 59) {
			t.Fatalf("key %d: %v %v %v", key, got, found, err)
		}
	}
	k.checkClosed()
}

// TestMemoryFollowsTheState fills tables, deletes nine keys of ten and uses the rest.
func TestMemoryFollowsTheState(t *testing.T) {
	texts := make([]string, 20_000)
	for i := range texts {
		texts[i] = fmt.Sprintf("key number %d with some more text to it", i)
	}
	mk, err := serde.KeyOf[string]()
	ok(t, err)
	cases := map[string]func(k *kit[string]) (write, remove func(i int), length func() int){
		"values": func(k *kit[string]) (write, remove func(i int), length func() int) {
			table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[string](t)})
			ok(t, err)
			return func(i int) { ok(t, table.Save(i, unsafe.Pointer(&k.keys[i]))) },
				func(i int) { ok(t, table.Delete(i)) }, table.Len
		},
		"encoded": func(k *kit[string]) (write, remove func(i int), length func() int) {
			table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[[]string](t)})
			ok(t, err)
			return func(i int) {
				v := k.keys[i : i+1]
				ok(t, table.Save(i, unsafe.Pointer(&v)))
			}, func(i int) { ok(t, table.Delete(i)) }, table.Len
		},
		"lists": func(k *kit[string]) (write, remove func(i int), length func() int) {
			table, err := k.store.List(statebackend.TableSpec{Name: "v", Value: handle[string](t), List: true})
			ok(t, err)
			return func(i int) { ok(t, table.Append(i, unsafe.Pointer(&k.keys[i]))) },
				func(i int) { ok(t, table.Delete(i)) }, table.Len
		},
		"maps": func(k *kit[string]) (write, remove func(i int), length func() int) {
			table, err := k.store.Map(statebackend.TableSpec{Name: "v", Value: handle[string](t), MapKey: mk})
			ok(t, err)
			return func(i int) { ok(t, table.Save(i, unsafe.Pointer(&k.keys[i]), unsafe.Pointer(&k.keys[i]))) },
				func(i int) { ok(t, table.Delete(i)) }, table.Len
		},
	}
	for name, open := range cases {
		t.Run(name, func(t *testing.T) {
			k := newKit[string](t)
			write, remove, length := open(k)
			k.run(texts...)
			for i := range texts {
				write(i)
			}
			full := k.memory.held
			for i := range texts {
				if i%10 != 0 {
					remove(i)
				}
			}
			var rest []string
			for i := 0; i < len(texts); i += 10 {
				rest = append(rest, texts[i])
			}
			for range 100 {
				k.run(rest...)
			}
			if length() != len(rest) {
				t.Errorf("%d entries, want %d", length(), len(rest))
			}
			if k.memory.held > full*3/4 {
				t.Errorf("%d bytes of %d are left for a tenth of the state", k.memory.held, full)
			}
			for i := range rest {
				remove(i)
			}
			if k.memory.held > 400<<10 {
				t.Errorf("%d bytes are left for no state", k.memory.held)
			}
			k.checkClosed()
		})
	}
}

// TestWriteBeyondTheBudgetFails lets each allocation of a growing state fail once, and goes on after it.
func TestWriteBeyondTheBudgetFails(t *testing.T) {
	k := newKit[string](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "names", Value: handle[textValue](t)})
	ok(t, err)
	list, err := k.store.List(statebackend.TableSpec{Name: "list", Value: handle[string](t), List: true})
	ok(t, err)
	mk, err := serde.KeyOf[string]()
	ok(t, err)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "map", Value: handle[string](t), MapKey: mk})
	ok(t, err)
	refused := 0
	retry := func(write func() error) {
		k.memory.limit = k.memory.held
		err := write()
		k.memory.limit = 0
		if err == nil {
			return
		}
		refused++
		if !errors.Is(err, statebackend.ErrOutOfMemory) || !errors.Is(err, errFull) {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{`operator "test"`, "state", "disk backend", "bytes"} {
			if !strings.Contains(err.Error(), part) {
				t.Fatalf("%q does not say %q", err, part)
			}
		}
		ok(t, write())
	}
	const n = 6000
	for i := range n {
		s := fmt.Sprint("text ", i, strings.Repeat("y", i%100))
		v := textValue{N: int64(i), S: s}
		k.run(s)
		retry(func() error { return table.Save(0, unsafe.Pointer(&v)) })
		retry(func() error { return list.Append(0, unsafe.Pointer(&s)) })
		retry(func() error { return maps.Save(0, unsafe.Pointer(&s), unsafe.Pointer(&s)) })
	}
	if refused < 50 {
		t.Errorf("only %d writes were refused", refused)
	}
	if table.Len() != n || list.Len() != n || maps.Len() != n {
		t.Errorf("%d values, %d lists, %d entries; want %d", table.Len(), list.Len(), maps.Len(), n)
	}
	for i := range n {
		s := fmt.Sprint("text ", i, strings.Repeat("y", i%100))
		k.run(s)
		var v textValue
		var m string
		found, err := table.Load(0, unsafe.Pointer(&v))
		inMap, err2 := maps.Load(0, unsafe.Pointer(&s), unsafe.Pointer(&m))
		if !found || err != nil || v.S != s || v.N != int64(i) || list.Count(0) != 1 || !inMap || err2 != nil || m != s {
			t.Fatalf("key %q: value %v %v %v, list of %d, map %q %v %v", s, v, found, err, list.Count(0), m, inMap, err2)
		}
	}
	k.checkClosed()
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	run := make([]int64, block)
	texts := make([]string, block)
	for i := range run {
		run[i] = int64(i * 7)
		texts[i] = fmt.Sprint("key ", i)
	}
	mk, err := serde.KeyOf[string]()
	ok(t, err)
	ints, strs := newCounter[int64](t), newCounter[string](t)
	value, err := ints.store.Table(statebackend.TableSpec{Name: "text", Value: handle[textValue](t)})
	ok(t, err)
	list, err := ints.store.List(statebackend.TableSpec{Name: "list", Value: handle[string](t), List: true})
	ok(t, err)
	maps, err := strs.store.Map(statebackend.TableSpec{Name: "map", Value: handle[int64](t), MapKey: mk})
	ok(t, err)
	v := textValue{S: "some", T: "text"}
	cases := map[string]func(){
		"count words": func() { ints.count(run) },
		"count texts": func() { strs.count(texts) },
		"set and clear": func() {
			ints.count(run)
			for i := range run {
				ok(t, ints.table.Delete(i))
			}
		},
		"text values": func() {
			for i := range run {
				v.N++
				_, err := value.Load(i, unsafe.Pointer(&v))
				ok(t, err)
				ok(t, value.Save(i, unsafe.Pointer(&v)))
			}
		},
		"lists": func() {
			for i := range run {
				ok(t, list.Append(i, unsafe.Pointer(&v.S)))
				if list.Count(i) > 20 {
					ok(t, list.Delete(i))
				}
			}
		},
		"maps": func() {
			for i := range texts {
				slot, _, err := maps.Slot(i, unsafe.Pointer(&texts[i%7]))
				ok(t, err)
				*(*int64)(slot)++
			}
		},
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			ints.count(run)
			strs.count(texts)
			for range 100 {
				f()
			}
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("%v allocations per run", n)
			}
		})
	}
}

// TestSplitMovesOnePage bounds what a run may do when its table grows: pages are split one at a time, and the directory
// is small beside them.
func TestSplitMovesOnePage(t *testing.T) {
	c := newCounter[int64](t)
	x := c.table.(*valueTable).ix.(*wordIndex)
	most := 0
	keys := make([]int64, block)
	for i := range int64(2000) {
		for j := range keys {
			keys[j] = i*block + int64(j)
		}
		before := len(x.pages)
		c.count(keys)
		most = max(most, len(x.pages)-before)
	}
	if len(x.pages) < 500 || most > 40 {
		t.Errorf("%d pages, at most %d split in a run of %d keys", len(x.pages), most, block)
	}
	if dir := int64(len(x.dir)) * dirEntryBytes; dir*100 > c.table.MemoryBytes() {
		t.Errorf("the directory takes %d of %d bytes", dir, c.table.MemoryBytes())
	}
	if per := float64(c.table.MemoryBytes()) / float64(c.table.Len()); per > 2.5*16 {
		t.Errorf("%.1f bytes per key, more than 2.5 times 16", per)
	}
}

// TestCompactionStepsAreShort bounds what one step copies when records are large.
func TestCompactionStepsAreShort(t *testing.T) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[[]byte](t)})
	ok(t, err)
	a := table.(*valueTable).cells.arena
	keys := make([]int64, 1000)
	for i := range keys {
		keys[i] = int64(i)
	}
	k.run(keys...)
	value := make([]byte, 12<<10)
	for i := range keys {
		ok(t, table.Save(i, unsafe.Pointer(&value)))
	}
	for i := range keys[:600] {
		ok(t, table.Delete(i))
	}
	steps := 0
	idle := make([]int64, sweepEvery)
	for range 200 {
		before := a.live
		k.run(idle...)
		if a.credit < -maxChunk/16 || a.live != before {
			t.Fatalf("a step copied %d bytes too many; %d of %d bytes live", -a.credit, a.live, before)
		}
		if a.moving {
			steps++
		}
	}
	if a.moving || steps < 10 || a.total > 2*a.live {
		t.Errorf("after %d steps moving is %v, %d of %d bytes live", steps, a.moving, a.live, a.total)
	}
	k.run(keys...)
	for i := range keys {
		if table.Has(i) != (i >= 600) {
			t.Fatalf("key %d: has is %v", i, table.Has(i))
		}
		var got []byte
		if _, err := table.Load(i, unsafe.Pointer(&got)); err != nil || i >= 600 && len(got) != len(value) {
			t.Fatalf("key %d: %d bytes, %v", i, len(got), err)
		}
	}
	k.checkClosed()
}
