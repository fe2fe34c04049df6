package serde

import (
	"encoding/binary"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

type item struct {
	Name string
	Done chan int
}

type order struct {
	ID    int
	Lines []struct{ Item item }
}

type half struct{ x int }

func (h half) MarshalBinary() ([]byte, error) { return []byte{byte(h.x)}, nil }

type shadow struct {
	time.Time
	n int
}

type message struct{ calls int }

func (m *message) ProtoReflect() { m.calls++ }

type twice struct {
	A int `flott:"n"`
	N int `flott:"n"`
}

func TestRefusedTypesNameTheFieldsPath(t *testing.T) {
	set := OneOf[event](click{}, tree{})
	for _, c := range []struct {
		typ  reflect.Type
		opts []Option
		want string
	}{
		{reflect.TypeFor[order](), nil, "serde: type serde.order: field Lines[].Item.Done: channels have no encoding"},
		{reflect.TypeFor[chan int](), nil, "serde: type chan int: channels have no encoding"},
		{reflect.TypeFor[map[string][]func()](), nil, "serde: type map[string][]func(): field [][]: functions have no encoding"},
		{reflect.TypeFor[struct{ P unsafe.Pointer }](), nil, "field P: unsafe pointers have no encoding"},
		{reflect.TypeFor[[2]*secret](), nil, "field [].a: the field is unexported: export it, give serde.secret MarshalBinary and UnmarshalBinary, or use serde.WithCodec"},
		{reflect.TypeFor[big.Int](), nil, "serde: type big.Int: field neg: the field is unexported"},
		{reflect.TypeFor[half](), nil, "field x: the field is unexported, and serde.half has MarshalBinary but no UnmarshalBinary"},
		{reflect.TypeOf(shadow{n: 1}), nil, "field n: the field is unexported, and the MarshalBinary of serde.shadow may be that of an embedded type: use serde.WithCodec"},
		{reflect.TypeFor[struct{ E event }](), nil, "field E: serde.event is an interface: name its types with serde.OneOf[serde.event](...)"},
		{reflect.TypeFor[[]any](), nil, "field []: interface {} is an interface"},
		{reflect.TypeFor[*message](), nil, "serde: type *serde.message: serde.message is a protocol buffer message: add the option serde.Proto(proto.Marshal, proto.Unmarshal)"},
		{reflect.TypeFor[map[*int]int](), nil, "field [key]: *int can't be part of a map's key"},
		{reflect.TypeFor[map[event]int](), []Option{OneOf[event](click{}, &view{})}, "field [key]: *serde.view can't be part of a map's key"},
		{reflect.TypeFor[map[any]int](), []Option{OneOf[any](1, []int{})}, "field [key]: []int can't be part of a map's key: it has no =="},
		{reflect.TypeFor[event](), []Option{OneOf[event](click{}, leak{})}, "field .(serde.leak).C: channels have no encoding"},
		{reflect.TypeFor[twice](), nil, `field N: another field is named "n", too`},
		{reflect.TypeFor[int](), []Option{set, set}, "serde: set of serde.event: given twice"},
		{reflect.TypeFor[int](), []Option{OneOf[event](click{}, click{1, 1})}, "serde.click is in it twice"},
		{reflect.TypeFor[int](), []Option{OneOf[event](nil)}, "a prototype is nil"},
		{reflect.TypeFor[int](), []Option{OneOf[event]()}, "it is empty"},
		{reflect.TypeFor[int](), []Option{OneOf[int](1)}, "set of int: it is no interface type"},
		{reflect.TypeFor[int](), []Option{WithCodec(putSecret, nil)}, "codec of serde.secret: a function is nil"},
		{reflect.TypeFor[int](), []Option{WithCodec(putSecret, takeSecret), WithCodec(putSecret, takeSecret)}, "given twice"},
		{reflect.TypeFor[int](), []Option{nil}, "an option is nil"},
		{reflect.TypeFor[int](), []Option{Proto[message2](nil, nil)}, "messages as serde.message2: a function is nil"},
	} {
		h, err := OfType(c.typ, c.opts...)
		if err == nil || h != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v:\n got %v\nwant %v", c.typ, err, c.want)
		}
	}
}

type leak struct{ C chan int }

func (leak) isEvent() {}

