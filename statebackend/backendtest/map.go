package backendtest

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// ordered is a map in order of insertion.
type ordered[M comparable, V any] struct {
	keys   []M
	values map[M]V
}

func (m *ordered[M, V]) put(k M, v V) {
	if _, has := m.values[k]; !has {
		m.keys = append(m.keys, k)
	}
	m.values[k] = v
}

func (m *ordered[M, V]) remove(k M) {
	if i := slices.Index(m.keys, k); i >= 0 {
		m.keys = slices.Delete(m.keys, i, i+1)
	}
	delete(m.values, k)
}

type mapOracle[K, M comparable, V any] struct {
	*kit[K]
	rnd    *rand.Rand
	mapKey func(int) M
	value  func(*rand.Rand) V
	table  statebackend.MapTable
	want   map[string]map[K]*ordered[M, V]
	ns     string
}

func mapTableEqualsMapOfMaps(t *tester) {
	ints := func(i int) int64 { return int64(i) }
	pairs := func(i int) pair { return pair{int64(i), -1} }
	fixed, err := serde.KeyOf[pair]()
	ok(t, err)
	windows := []string{"0123456789abcdef", "1123456789abcdef"}
	t.Run("int64/int64/int64", func(t *tester) { testMaps(t, ints, ints, rndInt, nil) })
	t.Run("string/string/text", func(t *tester) { testMaps(t, rndText, rndText, rndTextValue, nil) })
	t.Run("int64+ns/pair/slice", func(t *tester) { testMaps(t, ints, pairs, rndSlice, fixed, windows...) })
	t.Run("pair/packed/empty", func(t *tester) {
		testMaps(t, pairs, func(i int) packedKey { return packedKey{byte(i), uint32(i)} },
			func(*rand.Rand) struct{} { return struct{}{} }, nil)
	})
}

func testMaps[K, M comparable, V any](
	t *tester, key func(int) K, mapKey func(int) M, value func(*rand.Rand) V, ns *serde.Key, names ...string,
) {
	t.Parallel()
	o := &mapOracle[K, M, V]{
		kit: newKit[K](t), rnd: newRand(11), mapKey: mapKey, value: value, want: map[string]map[K]*ordered[M, V]{},
	}
	mk, err := serde.KeyOf[M]()
	ok(t, err)
	o.table, err = o.store.Map(statebackend.TableSpec{Name: "m", Value: handle[V](t), MapKey: mk, Namespace: ns})
	ok(t, err)
	if names == nil {
		names = []string{""}
	}
	for _, n := range names {
		o.want[n] = map[K]*ordered[M, V]{}
	}
	n := rounds(600)
	for round := range n {
		o.ns = names[o.rnd.IntN(len(names))]
		if ns != nil {
			o.table.SetNamespace([]byte(o.ns))
		}
		keys := make([]K, 1+o.rnd.IntN(30))
		for i := range keys {
			keys[i] = key(o.rnd.IntN(1 + round%(n/2)))
		}
		o.run(keys...)
		for range 1 + o.rnd.IntN(60) {
			o.step(o.rnd.IntN(len(keys)), round > n/2)
		}
		if round%100 == 99 {
			o.check()
		}
		if t.Failed() {
			return
		}
	}
	o.checkClosed()
}

// of gives the map of key k; it is made when asked to.
func (o *mapOracle[K, M, V]) of(k K, fresh bool) *ordered[M, V] {
	m := o.want[o.ns][k]
	if m == nil {
		m = &ordered[M, V]{values: map[M]V{}}
		if fresh {
			o.want[o.ns][k] = m
		}
	}
	return m
}

func (o *mapOracle[K, M, V]) step(i int, shrinking bool) {
	k, mk := o.keys[i], o.mapKey(o.rnd.IntN(50))
	p := unsafe.Pointer(&mk)
	m := o.of(k, false)
	want, has := m.values[mk]
	fixed := o.table.Spec().Value.Layout == serde.Fixed
	switch op := o.rnd.IntN(20); {
	case op < 3:
		var got V
		found, err := o.table.Load(i, p, unsafe.Pointer(&got))
		ok(o.t, err)
		known, err := o.table.Has(i, p)
		ok(o.t, err)
		if found != has || known != has || has && !reflect.DeepEqual(got, want) || o.table.Count(i) != len(m.keys) {
			o.t.Errorf("key %v %v: got %v %v of %d, want %v %v of %d", k, mk, got, found, o.table.Count(i), want, has, len(m.keys))
		}
	case op < 5:
		if keys, values := o.read(i); !slices.Equal(keys, m.keys) || !reflect.DeepEqual(values, m.values) {
			o.t.Errorf("key %v: iterated over %v %v, want %v %v", k, keys, values, m.keys, m.values)
		}
	case op < 6 || shrinking && op < 12:
		found, err := o.table.Remove(i, p)
		ok(o.t, err)
		if found != has {
			o.t.Errorf("key %v: removed %v is %v, want %v", k, mk, found, has)
		}
		m.remove(mk)
	case op == 12 && shrinking:
		ok(o.t, o.table.Delete(i))
		delete(o.want[o.ns], k)
	case op < 14 && fixed:
		slot, fresh, err := o.table.Slot(i, p)
		ok(o.t, err)
		if fresh == has || !reflect.DeepEqual(*(*V)(slot), want) {
			o.t.Errorf("key %v %v: slot has %v, fresh %v, want %v %v", k, mk, *(*V)(slot), fresh, want, has)
		}
		v := o.value(o.rnd)
		*(*V)(slot) = v
		o.of(k, true).put(mk, v)
	default:
		v := o.value(o.rnd)
		ok(o.t, o.table.Save(i, p, unsafe.Pointer(&v)))
		o.of(k, true).put(mk, v)
	}
}

