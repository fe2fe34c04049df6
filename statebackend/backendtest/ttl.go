package backendtest

import (
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

func ttl(ms int64) *statebackend.TTL { return &statebackend.TTL{Millis: ms} }

// ttlTables opens a value table of every layout and index, written and read through strings.
func ttlTables(t *tester, spec statebackend.TTL, f func(t *tester, k *kit[int64], table statebackend.Table)) {
	for name, h := range map[string]*serde.Handle{
		"fixed": handle[[2]int64](t), "wide": handle[[20]int64](t), "text": handle[textValue](t), "encoded": handle[[]int64](t),
	} {
		t.Run(name, func(t *tester) {
			k := newKit[int64](t)
			table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: h, TTL: &spec})
			ok(t, err)
			f(t, k, table)
			k.checkClosed()
		})
	}
}

// zeroOf makes a zero value of any type and gives its address.
func zeroOf(h *serde.Handle) unsafe.Pointer {
	return unsafe.Pointer(&make([][4]uint64, 1+h.Size/32)[0])
}

func has(t *tester, table statebackend.Table, i int) bool {
	t.Helper()
	found, err := table.Load(i, unsafe.Pointer(&struct {
		textValue
		rest [20]int64
	}{}))
	ok(t, err)
	return found
}

func valueExpires(t *tester) {
	ttlTables(t, statebackend.TTL{Millis: 10}, func(t *tester, k *kit[int64], table statebackend.Table) {
		k.run(0, 1)
		zero := zeroOf(table.Spec().Value)
		ok(t, table.Save(0, zero))
		k.now = 5
		ok(t, table.Save(1, zero))
		k.now = 9
		if !has(t, table, 0) || !has(t, table, 1) {
			t.Error("expired early")
		}
		k.now = 10
		if table.Has(0) || has(t, table, 0) || !has(t, table, 1) {
			t.Error("at 10 ms key 0 alone must be expired")
		}
		if table.Len() != 1 {
			t.Errorf("the read left %d values, want 1", table.Len())
		}
		n := 0
		k.now = 15
		ok(t, table.Range(func(*statebackend.Entry) bool { n++; return true }))
		if n != 0 {
			t.Errorf("Range shows %d expired values", n)
		}
	})
}

func valueTimeIsRenewedByReadsIfAsked(t *tester) {
	for _, onRead := range []bool{false, true} {
		ttlTables(t, statebackend.TTL{Millis: 10, OnRead: onRead}, func(t *tester, k *kit[int64], table statebackend.Table) {
			k.run(0)
			ok(t, table.Save(0, zeroOf(table.Spec().Value)))
			k.now = 9
			has(t, table, 0)
			k.now = 18
			if has(t, table, 0) != onRead {
				t.Errorf("OnRead %v: has is %v", onRead, !onRead)
			}
			ok(t, table.Save(0, zeroOf(table.Spec().Value)))
			k.now = 27
			if !has(t, table, 0) {
				t.Error("a write did not renew")
			}
		})
	}
}

func expiredValueIsReturnedOnceIfAsked(t *tester) {
	ttlTables(t, statebackend.TTL{Millis: 10, ReturnExpired: true}, func(t *tester, k *kit[int64], table statebackend.Table) {
		k.run(0)
		ok(t, table.Save(0, zeroOf(table.Spec().Value)))
		k.now = 100
		if !has(t, table, 0) || has(t, table, 0) {
			t.Error("want the expired value once")
		}
	})
}