func TestStructsWithAnEmbeddedMarshalerKeepAllFields(t *testing.T) {
	type stamped struct {
		time.Time
		N int
	}
	h, err := Of[stamped]()
	if err != nil {
		t.Fatal(err)
	}
	in := stamped{time.Unix(5, 6), 7}
	b, err := h.Append(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	var out stamped
	if _, err := h.Read(b, unsafe.Pointer(&out)); err != nil || out.N != 7 || !out.Time.Equal(in.Time) {
		t.Fatal(err, out)
	}
}

func TestValueOutsideTheSetNamesTypeAndSet(t *testing.T) {
	h, err := Of[struct{ E event }](OneOf[event](click{}, (*view)(nil)))
	if err != nil {
		t.Fatal(err)
	}
	v := struct{ E event }{tree{}}
	_, err = h.Append(nil, unsafe.Pointer(&v))
	want := "a value of type serde.tree is outside the set of serde.event: serde.click, *serde.view"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want %s", err, want)
	}
	if err := h.Clone(unsafe.Pointer(new(struct{ E event })), unsafe.Pointer(&v)); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatal(err)
	}
	if h.Equal(unsafe.Pointer(&v), unsafe.Pointer(&v)) {
		t.Fatal("values outside the set are equal to nothing")
	}
	if _, err := h.Read([]byte{3}, unsafe.Pointer(&v)); err == nil {
		t.Fatal("tag 3 of a set of two was accepted")
	}
}

// TestCodecThatReadsAnotherLengthFailsAtOnce is trap B076.
func TestCodecThatReadsAnotherLengthFailsAtOnce(t *testing.T) {
	type rec struct {
		S    secret
		Next int
	}
	wrong := WithCodec(
		func(dst []byte, s secret) ([]byte, error) { return append(dst, "twelve bytes"...), nil },
		func(src []byte) (secret, int, error) { return secret{}, 8, nil },
	)
	h, err := Of[rec](wrong)
	if err != nil {
		t.Fatal(err)
	}
	in := rec{secret{1, "x"}, 5}
	b, err := h.Append(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	const want = "type serde.secret: its codec wrote 12 bytes and read 8"
	var out rec
	if _, err := h.Read(b, unsafe.Pointer(&out)); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want %s", err, want)
	}
	if _, err := h.AppendChecked(nil, unsafe.Pointer(&in)); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want %s", err, want)
	}
}

func TestUserCodecErrorsNameTheInnerType(t *testing.T) {
	broken := errors.New("broken")
	h, err := Of[[]secret](WithCodec(
		func(dst []byte, s secret) ([]byte, error) { return nil, broken },
		func(src []byte) (secret, int, error) { return secret{}, 0, broken },
	))
	if err != nil {
		t.Fatal(err)
	}
	v := make([]secret, 1)
	if _, err := h.Append(nil, unsafe.Pointer(&v)); !errors.Is(err, broken) ||
		err.Error() != "serde: encode []serde.secret: type serde.secret: broken" {
		t.Fatal(err)
	}
	if _, err := h.Read([]byte{2, 0}, unsafe.Pointer(&v)); !errors.Is(err, broken) ||
		err.Error() != "serde: decode []serde.secret: type serde.secret: broken" {
		t.Fatal(err)
	}
}

func TestUserCodecMayReturnASliceOfItsOwn(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 300, 70_000} {
		body := strings.Repeat("x", n)
		for name, put := range map[string]func(dst []byte, s secret) ([]byte, error){
			"own":    func(dst []byte, s secret) ([]byte, error) { return []byte(s.b), nil },
			"append": func(dst []byte, s secret) ([]byte, error) { return append(dst, s.b...), nil },
		} {
			h, err := Of[secret](WithCodec(put, func(src []byte) (secret, int, error) { return secret{0, string(src)}, len(src), nil }))
			if err != nil {
				t.Fatal(err)
			}
			in := secret{0, body}
			b, err := h.AppendChecked(append(make([]byte, 0, 200), "before"...), unsafe.Pointer(&in))
			if err != nil || string(b[:6]) != "before" {
				t.Fatal(name, n, err)
			}
			length, w := binary.Uvarint(b[6:])
			if int(length) != n || string(b[6+w:]) != body {
				t.Fatalf("%s: %d bytes became %d and %d", name, n, length, len(b)-6-w)
			}
		}
	}
}

// message2 is what the protobuf package calls Message.
type message2 interface{ ProtoReflect() }

type order2 struct{ text string }

func (*order2) ProtoReflect() {}

