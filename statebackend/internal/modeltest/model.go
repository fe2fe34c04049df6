// Package modeltest is what tables of a state backend should hold, for tests: models that do random things with a table and with
// plain Go values, and compare. The suite of the contract (package backendtest) goes by it, and so do the backends' own tests, which
// look inside of a store meanwhile.
package modeltest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// A Model is what a table should hold: by key and namespace the items in order. A value is a list of one item.
type Model struct {
	// Spec is the declaration of the table.
	Spec statebackend.TableSpec
	// Fades makes the state smaller: most steps remove something.
	Fades bool

	draw  func(*rand.Rand) unsafe.Pointer // a value
	table statebackend.Table
	list  statebackend.ListTable
	maps  statebackend.MapTable
	held  map[Owner][]Item
	ns    string
}

// Owner is a key in a namespace, by canonical bytes.
type Owner struct{ key, ns string }

// Item is a value, an element of a list or an entry of a map, as rows have it.
type Item struct {
	mapKey, value string
	at            int64
}

// Open opens the table in a store.
func (m *Model) Open(t testing.TB, s statebackend.Store) {
	var err error
	switch m.Spec.Kind() {
	case "list":
		m.list, err = s.List(m.Spec)
	case "map":
		m.maps, err = s.Map(m.Spec)
	default:
		m.table, err = s.Table(m.Spec)
	}
	ok(t, err)
}

func (m *Model) encode(t testing.TB, v unsafe.Pointer) string {
	b, err := m.Spec.Value.Append(nil, v)
	ok(t, err)
	return string(b)
}

// expired says whether an item is gone at a time.
func (m *Model) expired(x Item, now int64) bool {
	return m.Spec.TTL != nil && m.Spec.TTL.Expired(x.at, now)
}

// Choose selects a namespace by its canonical bytes, for tables that have some.
func (m *Model) Choose(ns string) {
	if m.Spec.Namespace == nil {
		return
	}
	m.ns = ns
	switch {
	case m.list != nil:
		m.list.SetNamespace([]byte(ns))
	case m.maps != nil:
		m.maps.SetNamespace([]byte(ns))
	default:
		m.table.SetNamespace([]byte(ns))
	}
}

// mapKey gives a map key and its canonical bytes.
func mapKey(r *rand.Rand) (string, unsafe.Pointer) {
	s := fmt.Sprint("m", r.IntN(12))
	return s, unsafe.Pointer(&s)
}

// Step does something with key i of the run, on the table and on the model.
func (m *Model) Step(t testing.TB, r *rand.Rand, i int, key string, now int64) {
	o := Owner{key, m.ns}
	m.forget(o, now)
	if m.Fades && r.IntN(3) > 0 {
		m.remove(t, i)
		delete(m.held, o)
		return
	}
	v := m.draw(r)
	x := Item{value: m.encode(t, v), at: now}
	if m.Spec.TTL == nil {
		x.at = 0
	}
	switch {
	case m.list != nil:
		m.stepList(t, r, i, o, v, x)
	case m.maps != nil:
		m.stepMap(t, r, i, o, v, x)
	default:
		m.stepValue(t, r, i, o, v, x)
	}
	if len(m.held[o]) == 0 {
		delete(m.held, o)
	}
}

func (m *Model) remove(t testing.TB, i int) {
	switch {
	case m.list != nil:
		ok(t, m.list.Delete(i))
	case m.maps != nil:
		ok(t, m.maps.Delete(i))
	default:
		ok(t, m.table.Delete(i))
	}
}

// forget drops the expired items of an owner.
func (m *Model) forget(o Owner, now int64) {
	m.held[o] = slices.DeleteFunc(m.held[o], func(x Item) bool { return m.expired(x, now) })
}

func (m *Model) stepValue(t testing.TB, r *rand.Rand, i int, o Owner, v unsafe.Pointer, x Item) {
	switch n := r.IntN(10); {
	case n < 4:
		ok(t, m.table.Save(i, v))
		m.held[o] = []Item{x}
	case n < 6 && m.Spec.Value.Layout == serde.Fixed:
		var out [1]unsafe.Pointer
		var fresh [1]bool
		ok(t, m.table.Slots(i, i+1, out[:], fresh[:]))
		if fresh[0] != (len(m.held[o]) == 0) {
			t.Fatalf("%s: fresh is %v, the model holds %d", m.Spec.Name, fresh[0], len(m.held[o]))
		}
		copyBytes(out[0], v, m.Spec.Value.Size)
		m.held[o] = []Item{x}
	case n < 8:
		got := m.Spec.Value.New()
		found, err := m.table.Load(i, got)
		ok(t, err)
		if found != (len(m.held[o]) > 0) || found && m.encode(t, got) != m.held[o][0].value {
			t.Fatalf("%s: loaded %v, want %v", m.Spec.Name, found, m.held[o])
		}
		m.read(o, x.at)
	default:
		ok(t, m.table.Delete(i))
		m.held[o] = nil
	}
}

// read renews the items that a read renews.
func (m *Model) read(o Owner, now int64) {
	if m.Spec.TTL != nil && m.Spec.TTL.OnRead {
		for i := range m.held[o] {
			m.held[o][i].at = now
		}
	}
}

