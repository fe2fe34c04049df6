package backendtest

import (
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// longRun is more keys than a run of the engine has.
const longRun = 1100

func numbers(from, to int64) (out []int64) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// addressesStayGoodForTheWholeRun writes through addresses long after they were given, while nothing but Find and other
// tables are called.
func addressesStayGoodForTheWholeRun(t *tester) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[int64](t)})
	ok(t, err)
	other, err := k.store.Table(statebackend.TableSpec{Name: "w", Value: handle[[64]int64](t)})
	ok(t, err)
	out, fresh := make([]unsafe.Pointer, longRun), make([]bool, longRun)
	far := make([]unsafe.Pointer, longRun)
	for round := range int64(rounds(20)) {
		k.run(numbers(0, longRun)...)
		ok(t, table.Slots(0, longRun, out, fresh))
		ok(t, other.Slots(0, longRun, far, make([]bool, longRun)))
		for i := range far { // much state comes and goes meanwhile
			*(*[64]int64)(far[i]) = [64]int64{63: round}
			ok(t, other.Delete(i))
		}
		ok(t, other.Range(func(*statebackend.Entry) bool { return true }))
		for i, p := range out {
			if fresh[i] != (round == 0) || *(*int64)(p) != int64(i)*round {
				t.Fatalf("round %d: slot %d has %d, fresh %v", round, i, *(*int64)(p), fresh[i])
			}
		}
		for i, p := range out {
			*(*int64)(p) += int64(i)
			if found := (*int64)(table.Find(i)); found == nil || *found != int64(i)*(round+1) {
				t.Fatalf("round %d: found %v for key %d", round, found, i)
			}
		}
		for i, p := range out { // Find leaves the addresses as they are
			if *(*int64)(p) != int64(i)*(round+1) {
				t.Fatalf("round %d: slot %d has %d", round, i, *(*int64)(p))
			}
		}
	}
	k.checkClosed()
}

// keysOfARunMayComeTwice asks for the slots of a run in which keys repeat.
func keysOfARunMayComeTwice(t *tester) {
	k := newKit[string](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[int64](t)})
	ok(t, err)
	k.run("a", "b", "a", "c", "a")
	out, fresh := make([]unsafe.Pointer, 4), make([]bool, 4)
	ok(t, table.Slots(1, 5, out, fresh))
	if !slices.Equal(fresh, []bool{true, true, true, false}) || out[1] != out[3] || out[0] == out[1] {
		t.Errorf("fresh %v, slots %v", fresh, out)
	}
	if table.Find(0) != out[1] {
		t.Error("the same key has two slots")
	}
	k.checkClosed()
}

// lookaheadsTellNoLies changes a table in each way and checks that what the lookahead still says is true.
func lookaheadsTellNoLies(t *tester) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[int64](t), Namespace: keyOf[int64](t)})
	ok(t, err)
	fleeting, err := k.store.Table(statebackend.TableSpec{Name: "t", Value: handle[int64](t), TTL: ttl(10)})
	ok(t, err)
	ahead := table.Lookahead()
	if table.Lookahead() != ahead {
		t.Error("the lookahead is another one at each call")
	}
	table.SetNamespace([]byte("00000000"))
	r, want := newRand(9), map[int64]int64{}
	for range 200 {
		from := r.Int64N(300)
		k.run(numbers(from, from+50)...)
		for range 60 {
			i := r.IntN(50)
			key := k.keys[i]
			switch r.IntN(8) {
			case 0:
				ok(t, table.Delete(i))
				delete(want, key)
			case 1:
				v := r.Int64()
				ok(t, table.Save(i, unsafe.Pointer(&v)))
				want[key] = v
			case 2:
				if p := (*int64)(table.Find(i)); p == nil || *p != want[key] {
					if _, has := want[key]; has || p != nil {
						t.Fatalf("key %d: found %v, want %d", key, p, want[key])
					}
				}
			default:
				table.Find(i)
				fleeting.Find(i)
			}
			for j, p := range ahead.Slots {
				if v, has := want[k.keys[j]]; p != nil && (!has || *(*int64)(p) != v) {
					t.Fatalf("key %d: looked ahead to %d, want %d %v", k.keys[j], *(*int64)(p), v, has)
				}
			}
			if len(fleeting.Lookahead().Slots) > 0 {
				t.Fatal("a table with a time to live looks ahead")
			}
		}
		if table.SetNamespace([]byte("00000001")); len(table.Lookahead().Slots) > 0 {
			t.Fatal("another namespace leaves the lookahead")
		}
		table.SetNamespace([]byte("00000000"))
	}
	k.checkClosed()
}

