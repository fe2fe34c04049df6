package serde

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// TestKeyHashGolden holds the durable format of docs/formats/key-hash.md in place: a change here moves the state of every
// existing snapshot to other key groups.
func TestKeyHashGolden(t *testing.T) {
	for _, c := range []struct {
		width uintptr
		key   string
		seed  uint64
		want  uint64
	}{
		{8, strings.Repeat("\x00", 8), 0, 0x2a87a0a036664f30},
		{8, strings.Repeat("\x00", 8), 42, 0x51046e22718c4b44},
		{8, "\x01\x00\x00\x00\x00\x00\x00\x00", 0, 0x55ecaba94caba153},
		{8, "12345678", 42, 0x135f8cd3647e6d77},
		{8, strings.Repeat("\xff", 8), math.MaxUint64, 0x210c92f59b4b3a37},
		{4, strings.Repeat("\x00", 4), 0, 0x2a87a0a036664f30},
		{4, "abcd", 42, 0x0c61511c191ac0e5},
		{2, "ab", 42, 0xd401c31dfcdf40a8},
		{1, "a", 42, 0xa0f9c995f072c67c},
		{1, "\x00", 0, 0x2a87a0a036664f30},
		{16, strings.Repeat("\x00", 16), 0, 0x2a87a0a036664f30},
		{16, "0123456789abcdef", 42, 0x34341df5a8aa3941},
		{12, "0123456789ab", 42, 0xdd7c7b69962e983b},
		{20, "0123456789abcdefghij", 42, 0x9ccf0d41fa073445},
		{0, "", 0, 0x2a87a0a036664f30},
		{0, "", 42, 0x51046e22718c4b44},
		{0, "a", 42, 0xf0415f659e708f8e},
		{0, "ab", 42, 0xd3b44a44386b33b8},
		{0, "abc", 42, 0x3fd6963b21c51207},
		{0, "abcd", 42, 0xa010e81a501dbe99},
		{0, "abcdefg", 42, 0xebc3074b0776fea5},
		{0, "abcdefgh", 42, 0x9ae7a0cd89efe443},
		{0, "0123456789abcdef", 42, 0xadcf3ed4c6c9d113},
		{0, "0123456789abcdefg", 42, 0x83a40b8b0b4941de},
		{0, "the quick brown fox jumps over the lazy dog", 7, 0x0d70c1a2225ebe65},
	} {
		k := &Key{Width: c.width}
		if got := k.HashOne([]byte(c.key), c.seed); got != c.want {
			t.Errorf("{%d, %q, %d, %#016x}, want %#016x", c.width, c.key, c.seed, got, c.want)
		}
	}
}

// TestValueEncodingGolden holds the durable format of docs/formats/value-encoding.md in place.
func TestValueEncodingGolden(t *testing.T) {
	check := func(h *Handle, err error, v unsafe.Pointer, want string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		b, err := h.Append(nil, v)
		if got := hex.EncodeToString(b); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", h.Name, got, err, want)
		}
	}
	type sample struct {
		A int
		_ int8
		B bool
		S string
		F float32
		N []int16
		E []string
		M map[string]uint8
		P *uint16
		T time.Time
		I event
		C secret
	}
	p := uint16(0x0102)
	v := sample{
		A: -2, B: true, S: "hé", F: 1, N: []int16{1, -1}, E: []string{}, M: map[string]uint8{"b": 2, "a": 1}, P: &p,
		T: time.Unix(1, 2).In(time.FixedZone("", -60)), I: click{3, 4}, C: secret{1, "x"},
	}
	h, err := Of[sample](OneOf[event](nothing{}, click{}), WithCodec(putSecret, takeSecret))
	check(h, err, unsafe.Pointer(&v), "feffffffffffffff"+"01"+"0368c3a9"+"0000803f"+"030100ffff"+"01"+"030161010162"+"02"+
		"010201"+"0100000000000000"+"02000000"+"c4ffffff"+"0203000400"+"020278")
	var zero sample
	check(h, err, unsafe.Pointer(&zero), "0000000000000000"+"00"+"00"+"00000000"+"00"+"00"+"00"+"00"+
		"00096e88f1ffffff"+"00000000"+"00000000"+"00"+"0100")
}

// TestKeyEncodingGolden holds the durable format of docs/formats/key-encoding.md in place.
func TestKeyEncodingGolden(t *testing.T) {
	check := func(k *Key, col Column, want string) {
		t.Helper()
		var s KeyScratch
		c, err := k.Canon(col, &s)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(c.Bytes(0)); got != want {
			t.Errorf("%s: %s, want %s", k.Name, got, want)
		}
	}
	type padded struct {
		A int8
		B int32
	}
	type words struct {
		S string
		N int16
	}
	type all struct {
		T tag
		B bool
		C secret
		I int
		Z complex64
	}
	check(keyOf[int64](t), columnOf([]int64{-2}), "feffffffffffffff")
	check(keyOf[uint](t), columnOf([]uint{5}), "0500000000000000")
	check(keyOf[padded](t), columnOf([]padded{{1, 2}}), "0102000000")
	check(keyOf[float64](t), columnOf([]float64{math.Copysign(0, -1)}), "0000000000000000")
	check(keyOf[string](t), columnOf([]string{"ab"}), "6162")
	check(keyOf[words](t), columnOf([]words{{"ab", 3}}), "0261620300")
	check(keyOf[time.Time](t), columnOf([]time.Time{time.Unix(1, 2)}), "010000000000000002000000")
	check(keyOf[tag](t), columnOf([]tag{{[]string{"a", "b"}}}), "612c62")
	check(keyOf[all](t, WithCodec(putSecret, takeSecret)), columnOf([]all{{tag{[]string{"a"}}, true, secret{1, "x"}, -1, complex(1, 2)}}),
		"0161"+"01"+"020278"+"ffffffffffffffff"+"0000803f00000040")
}
