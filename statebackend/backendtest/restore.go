package backendtest

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

func tablesThatNobodyOpensAreKept(t *tester) {
	k := newKit[string](t)
	mk, err := serde.KeyOf[int64]()
	ok(t, err)
	spec := statebackend.TableSpec{Name: "a", Value: handle[string](t), Namespace: mk}
	a, err := k.store.Table(spec)
	ok(t, err)
	b, err := k.store.Map(statebackend.TableSpec{Name: "b", Value: handle[int64](t), MapKey: mk})
	ok(t, err)
	a.SetNamespace([]byte("12345678"))
	for i := range int64(1000) {
		s := fmt.Sprint("key ", i)
		k.run(s)
		ok(t, a.Save(0, unsafe.Pointer(&s)))
		ok(t, b.Save(0, unsafe.Pointer(&i), unsafe.Pointer(&i)))
	}
	first := freeze(t, k.store)
	k.checkClosed()
	// A table of the operator's own is not the store's.
	first.names = append(first.names, "timers/event")
	first.tables["timers/event"] = &heldTable{TableInfo: statebackend.TableInfo{Name: "timers/event", Kind: "timers"}}

	k = restoredKit[string](t, first)
	second := freeze(t, k.store)
	sameRows(t, second.tables["a"], first.tables["a"])
	sameRows(t, second.tables["b"], first.tables["b"])
	if len(second.names) != 2 {
		t.Errorf("tables %v, want a and b", second.names)
	}
	// One is opened after the first snapshot.
	a, err = k.store.Table(spec)
	ok(t, err)
	if a.Len() != 1000 {
		t.Errorf("%d values, want 1000", a.Len())
	}
	third := freeze(t, k.store)
	sameRows(t, third.tables["a"], first.tables["a"])
	sameRows(t, third.tables["b"], first.tables["b"])
	if !slices.Equal(third.names, []string{"a", "b"}) {
		t.Errorf("tables %v, want each once", third.names)
	}
	k.checkClosed()
}

type before struct {
	N    int32
	Name string
}

type after struct {
	Name string
	More []int64
	N    int32
}

type unlike struct {
	N string
}

func valuesEvolveAtRestore(t *tester) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[before](t)})
	ok(t, err)
	for i := range int64(100) {
		k.run(i)
		v := before{int32(i), fmt.Sprint(i)}
		ok(t, table.Save(0, unsafe.Pointer(&v)))
	}
	snap := freeze(t, k.store)
	k = restoredKit[int64](t, snap)
	table, err = k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[after](t)})
	ok(t, err)
	for i := range int64(100) {
		k.run(i)
		var v after
		found, err := table.Load(0, unsafe.Pointer(&v))
		ok(t, err)
		if !found || v.N != int32(i) || v.Name != fmt.Sprint(i) || v.More != nil {
			t.Fatalf("key %d: %v %+v", i, found, v)
		}
	}
	if table.Len() != 100 {
		t.Errorf("%d values, want 100", table.Len())
	}
	k.checkClosed()
}

func restoreRefusesWhatDoesNotFit(t *tester) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "totals", Value: handle[before](t)})
	ok(t, err)
	v := before{1, "one"}
	k.run(7)
	ok(t, table.Save(0, unsafe.Pointer(&v)))
	snap := freeze(t, k.store)
	ns, err := serde.KeyOf[int64]()
	ok(t, err)
	open := func(spec statebackend.TableSpec) error {
		k := restoredKit[int64](t, snap)
		var err error
		switch spec.Kind() {
		case "list":
			_, err = k.store.List(spec)
		case "map":
			_, err = k.store.Map(spec)
		default:
			_, err = k.store.Table(spec)
		}
		k.checkClosed()
		return err
	}
	other := restoredKit[string](t, snap)
	_, otherKey := other.store.Table(statebackend.TableSpec{Name: "totals", Value: handle[before](t)})
	outside := restoredKit[int64](t, snap, func(o *statebackend.Options) { o.FirstGroup, o.LastGroup = 200, 300 })
	_, wrongGroup := outside.store.Table(statebackend.TableSpec{Name: "totals", Value: handle[before](t)})
	cut := freeze(t, k.store)
	cut.tables["totals"].rows[0].Value = cut.tables["totals"].rows[0].Value[:3]
	short := restoredKit[int64](t, cut)
	_, damaged := short.store.Table(statebackend.TableSpec{Name: "totals", Value: handle[before](t)})
	for want, err := range map[string]error{
		"N: the snapshot has int32, the program string": open(statebackend.TableSpec{Name: "totals", Value: handle[unlike](t)}),
		"a value, the program declares a list":          open(statebackend.TableSpec{Name: "totals", Value: handle[before](t), List: true}),
		"a value, the program declares a map":           open(statebackend.TableSpec{Name: "totals", Value: handle[before](t), MapKey: ns}),
		"namespace type (none), the program int64":      open(statebackend.TableSpec{Name: "totals", Value: handle[before](t), Namespace: ns}),
		"key type int64, the program string":            otherKey,
		"subtask has groups 200 to 300":                 wrongGroup,
		"decode":                                        damaged,
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `operator "test": restore state "totals"`) {
			t.Errorf("got %v, want operator, state and %q", err, want)
		}
	}
}

// timeToLiveGoesOnOverRestore is trap B022.
func timeToLiveGoesOnOverRestore(t *tester) {
	const minute = 60_000
	ten := &statebackend.TTL{Millis: 10 * minute}
	k := newKit[int64](t)
	spec := statebackend.TableSpec{Name: "v", Value: handle[int64](t)}
	open := func(k *kit[int64], ttl *statebackend.TTL) statebackend.Table {
		spec.TTL = ttl
		table, err := k.store.Table(spec)
		ok(t, err)
		return table
	}
	table := open(k, ten)
	for _, at := range []int64{0, 5, 9} {
		k.now = at * minute
		k.run(at)
		ok(t, table.Save(0, unsafe.Pointer(&at)))
	}
	alive := func(what string, k *kit[int64], table statebackend.Table, want ...int64) {
		t.Helper()
		var got []int64
		for _, at := range []int64{0, 5, 9} {
			k.run(at)
			var v int64
			found, err := table.Load(0, unsafe.Pointer(&v))
			ok(t, err)
			if found {
				got = append(got, v)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: values of %v, want %v", what, got, want)
		}
	}
	k.now = 9*minute + minute/2
	snap := freeze(t, k.store)
	restore := func(from *held, now int64) *kit[int64] {
		k := restoredKit[int64](t, from)
		k.now = now
		return k
	}
	k = restore(snap, 12*minute)
	table = open(k, ten)
	alive("down for minutes", k, table, 5, 9)

	k = restore(snap, 12*minute)
	table = open(k, nil)
	alive("switched off", k, table, 5, 9)
	k.now = 100 * minute
	alive("switched off, much later", k, table, 5, 9)
	off := freeze(t, k.store)
	k = restore(off, 200*minute)
	table = open(k, ten)
	k.now = 209 * minute
	alive("switched on", k, table, 5, 9)
	k.now = 210 * minute
	alive("switched on, ten minutes later", k, table)
	k.checkClosed()
}
