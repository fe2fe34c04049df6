package serde

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// evolve writes a value of type Old and reads it as a New, into memory that holds other things.
func evolve[Old, New any](t *testing.T, in Old, before New, opts ...Option) New {
	t.Helper()
	from, err := Of[Old](opts...)
	if err != nil {
		t.Fatal(err)
	}
	to, err := Of[New](opts...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := from.Append(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := ParseSchema(from.Schema().String())
	if err != nil {
		t.Fatal(err)
	}
	r, err := to.Reader(schema)
	if err != nil {
		t.Fatal(err)
	}
	out := before
	if n, err := r.Read(append(b, 0xff), unsafe.Pointer(&out)); err != nil || n != len(b) {
		t.Fatalf("read %d of %d bytes: %v", n, len(b), err)
	}
	for i := range b {
		var cut New
		if _, err := r.Read(b[:i:i], unsafe.Pointer(&cut)); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", i, len(b))
		}
	}
	return out
}

func TestFieldsAreMatchedByName(t *testing.T) {
	type lineOld struct {
		Item  string
		Count int
	}
	type old struct {
		ID    int64
		Gone  string
		Lines []lineOld
		By    map[string]*lineOld
		Pair  [2]lineOld
		At    time.Time
		Name  string
	}
	type line struct {
		Count int
		Price float64
		Item  string
	}
	type current struct {
		Title string `flott:"Name"`
		New   []int
		By    map[string]*line
		Lines []line
		Pair  [2]line
		ID    int64
		At    time.Time
	}
	in := old{
		7, "gone",
		[]lineOld{{"a", 1}, {"b", 2}},
		map[string]*lineOld{"x": {"c", 3}, "y": nil},
		[2]lineOld{{"d", 4}, {"e", 5}},
		time.Unix(1, 2).UTC(), "name",
	}
	got := evolve(t, in, current{New: []int{1}, Lines: []line{{Price: 9}}})
	want := current{
		"name", nil,
		map[string]*line{"x": {3, 0, "c"}, "y": nil},
		[]line{{1, 0, "a"}, {2, 0, "b"}},
		[2]line{{4, 0, "d"}, {5, 0, "e"}},
		7, time.Unix(1, 2).UTC(),
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

func TestEveryKindCanBeSkipped(t *testing.T) {
	type old struct {
		All  everything
		Last string
	}
	type current struct{ Last string }
	for _, all := range []everything{{}, fullValue()} {
		if got := evolve(t, old{all, "last"}, current{}, everythingOptions()...); got.Last != "last" {
			t.Fatal(got)
		}
	}
}

func TestRecursiveTypesEvolve(t *testing.T) {
	type current struct {
		Kids []node
		More bool
		Next *node
	}
	in := node{1, &node{2, nil, []node{}}, []node{{V: 3, Kids: []node{{V: 4}}}}}
	got := evolve(t, in, current{More: true})
	if want := (current{in.Kids, false, in.Next}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	type nodeV2 struct {
		Next  *nodeV2
		Added string
		V     int
	}
	deep := evolve(t, in, nodeV2{})
	if want := (nodeV2{&nodeV2{nil, "", 2}, "", 1}); !reflect.DeepEqual(deep, want) {
		t.Fatal(deep)
	}
}

type shape interface{ isShape() }

type square struct{ Side float64 }

func (square) isShape() {}
func (click) isShape()  {}

func TestSetsAreMatchedByTypeName(t *testing.T) {
	type old struct{ E []shape }
	from, err := Of[old](OneOf[shape](click{}, square{}))
	if err != nil {
		t.Fatal(err)
	}
	in := old{[]shape{square{2}, click{1, 2}, nil}}
	b, err := from.Append(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	to, err := Of[old](OneOf[shape](square{}, click{}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := to.Reader(from.Schema())
	if err != nil {
		t.Fatal(err)
	}
	var out old
	if _, err := r.Read(b, unsafe.Pointer(&out)); err != nil || !reflect.DeepEqual(in, out) {
		t.Fatal(err, out)
	}
	less, err := Of[old](OneOf[shape](square{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := less.Reader(from.Schema()); err == nil ||
		!strings.Contains(err.Error(), "field E[]: the snapshot has type click, which is not in the set of serde.shape") {
		t.Fatal(err)
	}
}

func TestUnchangedSchemaUsesTheCodecItself(t *testing.T) {
	h := everythingHandle(t)
	r, err := h.Reader(h.Schema())
	if err != nil || r.codec != h.codec {
		t.Fatal(err)
	}
}

func TestChangedKindsAreRefusedWithTheirPath(t *testing.T) {
	type target struct {
		A struct{ B []map[string]int32 }
		T time.Time
		S sealed
		R [2]int8
		P *int8
		N node
	}
	h, err := Of[target]()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"int64":                                    "serde: type serde.target: the snapshot has int64, the program struct{",
		"struct{A struct{B bool}}":                 "field A.B: the snapshot has bool, the program []map[string]int32",
		"struct{A struct{B []map[string]int64}}":   "field A.B[][]: the snapshot has int64, the program int32",
		"struct{A struct{B []map[int64]int32}}":    "field A.B[][key]: the snapshot has int64, the program string",
		"struct{T int64}":                          "field T: the snapshot has int64, the program time",
		"struct{S string}":                         `field S: the snapshot has string, the program custom("sealed")`,
		`struct{S custom("other")}`:                `field S: the snapshot has custom("other"), the program custom("sealed")`,
		"struct{R [3]int8}":                        "field R: the snapshot has [3]int8, the program [2]int8",
		"struct{R [2]uint8}":                       "field R[]: the snapshot has uint8, the program int8",
		"struct{P int8}":                           "field P: the snapshot has int8, the program *int8",
		"struct{N struct{V int64;Next *^1}}":       "field N.Next: the snapshot has *^1",
		"struct{N struct{V int64;Kids []string}}":  "field N.Kids[]: the snapshot has string",
		"struct{N struct{Next *struct{V string}}}": "field N.Next.V: the snapshot has string, the program int64",
	} {
		s, err := ParseSchema(text)
		if err != nil {
			t.Fatal(text, err)
		}
		if _, err := h.Reader(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
