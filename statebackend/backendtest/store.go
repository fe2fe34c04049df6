package backendtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// storesRefuseWhatTheyCannotKeep declares tables wrongly.
func storesRefuseWhatTheyCannotKeep(t *tester) {
	if t.open().Name() == "" {
		t.Error("the backend has no name")
	}
	if s, err := t.open().Open(statebackend.Options{MaxParallelism: 128, LastGroup: 127}); err == nil {
		ok(t, s.Close())
		t.Error("opened without a key type")
	}
	k := newKit[int64](t, func(o *statebackend.Options) { o.Now = nil })
	h := handle[int64](t)
	value := statebackend.TableSpec{Name: "v", Value: h}
	list := statebackend.TableSpec{Name: "l", Value: h, List: true}
	maps := statebackend.TableSpec{Name: "m", Value: h, MapKey: k.key}
	table := func(s statebackend.TableSpec) error { _, err := k.store.Table(s); return err }
	first, err := k.store.Table(value)
	ok(t, err)
	again, err := k.store.Table(value)
	ok(t, err)
	if again != first {
		t.Error("the same declaration gives another table")
	}
	ok(t, firstError(k.store.List(list)))
	ok(t, firstError(k.store.Map(maps)))
	for want, err := range map[string]error{
		"value as list":      firstError(k.store.List(value)),
		"value as map":       firstError(k.store.Map(value)),
		"list as value":      table(list),
		"map as value":       table(maps),
		"name of a list":     table(statebackend.TableSpec{Name: "l", Value: h}),
		"another type":       table(statebackend.TableSpec{Name: "v", Value: handle[int32](t)}),
		"another namespace":  table(statebackend.TableSpec{Name: "v", Value: h, Namespace: k.key}),
		"no name":            table(statebackend.TableSpec{Value: h}),
		"no type":            table(statebackend.TableSpec{Name: "x"}),
		"ttl without clock":  table(statebackend.TableSpec{Name: "x", Value: h, TTL: ttl(1)}),
		"ttl that ends soon": table(statebackend.TableSpec{Name: "x", Value: h, TTL: ttl(0)}),
	} {
		if err == nil {
			t.Errorf("%s: no error", want)
		}
	}
	k.checkClosed()
}

func firstError(_ any, err error) error { return err }

// namespacesStaySelected checks that a run does not change them, and that they keep what is theirs.
func namespacesStaySelected(t *tester) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[int64](t), Namespace: keyOf[string](t)})
	ok(t, err)
	name := []byte("one")
	table.SetNamespace(name)
	copy(name, "two") // the table has a copy
	k.run(1, 2)
	v := int64(5)
	ok(t, table.Save(0, unsafe.Pointer(&v)))
	k.run(2, 1)
	if table.Has(0) || !table.Has(1) {
		t.Error("the run changed the namespace")
	}
	table.SetNamespace(name)
	if table.Has(1) {
		t.Error("another namespace has the value")
	}
	table.SetNamespace([]byte{})
	if table.Has(1) {
		t.Error("the empty namespace has the value")
	}
	if table.Len() != 1 {
		t.Errorf("%d values in all namespaces", table.Len())
	}
	k.checkClosed()
}

// budgetsAreKept fills a store until the budget refuses, or much longer than it could last if all were in memory.
func budgetsAreKept(t *tester) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[string](t)})
	ok(t, err)
	k.run(0)
	fat := strings.Repeat("fat", 1000)
	ok(t, table.Save(0, unsafe.Pointer(&fat)))
	k.memory.limit = k.memory.held + 2<<20
	refused := false
	for i := int64(1); i < 2000 && !refused; i++ {
		k.run(i)
		if err := table.Save(0, unsafe.Pointer(&fat)); err != nil {
			refused = true
			if !errors.Is(err, statebackend.ErrOutOfMemory) || !errors.Is(err, errFull) {
				t.Errorf("got %v, want ErrOutOfMemory and the budget's", err)
			}
			if !strings.Contains(err.Error(), `"test"`) {
				t.Errorf("%v: does not name the operator", err)
			}
		}
		k.checkMemory()
	}
	if k.memory.most > k.memory.limit {
		t.Errorf("%d bytes were held of %d", k.memory.most, k.memory.limit)
	}
	var got string
	k.run(0)
	found, err := table.Load(0, unsafe.Pointer(&got))
	ok(t, err)
	if !found || got != fat || !refused && table.Len() != 2000 {
		t.Errorf("found %v, %d bytes of %d values", found, len(got), table.Len())
	}
	k.memory.limit = 0
	k.checkClosed()
}

