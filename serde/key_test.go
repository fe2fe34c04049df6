package serde

import (
	"errors"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

type userID int64

type uuid [16]byte

// MarshalBinary is not asked for: the array says everything.
func (uuid) MarshalBinary() ([]byte, error) { return nil, errors.New("not to be called") }
func (*uuid) UnmarshalBinary([]byte) error  { return errors.New("not to be called") }

// tag marshals itself, and fails for one value.
type tag struct{ names []string }

func (t tag) MarshalBinary() ([]byte, error) {
	if len(t.names) == 0 {
		return nil, errors.New("no names")
	}
	return []byte(strings.Join(t.names, ",")), nil
}

func (t *tag) UnmarshalBinary(b []byte) error {
	t.names = strings.Split(string(b), ",")
	return nil
}

type mixedKey struct {
	A int8
	_ string
	B float64
	C [2]float32
	D int32
	E complex64
	F bool
}

type wordsKey struct {
	First string
	N     uint16
	Last  [2]string
	At    time.Time
	Tag   tag
	Sec   secret
	F     float64
}

func keyOf[K any](tb testing.TB, opts ...Option) *Key {
	tb.Helper()
	k, err := KeyOf[K](opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func columnOf[K any](keys []K) Column {
	return Column{P: unsafe.Pointer(unsafe.SliceData(keys)), N: len(keys), Stride: unsafe.Sizeof(*new(K))}
}

// checkKeys makes canonical forms of keys, as a run and within structs, and brings them back.
func checkKeys[K any](t *testing.T, width uintptr, direct bool, keys []K, opts ...Option) {
	t.Helper()
	k := keyOf[K](t, opts...)
	if k.Width != width || k.Direct != direct {
		t.Fatalf("%s: width %d, direct %v", k.Name, k.Width, k.Direct)
	}
	var s, apart KeyScratch
	c, err := k.Canon(columnOf(keys), &s)
	if err != nil || c.N != len(keys) {
		t.Fatal(k.Name, err)
	}
	spaced := make([]struct {
		pad int8
		key K
	}, len(keys))
	for i := range spaced {
		spaced[i].key = keys[i]
	}
	c2, err := k.Canon(Column{unsafe.Pointer(&spaced[0].key), len(spaced), unsafe.Sizeof(spaced[0])}, &apart)
	if err != nil {
		t.Fatal(k.Name, err)
	}
	hashes, hashes2 := make([]uint64, len(keys)), make([]uint64, len(keys))
	k.Hash(&c, 11, hashes)
	k.Hash(&c2, 11, hashes2)
	for i := range keys {
		b := c.Bytes(i)
		if width > 0 && uintptr(len(b)) != width || string(b) != string(c2.Bytes(i)) || hashes[i] != hashes2[i] {
			t.Fatalf("%s: key %d: %x and %x", k.Name, i, b, c2.Bytes(i))
		}
		if h := k.HashOne(b, 11); h != hashes[i] {
			t.Fatalf("%s: key %d: hash %x and %x", k.Name, i, h, hashes[i])
		}
		var back K
		if err := k.Decode(b, unsafe.Pointer(&back)); err != nil {
			t.Fatal(err)
		}
		if !k.Equal(unsafe.Pointer(&back), unsafe.Pointer(&keys[i])) {
			t.Fatalf("%s: key %d: %v came back as %v", k.Name, i, keys[i], back)
		}
		for j := range i {
			if string(b) == string(c.Bytes(j)) {
				t.Fatalf("%s: keys %d and %d are the same", k.Name, i, j)
			}
		}
	}
}

func TestKeysComeBackFromTheirCanonicalForm(t *testing.T) {
	checkKeys(t, 8, true, []int64{0, 1, -1, math.MinInt64})
	checkKeys(t, 8, unsafe.Sizeof(0) == 8, []int{0, 1, -1})
	checkKeys(t, 8, unsafe.Sizeof(0) == 8, []uint{0, 1, 1 << 31})
	checkKeys(t, 8, true, []userID{5, 6})
	checkKeys(t, 8, true, []time.Duration{5, 6})
	checkKeys(t, 4, true, []rune{'a', -1})
	checkKeys(t, 2, true, []uint16{0, 256})
	checkKeys(t, 1, true, []bool{false, true})
	checkKeys(t, 1, true, []int8{-1, 1})
	checkKeys(t, 16, true, []uuid{{1}, {15: 1}})
	checkKeys(t, 4, true, [][4]byte{{1}, {3: 1}})
	checkKeys(t, 16, true, [][2]uint64{{1}, {1: 1}})
	checkKeys(t, 16, true, []packedKey{{1, 2, 3}, {1, 3, 2}})
	checkKeys(t, 20, false, []paddedKey{{1, 2, 3}, {1, 2, 4}, {1, 3, 3}, {2, 2, 3}})
	checkKeys(t, 8, false, []float64{0, 1, math.Inf(1), -1, 5e-324})
	checkKeys(t, 4, false, []float32{0, 1, -1})
	checkKeys(t, 16, false, []complex128{0, 1, 1i})
	checkKeys(t, 30, false, []mixedKey{{A: 1}, {B: 1}, {C: [2]float32{0, 1}}, {D: 1}, {E: 1}, {F: true}})
	checkKeys(t, 0, true, []string{"", "a", "\x00", "äö", strings.Repeat("long", 100)})
	checkKeys(t, 0, true, []struct{ S string }{{""}, {"a"}})
	checkKeys(t, 0, false, []textKey{{"", 0}, {"a", 0}, {"", 'a'}, {"aa", 1}})
	checkKeys(t, 0, false, [][2]string{{"a", "bc"}, {"ab", "c"}, {"", "abc"}, {"abc", ""}, {strings.Repeat("x", 300), ""}})
	checkKeys(t, 0, false, []struct{}{{}})
	checkKeys(t, 12, false, []time.Time{{}, time.Unix(5, 6), time.Unix(5, 7), time.Date(300_000, 1, 1, 0, 0, 0, 1, time.UTC)})
	checkKeys(t, 0, false, []netip.Addr{netip.MustParseAddr("1.2.3.4"), netip.MustParseAddr("::1")})
	checkKeys(t, 0, false, []tag{{[]string{"a"}}, {[]string{"a", "b"}}})
	checkKeys(t, 0, false, []secret{{1, "a"}, {1, "b"}}, WithCodec(putSecret, takeSecret))
	one := wordsKey{"a", 1, [2]string{"b", "c"}, time.Unix(1, 1), tag{[]string{"x"}}, secret{1, "y"}, 0}
	two := one
	two.Tag = tag{[]string{"x", "y"}}
	three := one
	three.Last = [2]string{"bc", ""}
	checkKeys(t, 0, false, []wordsKey{one, two, three}, WithCodec(putSecret, takeSecret))
}

func TestEqualValuesAreOneKey(t *testing.T) {
	var s KeyScratch
	same := func(k *Key, col Column) {
		t.Helper()
		c, err := k.Canon(col, &s)
		if err != nil || string(c.Bytes(0)) != string(c.Bytes(1)) {
			t.Fatal(k.Name, err, c.Bytes(0), c.Bytes(1))
		}
	}
	zero := math.Copysign(0, -1)
	same(keyOf[float64](t), columnOf([]float64{0, zero}))
	same(keyOf[float32](t), columnOf([]float32{0, float32(zero)}))
	same(keyOf[complex128](t), columnOf([]complex128{0, complex(zero, zero)}))
	same(keyOf[mixedKey](t), columnOf([]mixedKey{{B: 0, E: 0}, {B: zero, C: [2]float32{0, float32(zero)}}}))
	same(keyOf[time.Time](t), columnOf([]time.Time{time.Unix(9, 9), time.Unix(9, 9).In(time.FixedZone("X", 99))}))
	blanks := []struct {
		A int8
		_ int8
		B int16
	}{{A: 1, B: 2}, {A: 1, B: 2}}
	bytesAt(unsafe.Pointer(&blanks[1]), 2)[1] = 7
	same(keyOf[struct {
		A int8
		_ int8
		B int16
	}](t), columnOf(blanks))
}

func TestNaNIsAnErrorOfItsElement(t *testing.T) {
	nan := math.NaN()
	var s KeyScratch
	check := func(k *Key, col Column) {
		t.Helper()
		_, err := k.Canon(col, &s)
		var e *NaNKeyError
		if !errors.As(err, &e) || e.Index != 2 || e.Type != k.Name || !strings.Contains(err.Error(), k.Name) {
			t.Fatal(k.Name, err)
		}
	}
	check(keyOf[float64](t), columnOf([]float64{1, math.Inf(-1), nan, nan}))
	check(keyOf[float64](t), columnOf([]float64{1, 2, -nan}))
	check(keyOf[float64](t), columnOf([]float64{1, 2, math.Float64frombits(0x7ff0_0000_0000_0001)}))
	check(keyOf[float32](t), columnOf([]float32{1, 2, float32(nan)}))
	check(keyOf[complex64](t), columnOf([]complex64{1, 2, complex(0, float32(nan))}))
	check(keyOf[mixedKey](t), columnOf([]mixedKey{{}, {}, {C: [2]float32{0, float32(nan)}}}))
	type words struct {
		S string
		F float64
	}
	check(keyOf[words](t), columnOf([]words{{}, {}, {"", nan}}))
}

func TestFailingMarshalBinaryNamesTheElement(t *testing.T) {
	k := keyOf[tag](t)
	var s KeyScratch
	_, err := k.Canon(columnOf([]tag{{[]string{"a"}}, {}}), &s)
	var e *KeyError
	if !errors.As(err, &e) || e.Index != 1 || err.Error() != "serde: key 1 of the run: encode key of type serde.tag: type serde.tag: no names" {
		t.Fatal(err)
	}
}

// TestTypesWithoutIdentityAreRefusedAsKeys is trap B023.
func TestTypesWithoutIdentityAreRefusedAsKeys(t *testing.T) {
	type holder struct {
		Name string
		P    *int
	}
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[*int](), "serde: type *int: *int is an address and can't be part of a key: it differs between processes"},
		{reflect.TypeFor[uintptr](), "uintptr is an address"},
		{reflect.TypeFor[holder](), "serde: type serde.holder: field P: *int is an address"},
		{reflect.TypeFor[[]byte](), "serde: type []uint8: []uint8 can't be part of a key without MarshalBinary and UnmarshalBinary"},
		{reflect.TypeFor[map[string]int](), "map[string]int can't be part of a key"},
		{reflect.TypeFor[[2]any](), "field []: interface {} is an interface and can't be part of a key"},
		{reflect.TypeFor[chan int](), "channels have no encoding"},
		{reflect.TypeFor[func()](), "functions have no encoding"},
		{reflect.TypeFor[*sealed](), "*serde.sealed is an address"},
		{reflect.TypeFor[secret](), "field a: the field is unexported"},
		{reflect.TypeFor[order2](), "serde.order2 is a protocol buffer message"},
		{reflect.TypeFor[[4 * maxKeyParts]float64](), "a key has at most 1024 fields"},
	} {
		k, err := KeyOfType(c.typ)
		if err == nil || k != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v:\n got %v\nwant %v", c.typ, err, c.want)
		}
	}
	_, err := KeyOfType(reflect.TypeFor[order2](), Proto(
		func(message2) ([]byte, error) { return nil, nil }, func([]byte, message2) error { return nil }))
	if err == nil || !strings.Contains(err.Error(), "messages have no canonical encoding") {
		t.Error(err)
	}
}

