package serde

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"testing"
	"time"
	"unsafe"
)

type inner struct {
	A int32
	S string
	B bool
}

type pair[K, V any] struct {
	Key K
	Val V
}

type node struct {
	V    int
	Next *node
	Kids []node
}

// label is implemented by comparable types only.
type label interface{ isLabel() }

func (click) isLabel()   {}
func (nothing) isLabel() {}

type blank struct{ _ int64 }

type event interface{ isEvent() }

type (
	click struct{ X, Y int16 }
	view  struct {
		URL  string
		Refs []string
	}
	nothing struct{}
	tree    struct{ Left, Right event }
)

func (click) isEvent()   {}
func (*view) isEvent()   {}
func (nothing) isEvent() {}
func (tree) isEvent()    {}

// secret has no exported fields and is encoded by an option.
type secret struct {
	a int
	b string
}

func putSecret(dst []byte, s secret) ([]byte, error) {
	return append(binary.AppendVarint(dst, int64(s.a)), s.b...), nil
}

func takeSecret(src []byte) (secret, int, error) {
	a, n := binary.Varint(src)
	if n <= 0 {
		return secret{}, 0, errors.New("no number")
	}
	return secret{int(a), string(src[n:])}, len(src), nil
}

// sealed has no exported fields and encodes itself.
type sealed struct{ words []string }

func (s *sealed) MarshalBinary() ([]byte, error) {
	var b []byte
	for _, w := range s.words {
		b = append(append(b, byte(len(w))), w...)
	}
	return b, nil
}

func (s *sealed) UnmarshalBinary(b []byte) error {
	for len(b) > 0 {
		n := int(b[0])
		if n > len(b)-1 {
			return errors.New("word is cut off")
		}
		s.words = append(s.words, string(b[1:1+n]))
		b = b[1+n:]
	}
	return nil
}

type inherited struct {
	Inherited uint16
}

type everything struct {
	inherited
	B    bool
	I8   int8
	I16  int16
	I32  int32
	I64  int64
	I    int
	U8   uint8
	U16  uint16
	U32  uint32
	U64  uint64
	U    uint
	F32  float32
	F64  float64
	C64  complex64
	C128 complex128
	S    string
	_    int32
	T    time.Time
	By   []byte
	Bo   []bool
	Fl   []float64
	Ss   []string
	In   []inner
	M    map[string]int
	MM   map[int16]map[string][]float64
	MB   map[bool]struct{}
	P    *inner
	PP   **int
	As   [3]string
	Ab   [5]bool
	Ai   [20]inner
	E    struct{}
	Es   []struct{}
	Bl   []blank
	Bm   map[blank]int
	Ev   event
	Evs  []event
	Sec  secret
	Seal sealed
	PS   *sealed
	U1   url.URL
	Rec  *node
	G    pair[string, *pair[int, float32]]
	Anon struct{ X, Y int }
	Dur  time.Duration
	ME   map[label]string
}

func everythingOptions() []Option {
	return []Option{
		OneOf[event](click{}, (*view)(nil), nothing{}, tree{}),
		OneOf[label](nothing{}, click{}),
		WithCodec(putSecret, takeSecret),
	}
}

