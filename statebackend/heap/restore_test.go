package heap

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// held is a snapshot read into memory: what a restored store begins with.
type held struct {
	names  []string
	tables map[string]*heldTable
}

type heldTable struct {
	statebackend.TableInfo
	rows []statebackend.Row
}

// readAll reads a frozen store and releases it.
func readAll(t testing.TB, f statebackend.Frozen) *held {
	t.Helper()
	h := &held{tables: map[string]*heldTable{}}
	for _, table := range f.Tables() {
		h.names = append(h.names, table.Name)
		h.tables[table.Name] = &heldTable{table.TableInfo, readRows(t, table)}
	}
	f.Release()
	return h
}

func readRows(t testing.TB, table statebackend.FrozenTable) (rows []statebackend.Row) {
	t.Helper()
	group := 0
	for r, err := range table.Rows {
		ok(t, err)
		if r.Group < group {
			t.Fatalf("table %q: group %d after %d", table.Name, r.Group, group)
		}
		group = r.Group
		c := *r
		for _, b := range []*[]byte{&c.Key, &c.Namespace, &c.MapKey, &c.Value} {
			if *b != nil {
				*b = append([]byte{}, *b...)
			}
		}
		rows = append(rows, c)
	}
	return rows
}

func freeze(t testing.TB, s statebackend.Store) *held {
	t.Helper()
	f, err := s.Freeze()
	ok(t, err)
	return readAll(t, f)
}

// Table implements statebackend.Restored.
func (h *held) Table(name string) (statebackend.FrozenTable, bool) {
	t, ok := h.tables[name]
	if !ok {
		return statebackend.FrozenTable{}, false
	}
	return statebackend.FrozenTable{TableInfo: t.TableInfo, Rows: func(yield func(*statebackend.Row, error) bool) {
		for i := range t.rows {
			r := t.rows[i]
			if !yield(&r, nil) {
				return
			}
		}
	}}, true
}

// Tables implements statebackend.Restored.
func (h *held) Tables() []string { return h.names }

// of gives the rows of some key groups.
func (h *held) of(first, last int) *held {
	out := &held{names: h.names, tables: map[string]*heldTable{}}
	for name, t := range h.tables {
		c := &heldTable{TableInfo: t.TableInfo}
		for _, r := range t.rows {
			if r.Group >= first && r.Group <= last {
				c.rows = append(c.rows, r)
			}
		}
		out.tables[name] = c
	}
	return out
}

// restoredKit is a kit whose store begins with a snapshot.
func restoredKit[K comparable](t testing.TB, from statebackend.Restored, change ...func(*statebackend.Options)) *kit[K] {
	k := newKit[K](t)
	o := k.store.Options
	o.Restored = from
	for _, f := range change {
		f(&o)
	}
	s, err := Backend{}.Open(o)
	ok(t, err)
	k.store = s.(*store)
	return k
}

func TestTablesThatNobodyOpensAreKept(t *testing.T) {
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

// sameRows compares the rows of tables; those of one key group may be in any order of keys.
func sameRows(t testing.TB, got, want *heldTable) {
	t.Helper()
	g, w := texts(got), texts(want)
	if !slices.Equal(g, w) {
		t.Errorf("table %q: %d rows %.500v, want %d %.500v", want.Name, len(g), g, len(w), w)
	}
}

// texts gives the rows as comparable texts, sorted; of lists and maps one text per key.
func texts(h *heldTable) (out []string) {
	of := map[string]*strings.Builder{}
	for _, r := range h.rows {
		key := fmt.Sprintf("%d/%d/%q/%q", r.Group, r.Hash, r.Key, r.Namespace)
		if of[key] == nil {
			of[key] = new(strings.Builder)
		}
		fmt.Fprintf(of[key], " %q@%d=%q", r.MapKey, r.At, r.Value)
	}
	for key, text := range of {
		out = append(out, key+text.String())
	}
	slices.Sort(out)
	return out
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

func TestValuesEvolveAtRestore(t *testing.T) {
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

func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
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

// TestTimeToLiveGoesOnOverRestore is trap B022.
func TestTimeToLiveGoesOnOverRestore(t *testing.T) {
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
	if table.Len() != 2 {
		t.Errorf("%d values were restored, want the 2 that have not expired", table.Len())
	}
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
