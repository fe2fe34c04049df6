package backendtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

type pair struct{ A, B int64 }

type packedKey struct {
	A uint8
	B uint32
}

type textKey struct {
	Name string
	N    int32
}

type textValue struct {
	N    int64
	S    string
	Flag bool
	T    string
}

// oracle compares a value table with a Go map through random operations.
type oracle[K comparable, V any] struct {
	*kit[K]
	rnd       *rand.Rand
	key       func(i int) K
	value     func(r *rand.Rand) V
	table     statebackend.Table
	want      map[string]map[K]V // by namespace
	namespace string
	names     []string
}

func valueTableEqualsMap(t *tester) {
	ints := func(i int) int64 { return int64(i) }
	t.Run("int64/int64", func(t *tester) { testValues(t, ints, rndInt, nil) })
	t.Run("int64 spaced/int64", func(t *tester) {
		testValues(t, func(i int) int64 { return int64(i) << 40 }, rndInt, nil)
	})
	t.Run("int32/pair", func(t *tester) { testValues(t, func(i int) int32 { return int32(-i) }, rndPair, nil) })
	t.Run("uint8/int64", func(t *tester) { testValues(t, func(i int) uint8 { return uint8(i) }, rndInt, nil) })
	t.Run("uint64/empty", func(t *tester) {
		testValues(t, func(i int) uint64 { return uint64(i) }, func(*rand.Rand) struct{} { return struct{}{} }, nil)
	})
	t.Run("[3]byte/[5]int64", func(t *tester) {
		testValues(t, func(i int) [3]byte { return [3]byte{byte(i), byte(i >> 8), 1} }, rndWide, nil)
	})
	t.Run("int64/[20]int64", func(t *tester) {
		testValues(t, ints, func(r *rand.Rand) (v [20]int64) { v[r.IntN(20)] = r.Int64(); return v }, nil)
	})
	t.Run("packed/int64", func(t *tester) {
		testValues(t, func(i int) packedKey { return packedKey{uint8(i), uint32(i)} }, rndInt, nil)
	})
	t.Run("pair/int64", func(t *tester) { testValues(t, func(i int) pair { return pair{int64(i), -1} }, rndInt, nil) })
	t.Run("string/int64", func(t *tester) { testValues(t, rndText, rndInt, nil) })
	t.Run("string/text", func(t *tester) { testValues(t, rndText, rndTextValue, nil) })
	t.Run("string/encoded", func(t *tester) { testValues(t, rndText, rndSlice, nil) })
	t.Run("composite/text", func(t *tester) {
		testValues(t, func(i int) textKey { return textKey{rndText(i / 3), int32(i)} }, rndTextValue, nil)
	})
	t.Run("int64/text", func(t *tester) { testValues(t, ints, rndTextValue, nil) })
	t.Run("int64/string", func(t *tester) { testValues(t, ints, rndString, nil) })
	t.Run("int64/encoded", func(t *tester) { testValues(t, ints, rndSlice, nil) })
}

func namespacedValueTableEqualsMap(t *tester) {
	window := []string{"0123456789abcdef", "1123456789abcdef", "2123456789abcdef"}
	fixed, err := serde.KeyOf[pair]()
	ok(t, err)
	text, err := serde.KeyOf[string]()
	ok(t, err)
	ints := func(i int) int64 { return int64(i) }
	t.Run("int64+pair/int64", func(t *tester) { testValues(t, ints, rndInt, fixed, window...) })
	t.Run("string+pair/text", func(t *tester) { testValues(t, rndText, rndTextValue, fixed, window...) })
	t.Run("int64+string/encoded", func(t *tester) { testValues(t, ints, rndSlice, text, "", "a", "aa", "b") })
	t.Run("string+string/int64", func(t *tester) { testValues(t, rndText, rndInt, text, "", "x", "xx", "k") })
}

func rndInt(r *rand.Rand) int64 { return r.Int64() }
func rndPair(r *rand.Rand) pair { return pair{r.Int64(), r.Int64()} }
func rndWide(r *rand.Rand) [5]int64 {
	return [5]int64{r.Int64(), 1, 2, 3, r.Int64()}
}

func rndText(i int) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprint("xk"[i%2:], i, "suffix that makes it longer"[:i%27])
}