func TestBytesThatAreNoKeyAreRefused(t *testing.T) {
	type words struct {
		A string
		B bool
	}
	for _, c := range []struct {
		k    *Key
		in   string
		want string
	}{
		{keyOf[int64](t), "1234567", "the bytes end"},
		{keyOf[int64](t), "123456789", "1 bytes too many"},
		{keyOf[bool](t), "\x02", "neither 0 nor 1"},
		{keyOf[float64](t), "\x00\x00\x00\x00\x00\x00\x00\x80", "-0"},
		{keyOf[float32](t), "\xff\xff\xff\xff", "NaN"},
		{keyOf[words](t), "\x02a", "a length is larger"},
		{keyOf[words](t), "\x81\x00a\x01", "not a valid varint"},
		{keyOf[words](t), "\x01a\x01\x00", "1 bytes too many"},
		{keyOf[time.Time](t), "12345678\xff\xff\xff\xff", "nanoseconds"},
		{keyOf[struct{}](t), "x", "1 bytes too many"},
	} {
		err := c.k.Decode([]byte(c.in), c.k.New())
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.k.Name) {
			t.Errorf("%s %q: %v, want %s", c.k.Name, c.in, err, c.want)
		}
	}
}

func TestCanonDoesNotAllocateInSteadyState(t *testing.T) {
	check := func(k *Key, col Column) {
		t.Helper()
		var s KeyScratch
		out := make([]uint64, col.N)
		n := testing.AllocsPerRun(20, func() {
			c, err := k.Canon(col, &s)
			if err != nil {
				t.Fatal(err)
			}
			k.Hash(&c, 1, out)
		})
		if n > 0 {
			t.Errorf("%s: %.1f allocations per run", k.Name, n)
		}
	}
	check(keyOf[int64](t), columnOf(make([]int64, 100)))
	check(keyOf[string](t), columnOf(make([]string, 100)))
	check(keyOf[mixedKey](t), columnOf(make([]mixedKey, 100)))
	check(keyOf[textKey](t), columnOf(make([]textKey, 100)))
	check(keyOf[time.Time](t), columnOf(make([]time.Time, 100)))
	var spaced [100]struct {
		N int
		S string
	}
	check(keyOf[string](t), Column{unsafe.Pointer(&spaced[0].S), len(spaced), unsafe.Sizeof(spaced[0])})
}