func (m *Model) stepList(t testing.TB, r *rand.Rand, i int, o Owner, v unsafe.Pointer, x Item) {
	switch n := r.IntN(20); {
	case n < 14:
		ok(t, m.list.Append(i, v))
		m.held[o] = append(m.held[o], x)
	case n < 17:
		var got []string
		e := m.Spec.Value.New()
		ok(t, m.list.Each(i, e, func() bool {
			got = append(got, m.encode(t, e))
			return true
		}))
		m.checkItems(t, o, got)
		m.read(o, x.at)
	case n < 19 && m.Spec.Namespace != nil:
		to := Owner{o.key, Namespace(r)}
		m.forget(to, x.at)
		ok(t, m.list.MoveTo(i, []byte(to.ns)))
		if to != o {
			m.held[to] = append(m.held[to], m.held[o]...)
			m.held[o] = nil
			if len(m.held[to]) == 0 {
				delete(m.held, to)
			}
		}
	default:
		ok(t, m.list.Delete(i))
		m.held[o] = nil
	}
}

// checkItems compares values with the model's.
func (m *Model) checkItems(t testing.TB, o Owner, got []string) {
	t.Helper()
	var want []string
	for _, x := range m.held[o] {
		want = append(want, x.value)
	}
	if m.maps != nil { // an expired entry that is written again may keep its place or not
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: read %q, want %q", m.Spec.Name, got, want)
	}
}

func (m *Model) stepMap(t testing.TB, r *rand.Rand, i int, o Owner, v unsafe.Pointer, x Item) {
	if near, is := m.maps.(statebackend.NearMapTable); is && r.IntN(3) == 0 {
		near.Near(0, i+1) // changes nothing
	}
	name, k := mapKey(r)
	x.mapKey = name
	at := slices.IndexFunc(m.held[o], func(y Item) bool { return y.mapKey == name })
	switch n := r.IntN(20); {
	case n < 9:
		ok(t, m.maps.Save(i, k, v))
		m.put(o, at, x)
	case n < 11 && m.Spec.Value.Layout == serde.Fixed:
		slot, fresh, err := m.maps.Slot(i, k)
		ok(t, err)
		if fresh != (at < 0) {
			t.Fatalf("%s: fresh is %v, the model is at %d", m.Spec.Name, fresh, at)
		}
		copyBytes(slot, v, m.Spec.Value.Size)
		m.put(o, at, x)
	case n < 13:
		got := m.Spec.Value.New()
		found, err := m.maps.Load(i, k, got)
		ok(t, err)
		if found != (at >= 0) || found && m.encode(t, got) != m.held[o][at].value {
			t.Fatalf("%s: loaded %v, want %d", m.Spec.Name, found, at)
		}
		if found && m.Spec.TTL != nil && m.Spec.TTL.OnRead {
			m.held[o][at].at = x.at
		}
	case n < 15:
		var got []string
		mk, e := "", m.Spec.Value.New()
		ok(t, m.maps.Each(i, unsafe.Pointer(&mk), e, func() bool {
			got = append(got, m.encode(t, e))
			return true
		}))
		m.checkItems(t, o, got)
		m.read(o, x.at)
	case n < 19:
		found, err := m.maps.Remove(i, k)
		ok(t, err)
		if found != (at >= 0) {
			t.Fatalf("%s: removed %v, want %d", m.Spec.Name, found, at)
		}
		if at >= 0 {
			m.held[o] = slices.Delete(m.held[o], at, at+1)
		}
	default:
		ok(t, m.maps.Delete(i))
		m.held[o] = nil
	}
}

func (m *Model) put(o Owner, at int, x Item) {
	if at < 0 {
		m.held[o] = append(m.held[o], x)
		return
	}
	m.held[o][at] = x
}

// Want gives what a snapshot at a time must hold.
func (m *Model) Want(now int64) map[Owner][]Item {
	out := make(map[Owner][]Item, len(m.held))
	for o, items := range m.held {
		items = slices.DeleteFunc(slices.Clone(items), func(x Item) bool { return m.expired(x, now) })
		if len(items) > 0 {
			out[o] = m.ordered(items)
		}
	}
	return out
}

// ordered gives items of a map with a time to live in order of keys: an expired entry that is written again may keep its
// place or not.
func (m *Model) ordered(items []Item) []Item {
	if m.Spec.MapKey != nil && m.Spec.TTL != nil {
		slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.mapKey, b.mapKey) })
	}
	return items
}

// Check compares the rows of a snapshot with what it must hold. Rows of one key must be together.
func (m *Model) Check(t testing.TB, rows []statebackend.Row, want map[Owner][]Item) {
	t.Helper()
	seen := 0
	for i := 0; i < len(rows); seen++ {
		o := Owner{string(rows[i].Key), string(rows[i].Namespace)}
		var items []Item
		for ; i < len(rows) && string(rows[i].Key) == o.key && string(rows[i].Namespace) == o.ns; i++ {
			r := &rows[i]
			if (r.Namespace == nil) != (m.Spec.Namespace == nil) || (r.MapKey == nil) != (m.Spec.MapKey == nil) {
				t.Fatalf("%s: namespace %q, map key %q", m.Spec.Name, r.Namespace, r.MapKey)
			}
			items = append(items, Item{string(r.MapKey), string(r.Value), r.At})
		}
		if !slices.Equal(m.ordered(items), want[o]) {
			t.Fatalf("%s: key %q holds\n%.600v\nwant\n%.600v", m.Spec.Name, o.key+o.ns, fmt.Sprint(items), fmt.Sprint(want[o]))
		}
	}
	if seen != len(want) {
		t.Fatalf("%s: %d keys, want %d", m.Spec.Name, seen, len(want))
	}
}

// Namespace draws a canonical namespace of 8 bytes.
func Namespace(r *rand.Rand) string { return []string{"00000000", "00000001", "zzzzzzzz"}[r.IntN(3)] }

func handle[V any](t testing.TB) *serde.Handle {
	t.Helper()
	h, err := serde.Of[V]()
	ok(t, err)
	return h
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// copyBytes copies n bytes of Go values without pointers.
func copyBytes(dst, src unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}
