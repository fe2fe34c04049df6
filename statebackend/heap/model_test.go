package heap

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

// A model is what a table should hold: by key and namespace the items in order. A value is a list of one item.
type model struct {
	spec  statebackend.TableSpec
	draw  func(*rand.Rand) unsafe.Pointer // a value
	table statebackend.Table
	list  statebackend.ListTable
	maps  statebackend.MapTable
	held  map[owner][]item
	ns    string
	fades bool // the state gets smaller
}

type owner struct{ key, ns string }

type item struct {
	mapKey, value string
	at            int64
}

func (m *model) open(t testing.TB, s statebackend.Store) {
	var err error
	switch m.spec.Kind() {
	case "list":
		m.list, err = s.List(m.spec)
	case "map":
		m.maps, err = s.Map(m.spec)
	default:
		m.table, err = s.Table(m.spec)
	}
	ok(t, err)
}

func (m *model) encode(t testing.TB, v unsafe.Pointer) string {
	b, err := m.spec.Value.Append(nil, v)
	ok(t, err)
	return string(b)
}

// expired says whether an item is gone at a time.
func (m *model) expired(x item, now int64) bool {
	return m.spec.TTL != nil && m.spec.TTL.Expired(x.at, now)
}

// choose selects a namespace.
func (m *model) choose(ns string) {
	if m.spec.Namespace == nil {
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

// step does something with key i of the run, on the table and on the model.
func (m *model) step(t testing.TB, r *rand.Rand, i int, key string, now int64) {
	o := owner{key, m.ns}
	m.forget(o, now)
	if m.fades && r.IntN(3) > 0 {
		m.remove(t, i)
		delete(m.held, o)
		return
	}
	v := m.draw(r)
	x := item{value: m.encode(t, v), at: now}
	if m.spec.TTL == nil {
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

func (m *model) remove(t testing.TB, i int) {
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
func (m *model) forget(o owner, now int64) {
	m.held[o] = slices.DeleteFunc(m.held[o], func(x item) bool { return m.expired(x, now) })
}

func (m *model) stepValue(t testing.TB, r *rand.Rand, i int, o owner, v unsafe.Pointer, x item) {
	switch n := r.IntN(10); {
	case n < 4:
		ok(t, m.table.Save(i, v))
		m.held[o] = []item{x}
	case n < 6 && m.spec.Value.Layout == serde.Fixed:
		var out [1]unsafe.Pointer
		var fresh [1]bool
		ok(t, m.table.Slots(i, i+1, out[:], fresh[:]))
		if fresh[0] != (len(m.held[o]) == 0) {
			t.Fatalf("%s: fresh is %v, the model holds %d", m.spec.Name, fresh[0], len(m.held[o]))
		}
		copyBytes(out[0], v, m.spec.Value.Size)
		m.held[o] = []item{x}
	case n < 8:
		got := m.spec.Value.New()
		found, err := m.table.Load(i, got)
		ok(t, err)
		if found != (len(m.held[o]) > 0) || found && m.encode(t, got) != m.held[o][0].value {
			t.Fatalf("%s: loaded %v, want %v", m.spec.Name, found, m.held[o])
		}
		m.read(o, x.at)
	default:
		ok(t, m.table.Delete(i))
		m.held[o] = nil
	}
}

// read renews the items that a read renews.
func (m *model) read(o owner, now int64) {
	if m.spec.TTL != nil && m.spec.TTL.OnRead {
		for i := range m.held[o] {
			m.held[o][i].at = now
		}
	}
}

func (m *model) stepList(t testing.TB, r *rand.Rand, i int, o owner, v unsafe.Pointer, x item) {
	switch n := r.IntN(20); {
	case n < 14:
		ok(t, m.list.Append(i, v))
		m.held[o] = append(m.held[o], x)
	case n < 17:
		var got []string
		e := m.spec.Value.New()
		ok(t, m.list.Each(i, e, func() bool {
			got = append(got, m.encode(t, e))
			return true
		}))
		m.checkItems(t, o, got)
		m.read(o, x.at)
	case n < 19 && m.spec.Namespace != nil:
		to := owner{o.key, namespaces[r.IntN(len(namespaces))]}
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
func (m *model) checkItems(t testing.TB, o owner, got []string) {
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
		t.Fatalf("%s: read %q, want %q", m.spec.Name, got, want)
	}
}

func (m *model) stepMap(t testing.TB, r *rand.Rand, i int, o owner, v unsafe.Pointer, x item) {
	name, k := mapKey(r)
	x.mapKey = name
	at := slices.IndexFunc(m.held[o], func(y item) bool { return y.mapKey == name })
	switch n := r.IntN(20); {
	case n < 9:
		ok(t, m.maps.Save(i, k, v))
		m.put(o, at, x)
	case n < 11 && m.spec.Value.Layout == serde.Fixed:
		slot, fresh, err := m.maps.Slot(i, k)
		ok(t, err)
		if fresh != (at < 0) {
			t.Fatalf("%s: fresh is %v, the model is at %d", m.spec.Name, fresh, at)
		}
		copyBytes(slot, v, m.spec.Value.Size)
		m.put(o, at, x)
	case n < 13:
		got := m.spec.Value.New()
		found, err := m.maps.Load(i, k, got)
		ok(t, err)
		if found != (at >= 0) || found && m.encode(t, got) != m.held[o][at].value {
			t.Fatalf("%s: loaded %v, want %d", m.spec.Name, found, at)
		}
		if found && m.spec.TTL != nil && m.spec.TTL.OnRead {
			m.held[o][at].at = x.at
		}
	case n < 15:
		var got []string
		mk, e := "", m.spec.Value.New()
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
			t.Fatalf("%s: removed %v, want %d", m.spec.Name, found, at)
		}
		if at >= 0 {
			m.held[o] = slices.Delete(m.held[o], at, at+1)
		}
	default:
		ok(t, m.maps.Delete(i))
		m.held[o] = nil
	}
}

func (m *model) put(o owner, at int, x item) {
	if at < 0 {
		m.held[o] = append(m.held[o], x)
		return
	}
	m.held[o][at] = x
}

// want gives what a snapshot at a time must hold.
func (m *model) want(now int64) map[owner][]item {
	out := make(map[owner][]item, len(m.held))
	for o, items := range m.held {
		items = slices.DeleteFunc(slices.Clone(items), func(x item) bool { return m.expired(x, now) })
		if len(items) > 0 {
			out[o] = m.ordered(items)
		}
	}
	return out
}

// ordered gives items of a map with a time to live in order of keys: an expired entry that is written again may keep its
// place or not.
func (m *model) ordered(items []item) []item {
	if m.spec.MapKey != nil && m.spec.TTL != nil {
		slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.mapKey, b.mapKey) })
	}
	return items
}

// check compares the rows of a snapshot with what it must hold. Rows of one key must be together.
func (m *model) check(t testing.TB, rows []statebackend.Row, want map[owner][]item) {
	t.Helper()
	seen := 0
	for i := 0; i < len(rows); seen++ {
		o := owner{string(rows[i].Key), string(rows[i].Namespace)}
		var items []item
		for ; i < len(rows) && string(rows[i].Key) == o.key && string(rows[i].Namespace) == o.ns; i++ {
			r := &rows[i]
			if (r.Namespace == nil) != (m.spec.Namespace == nil) || (r.MapKey == nil) != (m.spec.MapKey == nil) {
				t.Fatalf("%s: namespace %q, map key %q", m.spec.Name, r.Namespace, r.MapKey)
			}
			items = append(items, item{string(r.MapKey), string(r.Value), r.At})
		}
		if !slices.Equal(m.ordered(items), want[o]) {
			t.Fatalf("%s: key %q holds\n%.600v\nwant\n%.600v", m.spec.Name, o.key+o.ns, fmt.Sprint(items), fmt.Sprint(want[o]))
		}
	}
	if seen != len(want) {
		t.Fatalf("%s: %d keys, want %d", m.spec.Name, seen, len(want))
	}
}

var namespaces = []string{"00000000", "00000001", "zzzzzzzz"}

// models makes a model of each kind of table, with texts up to about 40 bytes times fat.
func models(t testing.TB, fat int) []*model {
	var out []*model
	window, err := serde.KeyOf[[8]byte]()
	ok(t, err)
	text, err := serde.KeyOf[string]()
	ok(t, err)
	values := []struct {
		h    *serde.Handle
		draw func(*rand.Rand) unsafe.Pointer
	}{
		{handle[int64](t), func(r *rand.Rand) unsafe.Pointer { v := r.Int64(); return unsafe.Pointer(&v) }},
		{handle[textValue](t), func(r *rand.Rand) unsafe.Pointer {
			v := textValue{N: r.Int64N(99), S: strings.Repeat("s", r.IntN(40*fat)), T: fmt.Sprint(r.IntN(99))}
			return unsafe.Pointer(&v)
		}},
		{handle[[]string](t), func(r *rand.Rand) unsafe.Pointer {
			v := make([]string, r.IntN(5))
			for i := range v {
				v[i] = strings.Repeat("x", r.IntN(30*fat))
			}
			return unsafe.Pointer(&v)
		}},
	}
	ttls := []*statebackend.TTL{nil, {Millis: 300}, {Millis: 300, OnRead: true}}
	n := 0
	for _, kind := range []string{"value", "list", "map"} {
		for v, value := range values {
			for _, ns := range []*serde.Key{nil, window} {
				m := &model{draw: value.draw, held: map[owner][]item{}}
				m.spec = statebackend.TableSpec{Value: value.h, Namespace: ns, List: kind == "list", TTL: ttls[n%len(ttls)]}
				m.spec.Name = fmt.Sprint(kind, "/", value.h.Layout, "/ns ", ns != nil, "/ttl ", n%len(ttls))
				if kind == "map" {
					m.spec.MapKey = text
				}
				out = append(out, m)
				n++
				if v == 0 || kind == "list" { // one more with the next TTL
					c := *m
					c.held = map[owner][]item{}
					c.spec.TTL = ttls[n%len(ttls)]
					c.spec.Name += fmt.Sprint(", ", n%len(ttls))
					out = append(out, &c)
				}
			}
		}
	}
	return out
}
