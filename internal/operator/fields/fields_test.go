package fields

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
)

type inner struct {
	City string
	Zip  int32
}

type base struct{ ID int64 }

type ptrBase struct{ Hidden int }

type sample struct {
	base
	*ptrBase
	Name  string
	name2 int8
	Place inner
	Pair  [3]uint16
	Ref   *inner
	Tags  []string
	Any   any
	_     int32
	Flag  bool
	When  time.Time
}

func TestFindResolvesPaths(t *testing.T) {
	var s sample
	for path, want := range map[string]struct {
		offset uintptr
		typ    any
	}{
		"Name":       {unsafe.Offsetof(s.Name), ""},
		"name":       {unsafe.Offsetof(s.Name), ""},
		"name2":      {unsafe.Offsetof(s.name2), int8(0)},
		"ID":         {0, int64(0)},
		"base.ID":    {0, int64(0)},
		"Place.City": {unsafe.Offsetof(s.Place), ""},
		"place.zip":  {unsafe.Offsetof(s.Place) + unsafe.Offsetof(s.Place.Zip), int32(0)},
		"Place.*":    {unsafe.Offsetof(s.Place), inner{}},
		"*":          {0, sample{}},
		"_":          {0, sample{}},
		"f2":         {unsafe.Offsetof(s.Name), ""},
		"_3":         {unsafe.Offsetof(s.Name), ""},
		"Pair.f2":    {unsafe.Offsetof(s.Pair) + 4, uint16(0)},
		"Pair._1":    {unsafe.Offsetof(s.Pair), uint16(0)},
	} {
		f, err := Find(reflect.TypeFor[sample](), path)
		if err != nil || f.Offset != want.offset || f.Type != reflect.TypeOf(want.typ) {
			t.Errorf("%s: offset %d of type %v, %v", path, f.Offset, f.Type, err)
		}
	}
}

func TestFindNamesWhatIsWrong(t *testing.T) {
	for path, want := range map[string]string{
		"":         "empty",
		"Nme":      "it has",
		"Name.x":   "string has no fields",
		"Ref.City": "pointer",
		"Hidden":   "embedded as a pointer",
		"*.Name":   "wildcard",
		"f99":      "position 99",
		"_0":       "position -1",
		"f9":       "blank",
		"Pair.f3":  "it has 3 elements",
		"Pair.x":   "[3]uint16 has no fields",
	} {
		_, err := Find(reflect.TypeFor[sample](), path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v does not say %q", path, err, want)
		}
	}
	for _, i := range []int{-1, 12, 9} {
		if _, err := At(reflect.TypeFor[sample](), i); err == nil {
			t.Errorf("position %d was found", i)
		}
	}
	if _, err := At(reflect.TypeFor[int](), 0); err == nil {
		t.Error("a field of an int was found")
	}
}

