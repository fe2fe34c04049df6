package heap

import (
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

func ttl(ms int64) *statebackend.TTL { return &statebackend.TTL{Millis: ms} }

// ttlTables opens a value table of every layout and index, written and read through strings.
func ttlTables(t *testing.T, spec statebackend.TTL, f func(t *testing.T, k *kit[int64], table statebackend.Table)) {
	for name, h := range map[string]*serde.Handle{
		"fixed": handle[[2]int64](t), "wide": handle[[20]int64](t), "text": handle[textValue](t), "encoded": handle[[]int64](t),
	} {
		t.Run(name, func(t *testing.T) {
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

// TestExpiredStateIsSweptByOtherKeys writes many values and then uses other keys only.
func TestExpiredStateIsSweptByOtherKeys(t *testing.T) {
	t.Run("values", func(t *testing.T) {
		ttlTables(t, statebackend.TTL{Millis: 10}, func(t *testing.T, k *kit[int64], table statebackend.Table) {
			zero := zeroOf(table.Spec().Value)
			sweeps(t, k, func(i int) { ok(t, table.Save(i, zero)) }, table.Len)
		})
	})
	t.Run("lists", func(t *testing.T) {
		k := newKit[int64](t)
		table, err := k.store.List(statebackend.TableSpec{Name: "l", Value: handle[string](t), List: true, TTL: ttl(10)})
		ok(t, err)
		s := "some text"
		sweeps(t, k, func(i int) { ok(t, table.Append(i, unsafe.Pointer(&s))) }, table.Len)
		k.checkClosed()
	})
	t.Run("maps", func(t *testing.T) {
		k := newKit[int64](t)
		mk, err := serde.KeyOf[string]()
		ok(t, err)
		table, err := k.store.Map(statebackend.TableSpec{Name: "l", Value: handle[string](t), MapKey: mk, TTL: ttl(10)})
		ok(t, err)
		s := "some text"
		sweeps(t, k, func(i int) { ok(t, table.Save(i, unsafe.Pointer(&s), unsafe.Pointer(&s))) }, table.Len)
		if owners := table.(*mapTable).owners; owners.length() != 1 {
			t.Errorf("%d maps are left, want 1", owners.length())
		}
		k.checkClosed()
	})
}

func sweeps(t *testing.T, k *kit[int64], write func(i int), length func() int) {
	t.Helper()
	keys := make([]int64, 5000)
	for i := range keys {
		keys[i] = int64(i)
	}
	k.run(keys...)
	for i := range keys {
		write(i)
	}
	if length() != len(keys) {
		t.Fatalf("%d values, want %d", length(), len(keys))
	}
	k.now = 100
	other := make([]int64, sweepEvery)
	for i := range other {
		other[i] = -1
	}
	for range 300 {
		k.run(other...)
		write(0)
	}
	if length() != 1 {
		t.Errorf("%d values are left, want 1", length())
	}
	k.now = 0
}

func TestTTLNearTheEndOfTimeNeverExpires(t *testing.T) {
	spec := ttl(1<<63 - 1)
	if spec.Expired(5, 1<<62) || !ttl(1).Expired(1<<62, 1<<62+1) {
		t.Error("sums beyond int64 must not expire")
	}
}
