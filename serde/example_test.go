package serde_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

type Event interface{ Name() string }

type Click struct{ X, Y int32 }

type View struct{ URL string }

func (Click) Name() string { return "click" }
func (View) Name() string  { return "view" }

// An interface type travels if all types that it holds are known.
func ExampleOneOf() {
	h, err := serde.Of[[]Event](serde.OneOf[Event](Click{}, View{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	events := []Event{View{"/home"}, Click{1, 2}}
	b, err := h.Append(nil, unsafe.Pointer(&events))
	if err != nil {
		fmt.Println(err)
		return
	}
	var back []Event
	if _, err := h.Read(b, unsafe.Pointer(&back)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(back, h.Schema())
	// Output: [{/home} {1 2}] []oneof{Click struct{X int32;Y int32};View struct{URL string}}
}

type Celsius struct{ milli int64 }

// A type with unexported fields travels with a codec of its own.
func ExampleWithCodec() {
	h, err := serde.Of[Celsius](serde.WithCodec(
		func(dst []byte, c Celsius) ([]byte, error) { return binary.AppendVarint(dst, c.milli), nil },
		func(src []byte) (Celsius, int, error) {
			milli, n := binary.Varint(src)
			if n <= 0 {
				return Celsius{}, 0, errors.New("not a temperature")
			}
			return Celsius{milli}, n, nil
		},
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	c := Celsius{21_500}
	b, err := h.AppendChecked(nil, unsafe.Pointer(&c))
	fmt.Printf("%x %v\n", b, err)
	// Output: 03f8cf02 <nil>
}

// What cannot be encoded is refused when the type is compiled, with the path of the field.
func ExampleOf() {
	type line struct{ Done chan bool }
	type order struct{ Lines []line }
	_, err := serde.Of[order]()
	fmt.Println(err)
	// Output: serde: type serde_test.order: field Lines[].Done: channels have no encoding
}

// Keys are refused if their identity is not their value.
func ExampleKeyOf() {
	k, err := serde.KeyOf[struct {
		User string
		Day  int32
	}]()
	fmt.Println(k.Width, k.Direct, err)
	_, err = serde.KeyOf[[]byte]()
	fmt.Println(err)
	// Output:
	// 0 false <nil>
	// serde: type []uint8: []uint8 can't be part of a key without MarshalBinary and UnmarshalBinary
}