func TestRunsOfAllLengthsIncludingNone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	text := randomText(0, 20)
	var s KeyScratch
	k, ks, km := keyOf[textKey](t), keyOf[string](t), keyOf[paddedKey](t)
	for _, n := range []int{0, 3, 100, 1, 0, 50} {
		keys, packed, plain := make([]textKey, n), make([]paddedKey, n), make([]string, n)
		for i := range keys {
			keys[i] = textKey{text(r), r.Int64()}
			plain[i] = keys[i].S
			packed[i] = paddedKey{r.Int64(), r.Int32(), r.Float64()}
		}
		for _, run := range []struct {
			k   *Key
			col Column
		}{{k, columnOf(keys)}, {ks, columnOf(plain)}, {km, columnOf(packed)}} {
			c, err := run.k.Canon(run.col, &s)
			if err != nil || c.N != n || c.Width == 0 && len(c.Text) != n {
				t.Fatal(run.k.Name, err, c.N)
			}
			run.k.Hash(&c, 1, make([]uint64, n))
			for i := range n {
				back := run.k.New()
				if err := run.k.Decode(c.Bytes(i), back); err != nil || !run.k.Equal(back, run.col.At(i)) {
					t.Fatal(run.k.Name, i, err)
				}
			}
		}
	}
}