func everythingHandle(tb testing.TB) *Handle {
	tb.Helper()
	h, err := Of[everything](everythingOptions()...)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

func fullValue() everything {
	seven := 7
	pseven := &seven
	v := everything{
		inherited: inherited{77},
		B:         true, I8: -8, I16: -16, I32: -32, I64: math.MinInt64, I: -1, U8: 8, U16: 16, U32: 32, U64: math.MaxUint64, U: 99,
		F32: 1.5, F64: -2.25, C64: complex(1, 2), C128: complex(3, -4), S: "Grüße",
		T:  time.Date(2024, 2, 29, 1, 2, 3, 456, time.FixedZone("", 3600)),
		By: []byte{1, 2, 3}, Bo: []bool{true, false}, Fl: []float64{1, 2}, Ss: []string{"", "x"},
		In:  []inner{{1, "a", true}, {2, "b", false}},
		M:   map[string]int{"z": 1, "a": 2, "": 3},
		MM:  map[int16]map[string][]float64{1: {"x": {1, 2}}, -1: nil, 2: {}},
		MB:  map[bool]struct{}{true: {}},
		P:   &inner{5, "p", true},
		PP:  &pseven,
		As:  [3]string{"1", "22", "333"},
		Ab:  [5]bool{true, false, true},
		Es:  make([]struct{}, 1000),
		Bl:  make([]blank, 3),
		Bm:  map[blank]int{{}: 4},
		Ev:  &view{"u", []string{"r"}},
		Evs: []event{click{1, 2}, nil, nothing{}, (*view)(nil), tree{click{3, 4}, tree{nil, nothing{}}}},
		Sec: secret{-5, "five"}, Seal: sealed{[]string{"a", "bc"}}, PS: &sealed{},
		U1:   url.URL{Scheme: "https", Host: "example.com", Path: "/p"},
		Rec:  &node{1, &node{2, nil, []node{}}, []node{{V: 3}, {V: 4, Kids: []node{{V: 5}}}}},
		G:    pair[string, *pair[int, float32]]{"k", &pair[int, float32]{1, 2}},
		Anon: struct{ X, Y int }{1, 2},
		Dur:  time.Second,
		ME:   map[label]string{click{1, 1}: "c", nothing{}: "n"},
	}
	v.Ai[19].S = "last"
	return v
}

// normal makes what reflect.DeepEqual can compare: times differ in the pointer to their zone.
func normal(v everything) everything {
	v.T = time.Unix(0, v.T.UnixNano()).UTC()
	return v
}

func TestEveryKindRoundTrips(t *testing.T) {
	h := everythingHandle(t)
	if h.Layout != Encoded || h.SlotSize != StringRefSize || !h.Pointers {
		t.Fatalf("layout %v, slot %d", h.Layout, h.SlotSize)
	}
	for name, in := range map[string]everything{"zero": {}, "full": fullValue()} {
		t.Run(name, func(t *testing.T) {
			b, err := h.AppendChecked([]byte("before"), unsafe.Pointer(&in))
			if err != nil || string(b[:6]) != "before" {
				t.Fatal(err)
			}
			b = b[6:]
			out := fullValue() // Read must overwrite what was there
			n, err := h.Read(append(b, 0xff), unsafe.Pointer(&out))
			if err != nil || n != len(b) {
				t.Fatalf("read %d of %d: %v", n, len(b), err)
			}
			if !reflect.DeepEqual(normal(in), normal(out)) {
				t.Fatalf("got  %+v\nwant %+v", out, in)
			}
			if !h.Equal(unsafe.Pointer(&in), unsafe.Pointer(&out)) {
				t.Fatal("decoded value is not Equal")
			}
			if _, a := in.T.Zone(); !out.T.Equal(in.T) {
				t.Fatal(a, out.T)
			}
			again, err := h.Append(nil, unsafe.Pointer(&out))
			if err != nil || string(again) != string(b) {
				t.Fatal("the encoding is not deterministic", err)
			}
		})
	}
}

func TestTruncatedBytesAreAnError(t *testing.T) {
	h := everythingHandle(t)
	in := fullValue()
	b, err := h.Append(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		var out everything
		if _, err := h.Read(b[:i:i], unsafe.Pointer(&out)); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", i, len(b))
		}
	}
}

func TestDecodedValueSharesNoMemoryWithTheBytes(t *testing.T) {
	h := everythingHandle(t)
	in := fullValue()
	b, err := h.Append(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	var out everything
	if _, err := h.Read(b, unsafe.Pointer(&out)); err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = 0xee
	}
	if !h.Equal(unsafe.Pointer(&in), unsafe.Pointer(&out)) {
		t.Fatal("overwriting the bytes changed the value")
	}
}

func TestCloneIsDeep(t *testing.T) {
	h := everythingHandle(t)
	in := fullValue()
	out := fullValue()
	out.Rec = nil
	if err := h.Clone(unsafe.Pointer(&out), unsafe.Pointer(&in)); err != nil {
		t.Fatal(err)
	}
	want := fullValue()
	in.By[0], in.Bo[0], in.Fl[0], in.Ss[1], in.In[0].S = 9, false, 9, "y", "changed"
	in.M["z"] = 9
	in.MM[1]["x"][0] = 9
	in.P.S = "changed"
	**in.PP = 8
	in.Ev.(*view).Refs[0] = "changed"
	in.Evs[0] = nil
	in.Seal.words[0] = "changed"
	in.Rec.Kids[1].Kids[0].V = 9
	in.G.Val.Key = 9
	in.ME[click{9, 9}] = "more"
	if !reflect.DeepEqual(normal(out), normal(want)) {
		t.Fatalf("the copy changed with its source:\n%+v\n%+v", out, want)
	}
}

