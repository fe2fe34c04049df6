package backendtest

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

type listOracle[K comparable, V any] struct {
	*kit[K]
	rnd   *rand.Rand
	value func(*rand.Rand) V
	table statebackend.ListTable
	want  map[string]map[K][]V
	ns    string
}

func listTableEqualsMapOfSlices(t *tester) {
	ints := func(i int) int64 { return int64(i) }
	fixed, err := serde.KeyOf[pair]()
	ok(t, err)
	text, err := serde.KeyOf[string]()
	ok(t, err)
	windows := []string{"0123456789abcdef", "1123456789abcdef", "2123456789abcdef"}
	t.Run("int64/int64", func(t *tester) { testLists(t, ints, rndInt, nil) })
	t.Run("string/string", func(t *tester) { testLists(t, rndText, rndString, nil) })
	t.Run("pair/slice", func(t *tester) { testLists(t, func(i int) pair { return pair{int64(i), 0} }, rndSlice, nil) })
	t.Run("int64+pair/wide", func(t *tester) { testLists(t, ints, rndWide, fixed, windows...) })
	t.Run("string+string/text", func(t *tester) { testLists(t, rndText, rndTextValue, text, "", "a", "aa") })
	t.Run("int64/empty", func(t *tester) {
		testLists(t, ints, func(*rand.Rand) struct{} { return struct{}{} }, nil)
	})
}

func testLists[K comparable, V any](t *tester, key func(int) K, value func(*rand.Rand) V, ns *serde.Key, names ...string) {
	t.Parallel()
	o := &listOracle[K, V]{kit: newKit[K](t), rnd: newRand(5), value: value, want: map[string]map[K][]V{}}
	var err error
	o.table, err = o.store.List(statebackend.TableSpec{Name: "l", Value: handle[V](t), List: true, Namespace: ns})
	ok(t, err)
	if names == nil {
		names = []string{""}
	}
	for _, n := range names {
		o.want[n] = map[K][]V{}
	}
	n := rounds(600)
	for round := range n {
		o.ns = names[o.rnd.IntN(len(names))]
		if ns != nil {
			o.table.SetNamespace([]byte(o.ns))
		}
		keys := make([]K, 1+o.rnd.IntN(40))
		for i := range keys {
			keys[i] = key(o.rnd.IntN(1 + 2*(round%(n/2))))
		}
		o.run(keys...)
		for range 1 + o.rnd.IntN(60) {
			o.step(o.rnd.IntN(len(keys)), names, ns != nil, round > n/2)
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

func (o *listOracle[K, V]) step(i int, names []string, namespaced, shrinking bool) {
	k, want := o.keys[i], o.want[o.ns]
	switch op := o.rnd.IntN(20); {
	case op < 2:
		if got := o.read(i); !equalSlices(got, want[k]) || o.table.Count(i) != len(got) || o.table.Has(i) != (len(got) > 0) {
			o.t.Errorf("key %v: got %v (count %d), want %v", k, got, o.table.Count(i), want[k])
		}
	case op < 3 || shrinking && op < 6:
		ok(o.t, o.table.Delete(i))
		delete(want, k)
	case op < 7 && namespaced:
		to := names[o.rnd.IntN(len(names))]
		ok(o.t, o.table.MoveTo(i, []byte(to)))
		if to != o.ns && len(want[k]) > 0 {
			o.want[to][k] = append(o.want[to][k], want[k]...)
			delete(want, k)
		}
	default:
		v := o.value(o.rnd)
		ok(o.t, o.table.Append(i, unsafe.Pointer(&v)))
		want[k] = append(want[k], v)
	}
}

func (o *listOracle[K, V]) read(i int) (got []V) {
	var v, zero V
	ok(o.t, o.table.Each(i, unsafe.Pointer(&v), func() bool {
		got = append(got, v)
		v = zero
		return true
	}))
	return got
}

func equalSlices[V any](a, b []V) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func (o *listOracle[K, V]) check() {
	lists := 0
	for _, m := range o.want {
		lists += len(m)
	}
	if o.table.Len() != lists {
		o.t.Errorf("Len is %d, want %d", o.table.Len(), lists)
	}
	got := map[string]map[K][]V{}
	for n := range o.want {
		got[n] = map[K][]V{}
	}
	ok(o.t, o.table.Range(func(e *statebackend.Entry) bool {
		var v V
		ok(o.t, e.Load(unsafe.Pointer(&v)))
		k := o.decode(e.Key)
		got[string(e.Namespace)][k] = append(got[string(e.Namespace)][k], v)
		return true
	}))
	if !reflect.DeepEqual(got, o.want) {
		o.t.Errorf("Range shows other lists than were written")
	}
}

func listRefusesChangesWhileIterated(t *tester) {
	k := newKit[int64](t)
	table, err := k.store.List(statebackend.TableSpec{Name: "l", Value: handle[int64](t), List: true})
	ok(t, err)
	k.run(1)
	v := int64(7)
	ok(t, table.Append(0, unsafe.Pointer(&v)))
	var w int64
	err = table.Each(0, unsafe.Pointer(&w), func() bool {
		ok(t, table.Append(0, unsafe.Pointer(&v)))
		return true
	})
	if !errors.Is(err, statebackend.ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
}

func longListIsReadInOrder(t *tester) {
	k := newKit[string](t)
	table, err := k.store.List(statebackend.TableSpec{Name: "l", Value: handle[int64](t), List: true})
	ok(t, err)
	k.run("a")
	for i := range int64(100_000) {
		ok(t, table.Append(0, unsafe.Pointer(&i)))
	}
	next, v := int64(0), int64(0)
	ok(t, table.Each(0, unsafe.Pointer(&v), func() bool {
		if v != next {
			t.Fatalf("element %d is %d", next, v)
		}
		next++
		return true
	}))
	if next != 100_000 {
		t.Errorf("%d elements", next)
	}
	ok(t, table.Delete(0))
	k.checkClosed()
}
