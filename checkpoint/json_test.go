package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

type chain struct {
	V    int
	Next *chain
}

type shapeOf interface{ area() }

type (
	circle struct{ R float32 }
	square struct{ Side int16 }
)

func (circle) area()  {}
func (*square) area() {}

// jsonOf encodes a value and shows it.
func jsonOf[T any](t *testing.T, v T, opts ...serde.Option) string {
	t.Helper()
	h, err := serde.Of[T](opts...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.Append(nil, unsafe.Pointer(&v))
	if err != nil {
		t.Fatal(err)
	}
	parsed := schema(t, h.Schema().String())
	out, used, err := AppendJSON([]byte("x "), parsed, append(b, "rest"...))
	if err != nil || used != len(b) {
		t.Errorf("%s: used %d of %d bytes, %v", parsed, used, len(b), err)
	}
	text := string(out[2:])
	if string(out[:2]) != "x " || !json.Valid([]byte(text)) {
		t.Errorf("%s is no JSON behind what was there", out)
	}
	for n := range b {
		if out, _, err := AppendJSON(nil, parsed, b[:n]); err == nil && len(b) > 0 {
			t.Errorf("%s: cut to %d of %d bytes: %s", parsed, n, len(b), out)
		}
	}
	return text
}

func keyJSON[K any](t *testing.T, v K) string {
	t.Helper()
	k, err := serde.KeyOf[K]()
	if err != nil {
		t.Fatal(err)
	}
	var scratch serde.KeyScratch
	c, err := k.Canon(serde.Column{P: unsafe.Pointer(&v), N: 1, Stride: unsafe.Sizeof(v)}, &scratch)
	if err != nil {
		t.Fatal(err)
	}
	b := c.Bytes(0)
	out, err := AppendKeyJSON(nil, k.Schema(), b)
	if err != nil || !json.Valid(out) {
		t.Errorf("%s: %s, %v", k.Schema(), out, err)
	}
	if c.Width > 0 {
		for n := range b {
			if out, err := AppendKeyJSON(nil, k.Schema(), b[:n]); err == nil {
				t.Errorf("%s: cut to %d of %d bytes: %s", k.Schema(), n, len(b), out)
			}
		}
		if out, err := AppendKeyJSON(nil, k.Schema(), append(b[:len(b):len(b)], 0)); err == nil {
			t.Errorf("%s: a byte more: %s", k.Schema(), out)
		}
	}
	return string(out)
}

func TestValuesAreShownAsJSON(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7_000_000, time.FixedZone("", 3600))
	two := int8(-2)
	for _, c := range []struct{ got, want string }{
		{jsonOf(t, true), "true"},
		{jsonOf(t, int8(math.MinInt8)), "-128"},
		{jsonOf(t, int16(-2)), "-2"},
		{jsonOf(t, int32(math.MinInt32)), "-2147483648"},
		{jsonOf(t, int64(math.MinInt64)), "-9223372036854775808"},
		{jsonOf(t, 77), "77"},
		{jsonOf(t, uint8(200)), "200"},
		{jsonOf(t, uint64(math.MaxUint64)), "18446744073709551615"},
		{jsonOf(t, float32(0.1)), "0.1"},
		{jsonOf(t, 1e300), "1e+300"},
		{jsonOf(t, math.NaN()), `"NaN"`},
		{jsonOf(t, math.Inf(-1)), `"-Inf"`},
		{jsonOf(t, complex64(complex(1, -2))), "[1,-2]"},
		{jsonOf(t, complex(1.5, -2)), "[1.5,-2]"},
		{jsonOf(t, "a <\"quote\">\n\x00é\ufffd"), `"a <\"quote\">\n\u0000é` + "\ufffd" + `"`},
		{jsonOf(t, []string{"\xff", `{"base64":"/w=="}`}), `[{"base64":"/w=="},"{\"base64\":\"/w==\"}"]`},
		{jsonOf(t, map[string]string{"\xff": "\xfe"}), `{"{\"base64\":\"/w==\"}":{"base64":"/g=="}}`},
		{keyJSON(t, "\xff"), `{"base64":"/w=="}`},
		{keyJSON(t, [2]string{"a\xc3", "é"}), `[{"base64":"YcM="},"é"]`},
		{jsonOf(t, at), `"2026-02-03T04:05:06.007+01:00"`},
		{jsonOf(t, at.In(time.FixedZone("LMT", 1172))), `"2026-02-03T03:05:06.007Z"`}, // 19 min 32 s: no text has that
		{jsonOf(t, at.UTC()), `"2026-02-03T03:05:06.007Z"`},
		{jsonOf(t, [3]int16{1, 2, 3}), "[1,2,3]"},
		{jsonOf(t, [2]uint8{1, 2}), "[1,2]"},
		{jsonOf(t, []string(nil)), "null"},
		{jsonOf(t, []string{}), "[]"},
		{jsonOf(t, []string{"a", "b"}), `["a","b"]`},
		{jsonOf(t, []byte("hello")), `"aGVsbG8="`},
		{jsonOf(t, []struct{}{{}, {}}), "[{},{}]"},
		{jsonOf(t, [][0]int{{}}), "[[]]"},
		{jsonOf(t, struct {
			A int `flott:"the a"`
			_ int
			B *int8
			C *int8
		}{A: 1, C: &two}), `{"the a":1,"B":null,"C":-2}`},
		{jsonOf(t, map[string]int{"b": 2, "a": 1}), `{"a":1,"b":2}`},
		{jsonOf(t, map[int8]bool{-3: true}), `{"-3":true}`},
		{jsonOf(t, map[bool]bool{true: false}), `{"true":false}`},
		{jsonOf(t, map[float64]int8{0.5: 1}), `[[0.5,1]]`},
		{jsonOf(t, map[[2]int8][]int8{{1, 2}: {3}}), `[[[1,2],[3]]]`},
		{jsonOf(t, map[string]int(nil)), "null"},
		{jsonOf(t, map[struct{}]struct{}{{}: {}}), "[[{},{}]]"},
		{jsonOf(t, chain{1, &chain{2, &chain{V: 3}}}), `{"V":1,"Next":{"V":2,"Next":{"V":3,"Next":null}}}`},
		{jsonOf(t, netip.MustParseAddr("1.2.3.4")), `"AQIDBA=="`},
		{jsonOf(t, []shapeOf{circle{2}, nil, &square{3}}, serde.OneOf[shapeOf](circle{}, &square{})), `[{"circle":{"R":2}},null,{"*square":{"Side":3}}]`},
		{keyJSON(t, "no length"), `"no length"`},
		{keyJSON(t, ""), `""`},
		{keyJSON(t, [1]string{"alone"}), `["alone"]`},
		{keyJSON(t, [2]string{"a", "bc"}), `["a","bc"]`},
		{keyJSON(t, struct {
			S string
			_ int
			E struct{}
		}{S: "alone"}), `{"S":"alone","E":{}}`},
		{keyJSON(t, struct {
			S string
			N int16
		}{"ab", 3}), `{"S":"ab","N":3}`},
		{keyJSON(t, at), `"2026-02-03T03:05:06.007Z"`},
		{keyJSON(t, struct {
			T time.Time
			B bool
		}{at, true}), `{"T":"2026-02-03T03:05:06.007Z","B":true}`},
		{keyJSON(t, netip.MustParseAddr("1.2.3.4")), `"AQIDBA=="`},
		{keyJSON(t, int32(-5)), "-5"},
		{keyJSON(t, math.Copysign(0, -1)), "0"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	out, used, err := AppendJSON(nil, nil, []byte{1, 2})
	key, keyErr := AppendKeyJSON(nil, nil, []byte{1, 2})
	if string(out) != `"AQI="` || used != 2 || err != nil || string(key) != `"AQI="` || keyErr != nil {
		t.Errorf("without a schema: %s, %d, %v; %s, %v", out, used, err, key, keyErr)
	}
}

func TestMalformedValuesAreErrors(t *testing.T) {
	nanos := binary.LittleEndian.AppendUint32(le(0), 1_000_000_000)
	for _, c := range []struct {
		schema string
		b      string
		want   string
	}{
		{"bool", "\x02", "a bool of 2"},
		{"*bool", "\x02", "a pointer of 2"},
		{"oneof{A bool}", "\x02", "type 2 of 1"},
		{"time", string(nanos) + "\x00\x00\x00\x00", "more than 999999999 nanoseconds"},
		{"[]string", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "it ends too early"},
		{"map[struct{}]struct{}", "\x09", "it ends too early"},
		{"[]struct{}", "\x02\x01", "1 for an element that takes no bytes"},
		{"[100000]struct{}", "", "an array of many elements that take no bytes"},
		{"[][60000][60000]struct{}", "\x02\x00", "an array of many elements that take no bytes"},
		{"struct{A [600]struct{};B [2][600]struct{}}", "", "an array of many elements that take no bytes"},
		{"string", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "it ends too early"},
		{"*^1", strings.Repeat("\x01", 100_000), "nested too deep"},
		{"struct{A bool;B bool}", "\x01\x05", "at byte 2: a bool of 5"},
	} {
		out, used, err := AppendJSON([]byte("x"), schema(t, c.schema), []byte(c.b))
		if err == nil || !strings.Contains(err.Error(), c.want) || string(out) != "x" || used != 0 {
			t.Errorf("%s: %.100s, %d, %v, want %q", c.schema, out, used, err, c.want)
		}
	}
	for _, text := range []string{"*bool", "[]bool", "map[bool]bool", "oneof{A bool}"} {
		if out, err := AppendKeyJSON(nil, schema(t, text), []byte{1, 1, 1}); err == nil || !strings.Contains(err.Error(), "a key holds a") {
			t.Errorf("%s as a key: %s, %v", text, out, err)
		}
	}
}