// snapshotsOutliveTheirStore closes a store before its snapshots were read.
func snapshotsOutliveTheirStore(t *tester) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[string](t)})
	ok(t, err)
	for i := range int64(3000) {
		k.run(i)
		s := fmt.Sprint("value ", i)
		ok(t, table.Save(0, unsafe.Pointer(&s)))
	}
	want := freeze(t, k.store)
	read, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	unread, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	for i := range int64(3000) {
		k.run(i)
		ok(t, table.Delete(0))
	}
	ok(t, k.store.Close())
	k.closed = true
	got := make(chan *held)
	go func() {
		h := &held{tables: map[string]*heldTable{}}
		defer func() { got <- h }()
		h.names = []string{"v"}
		rows := &heldTable{TableInfo: read.Tables()[0].TableInfo}
		for r, err := range read.Tables()[0].Rows {
			if err != nil {
				t.Error(err)
				return
			}
			rows.rows = append(rows.rows, copyRow(r))
		}
		h.tables["v"] = rows
		read.Release()
		unread.Release()
	}()
	if h := <-got; h.tables["v"] == nil {
		t.Error("the snapshot could not be read")
	} else {
		sameRows(t, h.tables["v"], want.tables["v"])
	}
	if k.memory.held != 0 {
		t.Errorf("the budget holds %d bytes at the end", k.memory.held)
	}
}

// snapshotsTellTheirTables checks what a snapshot says of its tables, and that writes through old addresses end.
func snapshotsTellTheirTables(t *tester) {
	k := newKit[string](t)
	day := ttl(1000)
	spec := statebackend.TableSpec{Name: "m", Value: handle[textValue](t), MapKey: keyOf[int64](t), Namespace: keyOf[pair](t), TTL: day}
	_, err := k.store.Map(spec)
	ok(t, err)
	_, err = k.store.List(statebackend.TableSpec{Name: "a list", Value: handle[int64](t), List: true})
	ok(t, err)
	h := freeze(t, k.store)
	if !slices.Equal(h.names, []string{"m", "a list"}) {
		t.Errorf("tables %v, want them in the order of opening", h.names)
	}
	m := h.tables["m"]
	if m.Kind != "map" || m.Key.String() != k.key.Schema().String() || m.Value.String() != spec.Value.Schema().String() ||
		m.MapKey.String() != "int64" || m.Namespace.String() != spec.Namespace.Schema().String() || m.TTL == nil || *m.TTL != *day {
		t.Errorf("the snapshot says %+v", m.TableInfo)
	}
	l := h.tables["a list"]
	if l.Kind != "list" || l.MapKey != nil || l.Namespace != nil || l.TTL != nil || len(l.rows)+len(m.rows) != 0 {
		t.Errorf("the snapshot says %+v", l.TableInfo)
	}
	k.checkClosed()
}

// rangesEndWhenTheyAreTold stops iterations of each kind of table.
func rangesEndWhenTheyAreTold(t *tester) {
	k := newKit[int64](t)
	h := handle[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: h})
	ok(t, err)
	list, err := k.store.List(statebackend.TableSpec{Name: "l", Value: h, List: true})
	ok(t, err)
	maps, err := k.store.Map(statebackend.TableSpec{Name: "m", Value: h, MapKey: k.key})
	ok(t, err)
	k.run(1, 2, 3)
	for i := range k.keys {
		p := unsafe.Pointer(&k.keys[i])
		ok(t, table.Save(i, p))
		ok(t, list.Append(i, p))
		ok(t, list.Append(i, p))
		ok(t, maps.Save(i, p, p))
		ok(t, maps.Save(0, p, p))
	}
	var v, mk int64
	for what, each := range map[string]func(f func() bool) error{
		"values":   func(f func() bool) error { return table.Range(func(*statebackend.Entry) bool { return f() }) },
		"lists":    func(f func() bool) error { return list.Range(func(*statebackend.Entry) bool { return f() }) },
		"maps":     func(f func() bool) error { return maps.Range(func(*statebackend.Entry) bool { return f() }) },
		"elements": func(f func() bool) error { return list.Each(0, unsafe.Pointer(&v), f) },
		"entries":  func(f func() bool) error { return maps.Each(0, unsafe.Pointer(&mk), unsafe.Pointer(&v), f) },
		"keys":     func(f func() bool) error { return maps.Each(0, unsafe.Pointer(&mk), nil, f) },
	} {
		n := 0
		ok(t, each(func() bool { n++; return n < 2 }))
		if n != 2 {
			t.Errorf("%s: %d calls, want 2", what, n)
		}
	}
	k.checkClosed()
}