func find(t testing.TB, typ reflect.Type, paths ...string) []Field {
	t.Helper()
	var out []Field
	for _, p := range paths {
		f, err := Find(typ, p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

type picked struct {
	When  time.Time
	Pair  [3]uint16
	Tags  []string
	Name  string
	Place inner
	Ref   *inner
	Any   any
	Flag  bool
	Again string
	ID    int64
}

func TestCopierCopiesEveryKindOfField(t *testing.T) {
	c, err := NewCopier(find(t, reflect.TypeFor[sample](),
		"When", "Pair", "Tags", "Name", "Place", "Ref", "Any", "Flag", "Name", "ID"), reflect.TypeFor[picked]())
	if err != nil {
		t.Fatal(err)
	}
	const n = 50
	dst := make([]picked, n)
	func() { // the sources die here: what the copies point to must stay alive
		src := make([]sample, n)
		for i := range src {
			src[i] = sample{
				base: base{int64(i)}, Name: fmt.Sprint("name", i), Place: inner{fmt.Sprint("city", i), int32(i)},
				Pair: [3]uint16{1, uint16(i), 3}, Ref: &inner{City: fmt.Sprint("ref", i)}, Tags: []string{"a", fmt.Sprint(i)},
				Any: fmt.Sprint("any", i), Flag: i%2 == 1, When: time.UnixMilli(int64(i)),
			}
		}
		c.Copy(unsafe.Pointer(&dst[0]), unsafe.Sizeof(dst[0]), unsafe.Pointer(&src[0]), unsafe.Sizeof(src[0]), n)
	}()
	garbage := make([][]byte, 0, 1000)
	for range 3 {
		runtime.GC()
		for range 1000 {
			garbage = append(garbage, make([]byte, 64))
		}
	}
	for i, got := range dst {
		want := picked{
			When: time.UnixMilli(int64(i)), Pair: [3]uint16{1, uint16(i), 3}, Tags: []string{"a", fmt.Sprint(i)},
			Name: fmt.Sprint("name", i), Place: inner{fmt.Sprint("city", i), int32(i)}, Ref: &inner{City: fmt.Sprint("ref", i)},
			Any: fmt.Sprint("any", i), Flag: i%2 == 1, Again: fmt.Sprint("name", i), ID: int64(i),
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("copy %d: %+v", i, got)
		}
	}
	runtime.KeepAlive(garbage)
}

// TestCopierMovesNeighboursTogether covers blocks of all sizes at all alignments.
func TestCopierMovesNeighboursTogether(t *testing.T) {
	type bytes [40]uint8
	type from struct {
		A uint8
		B bytes
	}
	for size := 1; size <= 20; size++ {
		for at := range 8 {
			to := reflect.ArrayOf(size, reflect.TypeFor[uint8]())
			var fs []Field
			for i := range size {
				fs = append(fs, find(t, reflect.TypeFor[from](), fmt.Sprintf("B.f%d", at+i))...)
			}
			c, err := NewCopier(fs, to)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.moves) != 1 {
				t.Errorf("%d bytes that lie together are %d moves", size, len(c.moves))
			}
			var src [3]from
			for i := range src {
				for k := range src[i].B {
					src[i].B[k] = uint8(i*50 + k)
				}
			}
			dst := make([]uint8, 3*size)
			c.Copy(unsafe.Pointer(&dst[0]), uintptr(size), unsafe.Pointer(&src[0]), unsafe.Sizeof(src[0]), 3)
			for i := range src {
				for k := range size {
					if dst[i*size+k] != src[i].B[at+k] {
						t.Fatalf("%d bytes from %d: %v", size, at, dst)
					}
				}
			}
		}
	}
}

func TestCopierRefusesWhatDoesNotFit(t *testing.T) {
	typ := reflect.TypeFor[sample]()
	type other inner
	type one struct{ City string }
	for name, c := range map[string]struct {
		paths []string
		to    reflect.Type
		want  string
	}{
		"another type":          {[]string{"Name"}, reflect.TypeFor[int](), "is of type string, not int"},
		"several into a scalar": {[]string{"Name", "ID"}, reflect.TypeFor[string](), "2 fields"},
		"too many":              {[]string{"Name", "Name"}, reflect.TypeFor[one](), "has 1"},
		"a field's type":        {[]string{"ID"}, reflect.TypeFor[one](), "is of type int64"},
		"a named type":          {[]string{"Place"}, reflect.TypeFor[other](), ""},
		"boxing":                {[]string{"Name"}, reflect.TypeFor[struct{ X any }](), "is of type string"},
	} {
		_, err := NewCopier(find(t, typ, c.paths...), c.to)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", name, err, c.want)
		}
	}
	if _, err := NewCopier(find(t, typ, "Name"), reflect.TypeFor[one]()); err != nil {
		t.Errorf("one field into a struct of one: %v", err)
	}
}

func TestCompareOrdersAsJava(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		a, b float64
		want int
	}{
		{1, 2, -1},
		{2, 1, 1},
		{1, 1, 0},
		{nan, 1, 1},
		{1, nan, -1},
		{nan, nan, 0},
		{math.Inf(1), nan, -1},
	} {
		if got := Compare(c.a, c.b); got != c.want {
			t.Errorf("%v to %v: %d", c.a, c.b, got)
		}
	}
}

type numbers struct {
	I   int
	I8  int8
	I16 int16
	I32 int32
	I64 int64
	U   uint
	U8  uint8
	U16 uint16
	U32 uint32
	U64 uint64
	F32 float32
	F64 float64
	C64 complex64
	C   complex128
	S   string
	B   bool
	T   time.Time
	D   time.Duration
}

func TestNumbersAreAddedAndOrdered(t *testing.T) {
	typ := reflect.TypeFor[numbers]()
	one := numbers{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "a", false, time.Unix(1, 0), 1}
	two := numbers{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, "b", true, time.Unix(2, 0), 2}
	for i := range typ.NumField() {
		f, err := Find(typ, typ.Field(i).Name)
		if err != nil {
			t.Fatal(err)
		}
		if add, err := f.Adder(); err == nil {
			acc := one
			add(unsafe.Pointer(&acc), unsafe.Pointer(&one))
			if got := reflect.ValueOf(acc).Field(i).Interface(); got != reflect.ValueOf(two).Field(i).Interface() {
				t.Errorf("%s: 1 + 1 = %v", f.Path, got)
			}
		} else if f.Path != "S" && f.Path != "B" && f.Path != "T" {
			t.Error(err)
		}
		o, err := f.Order()
		if err != nil {
			if f.Path != "C64" && f.Path != "C" {
				t.Error(err)
			}
			continue
		}
		p, q := unsafe.Pointer(&one), unsafe.Pointer(&two)
		if o.Compare(p, q) != -1 || o.Compare(q, p) != 1 || o.Compare(p, p) != 0 || o.Compare(q, q) != 0 {
			t.Errorf("%s: wrong order", f.Path)
		}
		acc := one
		o.Assign(unsafe.Pointer(&acc), q)
		if reflect.ValueOf(acc).Field(i).Interface() != reflect.ValueOf(two).Field(i).Interface() {
			t.Errorf("%s: not assigned", f.Path)
		}
	}
}
