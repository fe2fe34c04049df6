package serde

import (
	"math"
	"testing"
	"unsafe"
)

type reading struct {
	Sensor string
	Site   string
	At     int64
	Value  float64
	OK     bool
}

func TestScalarsStringsAndStructsRoundTrip(t *testing.T) {
	h, err := Of[reading]()
	if err != nil {
		t.Fatal(err)
	}
	if h.Layout != Text || !h.Pointers || len(h.Segments) != 3 {
		t.Fatalf("handle %+v", h)
	}
	in := reading{"a", "bé", -5, 1.5, true}
	var out reading
	b, err := h.AppendChecked(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := h.Read(b, unsafe.Pointer(&out)); err != nil || n != len(b) || out != in {
		t.Fatal(n, err, out)
	}
	for i := range b {
		if _, err := h.Read(b[:i], unsafe.Pointer(&out)); err == nil {
			t.Fatalf("prefix of %d bytes was accepted", i)
		}
	}
}

func TestKeysOfStructWithPaddingAndFloat(t *testing.T) {
	type key struct {
		A int8
		B float64
		C int32
	}
	k, err := KeyOf[key]()
	if err != nil || k.Width != 13 || k.Direct {
		t.Fatal(err, k)
	}
	col := []key{{1, 2, 3}, {1, math.Copysign(0, -1), 4}, {1, 0, 4}}
	var s KeyScratch
	c, err := k.Canon(Column{unsafe.Pointer(&col[0]), len(col), unsafe.Sizeof(col[0])}, &s)
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Bytes(1)) != string(c.Bytes(2)) {
		t.Fatal("-0 is another key than 0")
	}
	out := make([]uint64, 3)
	k.Hash(&c, 7, out)
	var back key
	if err := k.Decode(c.Bytes(0), unsafe.Pointer(&back)); err != nil || back != col[0] {
		t.Fatal(err, back)
	}
	if out[0] != k.HashOne(c.Bytes(0), 7) || out[1] != out[2] {
		t.Fatal(out)
	}
	col[2].B = math.NaN()
	_, err = k.Canon(Column{unsafe.Pointer(&col[0]), len(col), unsafe.Sizeof(col[0])}, &s)
	if e, ok := err.(*NaNKeyError); !ok || e.Index != 2 {
		t.Fatal(err)
	}
}

func TestCompositeTextKeys(t *testing.T) {
	type key struct {
		S string
		N int64
	}
	k, err := KeyOf[key]()
	if err != nil || k.Width != 0 || k.Direct {
		t.Fatal(err, k)
	}
	col := []key{{"ab", 3}, {"", -1}}
	var s KeyScratch
	c, err := k.Canon(Column{unsafe.Pointer(&col[0]), len(col), unsafe.Sizeof(col[0])}, &s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range col {
		var back key
		if err := k.Decode(c.Bytes(i), unsafe.Pointer(&back)); err != nil || back != col[i] {
			t.Fatal(err, back)
		}
	}
}
