package csv

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/connector/file"
)

type inner struct {
	Small int8  `csv:"small"`
	Flag  *bool `csv:"flag"`
}

type everything struct {
	inner
	Name    string     `csv:"name"`
	Raw     []byte     `csv:"raw"`
	U       uint16     `csv:"u"`
	F       float32    `csv:"f"`
	At      time.Time  `csv:"at"`
	Maybe   *time.Time `csv:"maybe"`
	Text    *string    `csv:"text"`
	Addr    netip.Addr `csv:"addr"`
	AddrPtr *netip.Addr
	Big     *big.Int
	skipped chan int
	Out     func() `csv:"-"`
}

func TestEveryKindOfField(t *testing.T) {
	const text = "-128,true,n,r,65535,1.5,2024-02-29 12:30:00.25,2024-02-29,\"\",10.0.0.1,::1,0123\n" +
		"127,,,,0,-Infinity,2024-02-29T12:30:00+01:00,,,10.0.0.2,,\n"
	got, err := readRows(reflect.TypeFor[everything](), file.NewInput("f", strings.NewReader(text)), false)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	a, b := got[0].Interface().(everything), got[1].Interface().(everything)
	if a.Small != -128 || !*a.Flag || a.Name != "n" || string(a.Raw) != "r" || a.U != 65535 || a.F != 1.5 ||
		!a.At.Equal(time.Date(2024, 2, 29, 12, 30, 0, 250e6, time.UTC)) || a.Maybe.Day() != 29 || *a.Text != "" ||
		a.Addr.String() != "10.0.0.1" || a.AddrPtr.String() != "::1" || a.Big.Int64() != 123 {
		t.Errorf("first row: %+v", a)
	}
	if b.Small != 127 || b.Flag != nil || b.Name != "" || b.U != 0 || b.Maybe != nil || b.Text != nil || b.AddrPtr != nil ||
		b.Big != nil || !b.At.Equal(time.Date(2024, 2, 29, 11, 30, 0, 0, time.UTC)) || b.skipped != nil {
		t.Errorf("second row: %+v", b)
	}
}

// kinds has a field of every kind, and pointers of every size.
type kinds struct {
	I    int
	I8   int8
	I16  int16
	I32  int32
	I64  int64
	U    uint
	U8   uint8
	U16  uint16
	U32  uint32
	U64  uint64
	F32  float32
	F64  float64
	B    bool
	S    string
	Raw  []byte
	At   time.Time
	Addr netip.Addr
	PI8  *int8
	PU16 *uint16
	PF32 *float32
	PI   *int
	PF64 *float64
	PB   *bool
	PS   *string
	PRaw *[]byte
	PAt  *time.Time
	PBig *big.Int
	PA   *netip.Addr
}

func TestEveryKindIsWrittenAndReadBack(t *testing.T) {
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.FixedZone("", 3600))
	raw, text := []byte("r,"), "s\n"
	big := new(big.Int).Lsh(big.NewInt(1), 100)
	addr := netip.MustParseAddr("::1")
	rows := []kinds{
		{
			-1, -128, -32768, math.MinInt32, math.MinInt64, math.MaxUint, 255, 65535, math.MaxUint32, math.MaxUint64,
			math.MaxFloat32, math.SmallestNonzeroFloat64, true, "x", []byte("\""), at, addr,
			new(int8(127)), new(uint16(1)), new(float32(0.1)), new(-5), new(1e300), new(false), &text, &raw, &at, big, &addr,
		},
		{At: at, Addr: addr, F32: float32(math.Inf(-1)), F64: math.Inf(1)},
	}
	e, err := newEncoder(reflect.TypeFor[kinds](), newOptions([]Option{NilEmpty()}))
	if err != nil {
		t.Fatal(err)
	}
	var written []byte
	for i := range rows {
		if written, _, err = e.row(written, nil, unsafe.Pointer(&rows[i])); err != nil {
			t.Fatal(err)
		}
		written = append(written, '\n')
	}
	got, err := readRows(reflect.TypeFor[kinds](), file.NewInput("f", bytes.NewReader(written)), false)
	if err != nil || len(got) != len(rows) {
		t.Fatalf("%s: %v, %v", written, got, err)
	}
	for i := range rows {
		row := got[i].Interface().(kinds)
		if len(row.Raw) == 0 {
			row.Raw = nil // an empty field is an empty slice
		}
		for name := range reflect.TypeFor[kinds]().Fields() {
			a, b := reflect.ValueOf(rows[i]).FieldByIndex(name.Index), reflect.ValueOf(row).FieldByIndex(name.Index)
			if !sameValue(a, b) {
				t.Errorf("row %d, %s: wrote %v, read %v", i, name.Name, a, b)
			}
		}
	}
}

func sameValue(a, b reflect.Value) bool {
	if a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() {
		a, b = a.Elem(), b.Elem()
	}
	if at, ok := a.Interface().(time.Time); ok {
		return at.Equal(b.Interface().(time.Time))
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func TestNumbersThatDoNotFitAreErrors(t *testing.T) {
	for _, c := range []struct {
		typ       reflect.Type
		fit, over string
	}{
		{reflect.TypeFor[int8](), "-128", "-129"},
		{reflect.TypeFor[int16](), "32767", "32768"},
		{reflect.TypeFor[int32](), "-2147483648", "-2147483649"},
		{reflect.TypeFor[int64](), "-9223372036854775808", "-9223372036854775809"},
		{reflect.TypeFor[int64](), "9223372036854775807", "9223372036854775808"},
		{reflect.TypeFor[int](), "0000000000000000000000000000001", "18446744073709551616"},
		{reflect.TypeFor[uint8](), "255", "256"},
		{reflect.TypeFor[uint16](), "65535", "65536"},
		{reflect.TypeFor[uint32](), "4294967295", "4294967296"},
		{reflect.TypeFor[uint](), "18446744073709551615", "18446744073709551616"},
		{reflect.TypeFor[uint64](), "18446744073709551615", "99999999999999999999999"},
		{reflect.TypeFor[float32](), "3.4e38", "3.5e38"},
		{reflect.TypeFor[float64](), "1.7e308", "1.8e308"},
	} {
		read := func(text string) error {
			_, err := readRows(c.typ, file.NewInput("f", strings.NewReader(text)), false)
			return err
		}
		if err := read(c.fit); err != nil {
			t.Errorf("%s %s: %v", c.typ, c.fit, err)
		}
		if err := read(c.over); !errors.Is(err, ErrRange) {
			t.Errorf("%s %s: %v", c.typ, c.over, err)
		}
		for _, bad := range []string{"-", "1_0", "0x1", "+", "1e", "inf", "--1", "1-"} {
			if err := read(bad); !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrEmpty) {
				t.Errorf("%s %s: %v", c.typ, bad, err)
			}
		}
	}
}

func TestTimesAreReadInTheirLayoutsAndLocation(t *testing.T) {
	zone := time.FixedZone("here", -2*3600)
	got, err := readRows(reflect.TypeFor[time.Time](), file.NewInput("f", strings.NewReader("29.02.2024 07\n2024\n")), false,
		TimeLayouts("02.01.2006 15", "2006"), Location(zone))
	if err != nil || len(got) != 2 || !got[0].Interface().(time.Time).Equal(time.Date(2024, 2, 29, 9, 0, 0, 0, time.UTC)) ||
		got[1].Interface().(time.Time).Location() != zone {
		t.Errorf("got %v, %v", got, err)
	}
}