// onlyFixedValuesHaveAddresses asks for addresses of values that have none.
func onlyFixedValuesHaveAddresses(t *tester) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[string](t)})
	ok(t, err)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "m", Value: handle[[]int64](t), MapKey: k.key})
	ok(t, err)
	k.run(1)
	s := "text"
	ok(t, table.Save(0, unsafe.Pointer(&s)))
	if err := table.Slots(0, 1, make([]unsafe.Pointer, 1), make([]bool, 1)); err == nil {
		t.Error("a string has a slot")
	}
	if table.Find(0) != nil || len(table.Lookahead().Slots) > 0 {
		t.Error("a string has an address")
	}
	if _, _, err := maps.Slot(0, unsafe.Pointer(&k.keys[0])); err == nil || maps.Len() != 0 {
		t.Errorf("a slice has a slot: %v, %d entries", err, maps.Len())
	}
	k.checkClosed()
}

// valuesAreCopies changes values after they were saved and after they were loaded.
func valuesAreCopies(t *tester) {
	k := newKit[int64](t)
	h := handle[[]int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: h})
	ok(t, err)
	list, err := k.store.List(statebackend.TableSpec{Name: "l", Value: h, List: true})
	ok(t, err)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "m", Value: h, MapKey: k.key})
	ok(t, err)
	k.run(1)
	mk := int64(3)
	v := []int64{1, 2}
	ok(t, table.Save(0, unsafe.Pointer(&v)))
	ok(t, list.Append(0, unsafe.Pointer(&v)))
	ok(t, maps.Save(0, unsafe.Pointer(&mk), unsafe.Pointer(&v)))
	v[0] = 9
	for range 2 { // what was loaded first is changed before the second time
		var a, b, c []int64
		_, err := table.Load(0, unsafe.Pointer(&a))
		ok(t, err)
		ok(t, list.Each(0, unsafe.Pointer(&b), func() bool { return true }))
		_, err = maps.Load(0, unsafe.Pointer(&mk), unsafe.Pointer(&c))
		ok(t, err)
		for _, got := range [][]int64{a, b, c} {
			if !slices.Equal(got, []int64{1, 2}) {
				t.Errorf("loaded %v, want what was saved", got)
			}
			got[0] = 7
		}
	}
	k.checkClosed()
}

// mapSlotsAreAddresses writes through the slots of many entries of one run.
func mapSlotsAreAddresses(t *tester) {
	k := newKit[int64](t)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "m", Value: handle[int64](t), MapKey: k.key})
	ok(t, err)
	if maps.Spec().Value.Layout != serde.Fixed {
		t.Fatal("an int64 is not fixed")
	}
	k.run(1, 2)
	for round := range int64(3) {
		for i := range int64(5000) {
			slot, fresh, err := maps.Slot(int(i%2), unsafe.Pointer(&i))
			ok(t, err)
			if fresh != (round == 0) || *(*int64)(slot) != i*round {
				t.Fatalf("entry %d: %d, fresh %v", i, *(*int64)(slot), fresh)
			}
			*(*int64)(slot) += i
		}
	}
	if maps.Count(0) != 2500 || maps.Len() != 5000 {
		t.Errorf("%d and %d entries", maps.Count(0), maps.Len())
	}
	k.checkClosed()
}
