package serde

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

func checkColumn[T any](t *testing.T, plain bool, values ...T) {
	t.Helper()
	h, err := Of[T](everythingOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.plainWidth() > 0; got != plain && !bigEndian {
		t.Errorf("%s: copied as a whole: %v", h.Name, got)
	}
	var one []byte
	for i := range values {
		if one, err = h.Append(one, unsafe.Pointer(&values[i])); err != nil {
			t.Fatal(err)
		}
	}
	all, err := h.AppendColumn([]byte("x"), columnOf(values))
	if err != nil || string(all) != "x"+string(one) {
		t.Fatalf("%s: %x one by one, %x as a column, %v", h.Name, one, all, err)
	}
	type spaced struct {
		_ bool
		v T
	}
	out := make([]spaced, len(values))
	back := make([]T, len(values))
	for _, c := range []Column{
		{unsafe.Pointer(&out[0].v), len(out), unsafe.Sizeof(out[0])},
		columnOf(back),
	} {
		if n, err := h.ReadColumn(append(one, 1), c); err != nil || n != len(one) {
			t.Fatal(h.Name, n, err)
		}
		for i := range len(one) {
			n, err := h.ReadColumn(one[:i], c)
			if err == nil || n > i || !strings.Contains(err.Error(), h.Name) {
				t.Fatalf("%s: %d of %d bytes: %d, %v", h.Name, i, len(one), n, err)
			}
		}
		if _, err := h.ReadColumn(one, c); err != nil {
			t.Fatal(err)
		}
	}
	for i := range values {
		if !reflect.DeepEqual(values[i], back[i]) || !reflect.DeepEqual(values[i], out[i].v) {
			t.Fatalf("%s: value %d came back as %v and %v", h.Name, i, back[i], out[i].v)
		}
	}
}

func TestColumnsAreTheirValuesOneByOne(t *testing.T) {
	checkColumn(t, true, int64(1), -1, 5)
	checkColumn(t, true, float32(1), -1, 5)
	checkColumn(t, true, packedKey{1, 2, 3}, packedKey{4, 5, 6})
	checkColumn(t, true, [100]int16{1}, [100]int16{2})
	checkColumn(t, false, true, false)
	checkColumn(t, false, pair[int8, int32]{1, 2}, pair[int8, int32]{3, 4})
	checkColumn(t, false, "a", "", "bc")
	checkColumn(t, false, []string{"a"}, nil, []string{})
	checkColumn[event](t, false, click{1, 2}, nil, nothing{})
}

func TestErrorOfAColumnNamesTheValue(t *testing.T) {
	h, err := Of[event](OneOf[event](click{}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.AppendColumn(nil, columnOf([]event{click{}, nothing{}}))
	if err == nil || !strings.Contains(err.Error(), "serde: encode serde.event, value 1 of 2: a value of type serde.nothing") {
		t.Fatal(err)
	}
}

func TestValuesWithoutBytesKeepTheirNumber(t *testing.T) {
	h, err := Of[struct{}]()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]struct{}, 1000)
	b, err := h.AppendColumn(nil, columnOf(values))
	if err != nil || len(b) != 0 {
		t.Fatal(len(b), err)
	}
	if n, err := h.ReadColumn(b, columnOf(values)); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	hs, err := Of[[]struct{}]()
	if err != nil {
		t.Fatal(err)
	}
	var out []struct{}
	b, err = hs.AppendChecked(nil, unsafe.Pointer(&values))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hs.Read(b, unsafe.Pointer(&out)); err != nil || len(out) != 1000 {
		t.Fatal(len(out), err)
	}
}