func rndString(r *rand.Rand) string {
	b := make([]byte, r.IntN(40))
	if r.IntN(500) == 0 {
		b = make([]byte, 30_000)
	}
	for i := range b {
		b[i] = 'a' + byte(r.IntN(26))
	}
	return string(b)
}

func rndTextValue(r *rand.Rand) textValue {
	return textValue{r.Int64(), rndString(r), r.IntN(2) == 0, rndString(r)}
}

func rndSlice(r *rand.Rand) []int64 {
	if r.IntN(10) == 0 {
		return nil
	}
	v := make([]int64, r.IntN(20))
	for i := range v {
		v[i] = r.Int64()
	}
	return v
}

func testValues[K comparable, V any](t *tester, key func(int) K, value func(*rand.Rand) V, ns *serde.Key, names ...string) {
	t.Parallel()
	o := &oracle[K, V]{kit: newKit[K](t), rnd: newRand(3), key: key, value: value, want: map[string]map[K]V{}}
	table, err := o.store.Table(statebackend.TableSpec{Name: "v", Value: handle[V](t), Namespace: ns})
	ok(t, err)
	o.table = table
	if names == nil {
		names = []string{""}
	}
	for _, n := range names {
		o.want[n] = map[K]V{}
	}
	for round := range rounds(900) {
		o.names = names
		o.enter()
		o.round(round)
		if t.Failed() {
			return
		}
	}
	o.check()
	o.checkClosed()
}

// enter selects a namespace.
func (o *oracle[K, V]) enter() {
	o.namespace = o.names[o.rnd.IntN(len(o.names))]
	if o.table.Spec().Namespace != nil {
		o.table.SetNamespace([]byte(o.namespace))
	}
}

// round does one run: the set of keys grows in the first third, turns over in the second, shrinks in the last.
func (o *oracle[K, V]) round(round int) {
	n, third := 1+o.rnd.IntN(40), rounds(900)/3
	domain := 1 + 8*round
	keys := make([]K, n)
	for i := range keys {
		keys[i] = o.key(o.rnd.IntN(domain))
	}
	o.run(keys...)
	fixed := o.table.Spec().Value.Layout == serde.Fixed
	for range 1 + o.rnd.IntN(60) {
		i := o.rnd.IntN(n)
		switch op := o.rnd.IntN(10); {
		case op == 0 && o.rnd.IntN(4) == 0:
			o.enter()
		case op < 2:
			o.checkKey(i)
		case op < 4 && round > third || round > 2*third:
			ok(o.t, o.table.Delete(i))
			delete(o.want[o.namespace], keys[i])
		case fixed && op < 6:
			o.writeSlots(i, i+1+o.rnd.IntN(n-i))
		case fixed && op < 7:
			o.writeAhead(i)
		default:
			v := o.value(o.rnd)
			ok(o.t, o.table.Save(i, unsafe.Pointer(&v)))
			o.want[o.namespace][keys[i]] = v
		}
	}
	if round%100 == 0 {
		o.check()
	}
}

// checkKey compares all ways to read key i.
func (o *oracle[K, V]) checkKey(i int) {
	o.t.Helper()
	want, has := o.want[o.namespace][o.kit.keys[i]]
	var got V
	found, err := o.table.Load(i, unsafe.Pointer(&got))
	ok(o.t, err)
	if found != has || has && !reflect.DeepEqual(got, want) || o.table.Has(i) != has {
		o.t.Errorf("key %v: got %v %v, want %v %v", o.kit.keys[i], got, found, want, has)
	}
	if o.table.Spec().Value.Layout == serde.Fixed {
		if p := (*V)(o.table.Find(i)); p == nil == has || has && !reflect.DeepEqual(*p, want) {
			o.t.Errorf("key %v: found %v, want %v %v", o.kit.keys[i], p, want, has)
		}
	}
	if ahead := o.table.Lookahead().Slots; i < len(ahead) && ahead[i] != nil {
		if !has || !reflect.DeepEqual(*(*V)(ahead[i]), want) {
			o.t.Errorf("key %v: lookahead has %v, want %v %v", o.kit.keys[i], *(*V)(ahead[i]), want, has)
		}
	}
}