func (o *mapOracle[K, M, V]) read(i int) (keys []M, values map[M]V) {
	var (
		k       M
		v, zero V
	)
	values = map[M]V{}
	ok(o.t, o.table.Each(i, unsafe.Pointer(&k), unsafe.Pointer(&v), func() bool {
		keys = append(keys, k)
		values[k] = v
		v = zero
		return true
	}))
	return keys, values
}

func (o *mapOracle[K, M, V]) check() {
	n := 0
	for _, maps := range o.want {
		for k, m := range maps {
			if n += len(m.keys); len(m.keys) == 0 {
				delete(maps, k)
			}
		}
	}
	if o.table.Len() != n {
		o.t.Errorf("Len is %d, want %d", o.table.Len(), n)
	}
	got := map[string]map[K]*ordered[M, V]{}
	for ns := range o.want {
		got[ns] = map[K]*ordered[M, V]{}
	}
	ok(o.t, o.table.Range(func(e *statebackend.Entry) bool {
		var (
			mk M
			v  V
		)
		ok(o.t, o.table.Spec().MapKey.Decode(e.MapKey, unsafe.Pointer(&mk)))
		ok(o.t, e.Load(unsafe.Pointer(&v)))
		k, maps := o.decode(e.Key), got[string(e.Namespace)]
		if maps[k] == nil {
			maps[k] = &ordered[M, V]{values: map[M]V{}}
		}
		maps[k].put(mk, v)
		return true
	}))
	if !reflect.DeepEqual(got, o.want) {
		o.t.Errorf("Range shows other maps than were written")
	}
}

// newIntMap opens a map int64 -> int64 with the entries 0..n-1 for key 1.
func newIntMap(t *tester, n int64) (*kit[int64], statebackend.MapTable) {
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
func iterate(t *tester, table statebackend.MapTable, f func(k int64)) (seen []int64) {
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

func mapMayChangeWhileIterated(t *tester) {
	remove := func(table statebackend.MapTable, k int64) {
		_, err := table.Remove(0, unsafe.Pointer(&k))
		ok(t, err)
	}
	put := func(table statebackend.MapTable, k int64) {
		ok(t, table.Save(0, unsafe.Pointer(&k), unsafe.Pointer(&k)))
	}
	cases := []struct {
		name string
		f    func(statebackend.MapTable, int64)
		want []int64
	}{
		{"remove the shown", remove, []int64{0, 1, 2, 3}},
		{"remove the next", func(m statebackend.MapTable, k int64) { remove(m, k+1) }, []int64{0, 2}},
		{"remove shown and next", func(m statebackend.MapTable, k int64) { remove(m, k); remove(m, k+1) }, []int64{0, 2}},
		{"remove next and shown", func(m statebackend.MapTable, k int64) { remove(m, k+1); remove(m, k) }, []int64{0, 2}},
		{"remove all", func(m statebackend.MapTable, _ int64) { ok(t, m.Delete(0)) }, []int64{0}},
		{"add at the end", func(m statebackend.MapTable, k int64) {
			if k == 3 {
				put(m, 9)
			}
		}, []int64{0, 1, 2, 3, 9}},
		{"remove the last and add", func(m statebackend.MapTable, k int64) {
			if k == 3 {
				remove(m, 3)
				put(m, 9)
			}
		}, []int64{0, 1, 2, 3, 9}},
		{"remove the last and add to the map of another key", func(m statebackend.MapTable, k int64) {
			if k == 3 {
				remove(m, 3)
				ok(t, m.Save(1, unsafe.Pointer(&k), unsafe.Pointer(&k)))
			}
		}, []int64{0, 1, 2, 3}},
		{"remove and put back", func(m statebackend.MapTable, k int64) {
			if k == 1 {
				remove(m, 1)
				put(m, 1)
				remove(m, 1)
			}
		}, []int64{0, 1, 2, 3}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *tester) {
			k, table := newIntMap(t, 4)
			got := iterate(t, table, func(k int64) { c.f(table, k) })
			if !slices.Equal(got, c.want) {
				t.Errorf("saw %v, want %v", got, c.want)
			}
			k.checkClosed()
		})
	}
}

func mapIterationsNest(t *tester) {
	_, table := newIntMap(t, 3)
	var all []int64
	iterate(t, table, func(k int64) { all = append(all, iterate(t, table, func(int64) {})...) })
	if want := []int64{0, 1, 2, 0, 1, 2, 0, 1, 2}; !slices.Equal(all, want) {
		t.Errorf("saw %v, want %v", all, want)
	}
}
