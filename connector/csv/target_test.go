package csv

import (
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

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