func TestProtoMessagesGoThroughTheGivenFunctions(t *testing.T) {
	h, err := Of[pair[int, *order2]](Proto(
		func(m message2) ([]byte, error) { return []byte(m.(*order2).text), nil },
		func(b []byte, m message2) error { m.(*order2).text = string(b); return nil },
	))
	if err != nil {
		t.Fatal(err)
	}
	in := pair[int, *order2]{1, &order2{text: "hello"}}
	b, err := h.AppendChecked(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	var out, dup pair[int, *order2]
	if _, err := h.Read(b, unsafe.Pointer(&out)); err != nil || out.Val.text != "hello" {
		t.Fatal(err)
	}
	if err := h.Clone(unsafe.Pointer(&dup), unsafe.Pointer(&out)); err != nil || dup.Val == out.Val {
		t.Fatal(err)
	}
	if !h.Equal(unsafe.Pointer(&in), unsafe.Pointer(&dup)) {
		t.Fatal("the copy is another message")
	}
}

func TestCyclicValuesAreAnErrorNotAnEndlessLoop(t *testing.T) {
	h, err := Of[node]()
	if err != nil {
		t.Fatal(err)
	}
	a := &node{V: 1}
	a.Next = a
	b := &node{V: 1}
	b.Next = b
	if _, err := h.Append(nil, unsafe.Pointer(a)); !errors.Is(err, errDepth) {
		t.Fatal(err)
	}
	if err := h.Clone(unsafe.Pointer(new(node)), unsafe.Pointer(a)); !errors.Is(err, errDepth) {
		t.Fatal(err)
	}
	if h.Equal(unsafe.Pointer(a), unsafe.Pointer(b)) {
		t.Fatal("endless values are equal")
	}
}

type ring *ring

func TestHostileBytesNeitherNestNorAllocateWithoutEnd(t *testing.T) {
	huge := binary.AppendUvarint(nil, 1<<60)
	deep := make([]byte, 1<<20)
	for i := range deep {
		deep[i] = 1
	}
	for _, c := range []struct {
		name string
		typ  reflect.Type
		in   []byte
	}{
		{"endless pointers", reflect.TypeFor[ring](), deep},
		{"long string", reflect.TypeFor[string](), huge},
		{"long bytes", reflect.TypeFor[[]byte](), huge},
		{"long strings", reflect.TypeFor[[]string](), huge},
		{"long structs", reflect.TypeFor[[]inner](), huge},
		{"long blanks", reflect.TypeFor[[]blank](), huge},
		{"long map", reflect.TypeFor[map[string]string](), huge},
		{"long map of nothing", reflect.TypeFor[map[struct{}]struct{}](), huge},
		{"same key twice", reflect.TypeFor[map[int8]bool](), []byte{3, 1, 0, 1, 0}},
		{"varint overflow", reflect.TypeFor[string](), deepVarint()},
		{"bool of 2", reflect.TypeFor[bool](), []byte{2}},
		{"bool of 2 in a slice", reflect.TypeFor[[]bool](), []byte{3, 1, 2}},
		{"pointer of 2", reflect.TypeFor[*int8](), []byte{2, 1}},
		{"large pointer", reflect.TypeFor[*[1 << 28]byte](), []byte{1, 1}},
		{"blank that is no 0", reflect.TypeFor[[]blank](), []byte{2, 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := OfType(c.typ)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Read(c.in, h.New()); err == nil {
				t.Fatal("no error")
			}
		})
	}
}

func deepVarint() []byte {
	return []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}
}

// wide takes much more memory than bytes.
type wide struct {
	_ [4000]byte
	B bool
	S []string
}

func TestElementsMuchLargerThanTheirBytesAreStillRead(t *testing.T) {
	h, err := Of[[]wide]()
	if err != nil {
		t.Fatal(err)
	}
	in := make([]wide, 300)
	for i := range in {
		in[i].B = i%3 == 0
		in[i].S = []string{strings.Repeat("x", i)}
	}
	b, err := h.Append(nil, unsafe.Pointer(&in))
	if err != nil {
		t.Fatal(err)
	}
	var out []wide
	if n, err := h.Read(b, unsafe.Pointer(&out)); err != nil || n != len(b) || !h.Equal(unsafe.Pointer(&in), unsafe.Pointer(&out)) {
		t.Fatal(n, err, len(out))
	}
	if cap(out) != len(out) {
		t.Fatalf("capacity %d of %d", cap(out), len(out))
	}
}