// writeSlots writes keys [from,to) through their slots.
func (o *oracle[K, V]) writeSlots(from, to int) {
	out, fresh := make([]unsafe.Pointer, to-from), make([]bool, to-from)
	for i := range fresh {
		fresh[i] = true // must be overwritten
	}
	ok(o.t, o.table.Slots(from, to, out, fresh))
	want := o.want[o.namespace]
	var zero V
	for i, p := range out {
		k := o.kit.keys[from+i]
		old, has := want[k]
		if fresh[i] == has {
			o.t.Errorf("key %v: fresh is %v, has is %v", k, fresh[i], has)
		}
		if !has {
			old = zero
		}
		if !reflect.DeepEqual(*(*V)(p), old) {
			o.t.Errorf("key %v: slot has %v, want %v", k, *(*V)(p), old)
		}
		v := o.value(o.rnd)
		*(*V)(p), want[k] = v, v
	}
}

// writeAhead writes key i through the lookahead, if the table looked that far.
func (o *oracle[K, V]) writeAhead(i int) {
	o.table.Find(i)
	if ahead := o.table.Lookahead().Slots; i < len(ahead) && ahead[i] != nil {
		v := o.value(o.rnd)
		*(*V)(ahead[i]), o.want[o.namespace][o.kit.keys[i]] = v, v
	}
}

// check compares the whole table.
func (o *oracle[K, V]) check() {
	o.t.Helper()
	n := 0
	for _, m := range o.want {
		n += len(m)
	}
	if o.table.Len() != n {
		o.t.Errorf("Len is %d, want %d", o.table.Len(), n)
	}
	seen := 0
	err := o.table.Range(func(e *statebackend.Entry) bool {
		k := o.decode(e.Key)
		want, has := o.want[string(e.Namespace)][k]
		var got V
		ok(o.t, e.Load(unsafe.Pointer(&got)))
		if !has || !reflect.DeepEqual(got, want) {
			o.t.Errorf("Range shows %v %q = %v, want %v %v", k, e.Namespace, got, want, has)
		}
		if h := o.kit.key.HashOne(e.Key, testSeed); h != e.Hash {
			o.t.Errorf("Range shows hash %x, want %x", e.Hash, h)
		}
		seen++
		return true
	})
	ok(o.t, err)
	if seen != n {
		o.t.Errorf("Range shows %d entries, want %d", seen, n)
	}
}

// moody is a value whose codec may refuse it.
type moody struct {
	Refused bool
	Rest    []byte
}

func refusedValueLeavesTheStateAsItWas(t *tester) {
	h, err := serde.Of[moody](serde.WithCodec(
		func(dst []byte, m moody) ([]byte, error) {
			if m.Refused {
				return nil, errFull
			}
			return append(dst, 1), nil
		},
		func([]byte) (moody, int, error) { return moody{}, 1, nil }))
	ok(t, err)
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: h})
	ok(t, err)
	list, err := k.store.List(statebackend.TableSpec{Name: "l", Value: h, List: true})
	ok(t, err)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "m", Value: h, MapKey: k.key})
	ok(t, err)
	k.run(1)
	one, good, bad := int64(1), moody{}, moody{Refused: true}
	writes := func(m *moody) []error {
		return []error{
			table.Save(0, unsafe.Pointer(m)), list.Append(0, unsafe.Pointer(m)),
			maps.Save(0, unsafe.Pointer(&one), unsafe.Pointer(m)),
		}
	}
	for _, want := range []int{0, 1} {
		for i, err := range writes(&bad) {
			if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "write state") {
				t.Errorf("write %d: got %v", i, err)
			}
		}
		if table.Len() != want || list.Len() != want || list.Count(0) != want || maps.Len() != want || maps.Count(0) != want {
			t.Errorf("after refused writes: %d %d %d %d %d, want %d", table.Len(), list.Len(), list.Count(0), maps.Len(), maps.Count(0), want)
		}
		for _, err := range writes(&good) {
			ok(t, err)
		}
		ok(t, list.Delete(0))
		ok(t, list.Append(0, unsafe.Pointer(&good)))
	}
	if found, err := table.Load(0, unsafe.Pointer(&good)); !found || err != nil {
		t.Errorf("the value before is gone: %v %v", found, err)
	}
	k.checkClosed()
}