// TestEqualSeesEveryField changes each leaf of the full value in turn.
func TestEqualSeesEveryField(t *testing.T) {
	h := everythingHandle(t)
	seven, eight := 7, 8
	pseven, peight := &seven, &eight
	changes := map[string]func(v *everything){
		"embedded": func(v *everything) { v.Inherited++ },
		"bool":     func(v *everything) { v.B = false },
		"int8":     func(v *everything) { v.I8++ },
		"int":      func(v *everything) { v.I++ },
		"float32":  func(v *everything) { v.F32++ },
		"float64":  func(v *everything) { v.F64++ },
		"NaN":      func(v *everything) { v.F64 = math.NaN() },
		"complex":  func(v *everything) { v.C128 = complex(3, 4) },
		"string":   func(v *everything) { v.S = "Grüsse" },
		"time":     func(v *everything) { v.T = v.T.Add(1) },
		"bytes":    func(v *everything) { v.By[2]++ },
		"shorter":  func(v *everything) { v.By = v.By[:2] },
		"nil":      func(v *everything) { v.Bl = nil },
		"no empty": func(v *everything) { v.Rec.Next.Kids = nil },
		"bools":    func(v *everything) { v.Bo[1] = true },
		"floats":   func(v *everything) { v.Fl[1]++ },
		"strings":  func(v *everything) { v.Ss[0] = "0" },
		"structs":  func(v *everything) { v.In[1].A++ },
		"map":      func(v *everything) { v.M["z"]++ },
		"map key":  func(v *everything) { delete(v.M, "z"); v.M["y"] = 1 },
		"nil map":  func(v *everything) { v.MM[-1] = map[string][]float64{} },
		"deep map": func(v *everything) { v.MM[1]["x"][1]++ },
		"pointer":  func(v *everything) { v.P.A++ },
		"nil ptr":  func(v *everything) { v.P = nil },
		"ptr ptr":  func(v *everything) { v.PP = &peight },
		"array":    func(v *everything) { v.As[2] = "" },
		"barray":   func(v *everything) { v.Ab[4] = true },
		"larray":   func(v *everything) { v.Ai[0].B = true },
		"empties":  func(v *everything) { v.Es = v.Es[:999] },
		"face":     func(v *everything) { v.Ev = click{} },
		"nil face": func(v *everything) { v.Evs[3] = nil },
		"in face":  func(v *everything) { v.Evs[0] = click{1, 3} },
		"user":     func(v *everything) { v.Sec.b = "six" },
		"sealed":   func(v *everything) { v.Seal.words = nil },
		"url":      func(v *everything) { v.U1.Path = "/q" },
		"node":     func(v *everything) { v.Rec.Kids[0].V++ },
		"generic":  func(v *everything) { v.G.Val.Val++ },
	}
	for name, change := range changes {
		a, b := fullValue(), fullValue()
		if !h.Equal(unsafe.Pointer(&a), unsafe.Pointer(&b)) {
			t.Fatal("equal values are not Equal")
		}
		change(&b)
		if h.Equal(unsafe.Pointer(&a), unsafe.Pointer(&b)) || h.Equal(unsafe.Pointer(&b), unsafe.Pointer(&a)) {
			t.Errorf("%s: Equal does not see the change", name)
		}
	}
	a, b := fullValue(), fullValue()
	a.F64, b.F64 = 0, math.Copysign(0, -1)
	a.PP, b.PP = &pseven, &pseven
	b.T = b.T.UTC()
	if !h.Equal(unsafe.Pointer(&a), unsafe.Pointer(&b)) {
		t.Error("zeros, one pointer or one instant are unequal")
	}
}

func TestFormatIsSprint(t *testing.T) {
	h, err := Of[pair[string, int]]()
	if err != nil {
		t.Fatal(err)
	}
	v := pair[string, int]{"a", 1}
	if got := h.Format(unsafe.Pointer(&v)); got != fmt.Sprint(v) || got != "{a 1}" {
		t.Fatal(got)
	}
}

func TestTimesKeepInstantAndOffset(t *testing.T) {
	h, err := Of[time.Time]()
	if err != nil {
		t.Fatal(err)
	}
	type stamp time.Time
	hs, err := Of[stamp]()
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []time.Time{
		{},
		time.Unix(0, 0),
		time.Date(1, 1, 1, 0, 0, 0, 999_999_999, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 1, time.FixedZone("X", -5*3600)),
		time.Date(-5000, 1, 1, 0, 0, 0, 0, time.FixedZone("", 123)),
		time.Now(),
	} {
		b, err := h.AppendChecked(nil, unsafe.Pointer(&in))
		if err != nil || len(b) != 16 {
			t.Fatal(err, len(b))
		}
		var out time.Time
		if _, err := h.Read(b, unsafe.Pointer(&out)); err != nil || !out.Equal(in) || out.IsZero() != in.IsZero() {
			t.Fatal(err, in, out)
		}
		_, want := in.Zone()
		if _, got := out.Zone(); got != want {
			t.Fatalf("offset %d, want %d", got, want)
		}
		named, err := hs.Append(nil, unsafe.Pointer(&in))
		if err != nil || string(named) != string(b) {
			t.Fatal("a type defined as time.Time is encoded differently", err)
		}
	}
	bad := make([]byte, 16)
	binary.LittleEndian.PutUint32(bad[8:], 1e9)
	var out time.Time
	if _, err := h.Read(bad, unsafe.Pointer(&out)); err == nil {
		t.Fatal("a second has no 10^9 nanoseconds")
	}
}
