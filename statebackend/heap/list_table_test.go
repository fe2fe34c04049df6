package heap

import (
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

func TestLongListIsReadInOrder(t *testing.T) {
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
	if per := float64(table.MemoryBytes()) / 100_000; per > 10 {
		t.Errorf("%.1f bytes per element", per)
	}
	ok(t, table.Delete(0))
	k.checkClosed()
}
