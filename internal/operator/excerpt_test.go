package operator

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

type secret string

func (secret) String() string { return "***" }

type rude struct{}

func (rude) String() string { panic("rude") }

type knot struct {
	Name string
	Next *knot
	any  any
}

func TestExcerptsShowValues(t *testing.T) {
	loop := &knot{Name: "a"}
	loop.Next = loop
	for _, c := range []struct {
		v    any
		want string
	}{
		{7, "7"},
		{-1.5, "-1.5"},
		{true, "true"},
		{nil, "<nil>"},
		{"a\nb", `"a\nb"`},
		{[]byte("abc"), `"abc"`},
		{[2]string{"x", ""}, `["x" ""]`},
		{struct {
			ID   int
			Name string
			At   time.Time
		}{7, "x", time.Unix(0, 0).UTC()}, `{ID:7 Name:"x" At:1970-01-01 00:00:00 +0000 UTC}`},
		{map[string]int{"b": 2, "a": 1}, `map["a":1 "b":2]`},
		{make(map[int]int), "map[]"},
		{&struct{ X *int }{}, "&{X:<nil>}"},
		{secret("password"), "***"},
		{struct{ S secret }{"password"}, "{S:***}"},
		{errors.New("several\nlines"), `several\nlines`},
		{knot{any: 3}, `{Name:"" Next:<nil> any:3}`},
		{make(chan int), "(chan int)"},
		{func() {}, "(func())"},
		{loop, `&{Name:"a" Next:&{Name:"a" Next:&{Name:"a" Next:&{Name:"a" Next:(*operator.knot) any:<nil>} any:<nil>} any:<nil>} any:<nil>}`},
	} {
		if got := Excerpt(c.v); got != c.want {
			t.Errorf("%#v is shown as %s, want %s", c.v, got, c.want)
		}
	}
	if got := Excerpt(rude{}); !strings.Contains(got, "PANIC") {
		t.Errorf("a String that panics is shown as %s", got)
	}
}

// However large a value is, its excerpt is short, valid text, and made without a walk through all of it.
func TestExcerptsAreShort(t *testing.T) {
	many := map[int]string{}
	for i := range 1000 {
		many[i] = "x"
	}
	for name, v := range map[string]any{
		"text": strings.Repeat("ä", 1<<20), "odd text": "x" + strings.Repeat("ä", 300), "bytes": make([]byte, 1<<20), "list": make([]int, 1<<20),
		"map": many, "deep": [][][]string{{make([]string, 1<<20)}}, "struct": struct{ A, B [1 << 16]int32 }{}, "stringer": fmt.Errorf("%s", strings.Repeat("€", 500)),
	} {
		got := Excerpt(v)
		if len(got) > excerptLen+len("...") || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes %.50q", name, len(got), got)
		}
		if name != "map" && !strings.HasSuffix(got, "...") {
			t.Errorf("%s: nothing says that there is more: %s", name, got)
		}
	}
	if n := testing.AllocsPerRun(10, func() { Excerpt(make([]int, 0)) }); n > 20 {
		t.Errorf("%v allocations for nothing", n)
	}
	big := make([]string, 1<<20)
	if n := testing.AllocsPerRun(1, func() { Excerpt(big) }); n > 1000 {
		t.Errorf("%v allocations for a long list", n)
	}
}
