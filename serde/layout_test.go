package serde

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

func TestLayoutFollowsFromGoMemory(t *testing.T) {
	for _, c := range []struct {
		typ      reflect.Type
		layout   Layout
		slot     uintptr
		segments int
		pointers bool
	}{
		{reflect.TypeFor[bool](), Fixed, 8, 0, false},
		{reflect.TypeFor[[3]int32](), Fixed, 16, 0, false},
		{reflect.TypeFor[packedKey](), Fixed, 16, 0, false},
		{reflect.TypeFor[struct{}](), Fixed, 0, 0, false},
		{reflect.TypeFor[string](), Text, 16, 1, true},
		{reflect.TypeFor[[2]string](), Text, 32, 2, true},
		{reflect.TypeFor[struct {
			A int64
			S string
			B int32
		}](), Text, 32, 3, true},
		{reflect.TypeFor[[maxSegments]string](), Encoded, 16, 0, true},
		{reflect.TypeFor[[]int](), Encoded, 16, 0, true},
		{reflect.TypeFor[*int](), Encoded, 16, 0, true},
		{reflect.TypeFor[time.Time](), Encoded, 16, 0, true},
		{reflect.TypeFor[map[int]int](), Encoded, 16, 0, true},
		{reflect.TypeFor[struct {
			_ *int
			A int
		}](), Encoded, 16, 0, true},
		{reflect.TypeFor[struct {
			_ string
			A int64
		}](), Text, 24, 2, true},
		{reflect.TypeFor[[0]string](), Fixed, 0, 0, false},
		{reflect.TypeFor[uuid](), Fixed, 16, 0, false},
	} {
		h, err := OfType(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		if h.Layout != c.layout || h.SlotSize != c.slot || len(h.Segments) != c.segments || h.Pointers != c.pointers {
			t.Errorf("%v: %v, slot %d, segments %v, pointers %v", c.typ, h.Layout, h.SlotSize, h.Segments, h.Pointers)
		}
		if h.Size != c.typ.Size() || h.Name != c.typ.String() {
			t.Errorf("%v: size %d, name %s", c.typ, h.Size, h.Name)
		}
	}
	if s := Fixed.String() + Text.String() + Encoded.String(); s != "fixedtextencoded" {
		t.Error(s)
	}
}

// TestSegmentsPackAndUnpackAValue does what a state table does with text layout.
func TestSegmentsPackAndUnpackAValue(t *testing.T) {
	type value struct {
		A int8
		S string
		B [3]int16
		T [2]string
		C bool
	}
	h, err := Of[value]()
	if err != nil {
		t.Fatal(err)
	}
	in := value{1, "one", [3]int16{2, 3, 4}, [2]string{"two", "three"}, true}
	slot := make([]byte, h.SlotSize)
	var texts []string
	var end, covered uintptr
	for _, s := range h.Segments {
		if s.To < end {
			t.Fatalf("segment %+v overlaps the one before", s)
		}
		if s.IsString {
			if s.To%8 != 0 {
				t.Fatalf("string at %d", s.To)
			}
			texts = append(texts, strings.Clone(*(*string)(unsafe.Add(unsafe.Pointer(&in), s.From))))
			slot[s.To] = byte(len(texts))
			end = s.To + StringRefSize
			covered += unsafe.Sizeof("")
			continue
		}
		copyBytes(unsafe.Pointer(&slot[s.To]), unsafe.Add(unsafe.Pointer(&in), s.From), s.Len)
		end = s.To + s.Len
		covered += s.Len
	}
	if end > h.SlotSize || h.SlotSize%8 != 0 || covered != h.Size {
		t.Fatalf("segments end at %d of %d and cover %d of %d bytes", end, h.SlotSize, covered, h.Size)
	}
	var out value
	for _, s := range h.Segments {
		to := unsafe.Add(unsafe.Pointer(&out), s.From)
		if s.IsString {
			*(*string)(to) = texts[slot[s.To]-1]
			continue
		}
		copyBytes(to, unsafe.Pointer(&slot[s.To]), s.Len)
	}
	if out != in {
		t.Fatal(out)
	}
}