func slotsOfExpiredValuesAreFresh(t *tester) {
	k := newKit[int64](t)
	table, err := k.store.Table(statebackend.TableSpec{Name: "v", Value: handle[int64](t), TTL: ttl(10)})
	ok(t, err)
	k.run(1, 2)
	out, fresh := make([]unsafe.Pointer, 2), make([]bool, 2)
	ok(t, table.Slots(0, 1, out, fresh))
	*(*int64)(out[0]) = 7
	k.now = 5
	ok(t, table.Slots(0, 2, out, fresh))
	if *(*int64)(out[0]) != 7 || fresh[0] || !fresh[1] {
		t.Errorf("slot %d, fresh %v", *(*int64)(out[0]), fresh)
	}
	k.now = 15
	ok(t, table.Slots(0, 2, out, fresh))
	if *(*int64)(out[0]) != 0 || !fresh[0] || !fresh[1] {
		t.Errorf("after expiry: slot %d, fresh %v", *(*int64)(out[0]), fresh)
	}
	if p := (*int64)(table.Find(0)); p == nil || *p != 0 {
		t.Error("Find misses a renewed value")
	}
	k.now = 25
	if table.Find(0) != nil {
		t.Error("Find gives an expired value")
	}
}

func listElementsExpireOneByOne(t *tester) {
	for _, c := range []struct {
		ttl  statebackend.TTL
		want []int64 // at 12 ms, of elements of 0, 4 and 8 ms read at 8 ms
		left int
	}{
		{statebackend.TTL{Millis: 10}, []int64{4, 8}, 2},
		{statebackend.TTL{Millis: 10, OnRead: true}, []int64{0, 4, 8}, 3},
		{statebackend.TTL{Millis: 10, ReturnExpired: true}, []int64{0, 4, 8}, 2},
	} {
		k := newKit[int64](t)
		table, err := k.store.List(statebackend.TableSpec{Name: "l", Value: handle[int64](t), List: true, TTL: &c.ttl})
		ok(t, err)
		k.run(1)
		for _, at := range []int64{0, 4, 8} {
			k.now = at
			ok(t, table.Append(0, unsafe.Pointer(&at)))
		}
		read := func() (got []int64) {
			var v int64
			ok(t, table.Each(0, unsafe.Pointer(&v), func() bool { got = append(got, v); return true }))
			return got
		}
		read()
		k.now = 12
		if got := read(); !slices.Equal(got, c.want) || table.Count(0) != c.left {
			t.Errorf("%+v: got %v (count %d), want %v (%d)", c.ttl, got, table.Count(0), c.want, c.left)
		}
		k.now = 1000
		read()
		if table.Has(0) || table.Len() != 0 {
			t.Errorf("%+v: the read of an expired list left it", c.ttl)
		}
		k.checkClosed()
	}
}

func mapEntriesExpireOneByOne(t *tester) {
	for _, c := range []struct {
		ttl  statebackend.TTL
		want []int64
		left int
	}{
		{statebackend.TTL{Millis: 10}, []int64{4, 8}, 2},
		{statebackend.TTL{Millis: 10, OnRead: true}, []int64{0, 4, 8}, 3},
		{statebackend.TTL{Millis: 10, ReturnExpired: true}, []int64{0, 4, 8}, 2},
	} {
		k := newKit[int64](t)
		mk, err := serde.KeyOf[int64]()
		ok(t, err)
		table, err := k.store.Map(statebackend.TableSpec{Name: "m", Value: handle[int64](t), MapKey: mk, TTL: &c.ttl})
		ok(t, err)
		k.run(1)
		for _, at := range []int64{0, 4, 8} {
			k.now = at
			ok(t, table.Save(0, unsafe.Pointer(&at), unsafe.Pointer(&at)))
		}
		iterate(t, table, func(int64) {})
		k.now = 12
		zero := int64(0)
		if known, err := table.Has(0, unsafe.Pointer(&zero)); err != nil || known != c.ttl.OnRead {
			t.Errorf("%+v: Has(0) is %v, %v", c.ttl, known, err)
		}
		if got := iterate(t, table, func(int64) {}); !slices.Equal(got, c.want) || table.Count(0) != c.left {
			t.Errorf("%+v: got %v (count %d), want %v (%d)", c.ttl, got, table.Count(0), c.want, c.left)
		}
		k.now = 1000
		iterate(t, table, func(int64) {})
		if table.Count(0) != 0 || table.Len() != 0 {
			t.Errorf("%+v: the read of an expired map left it", c.ttl)
		}
		k.checkClosed()
	}
}
