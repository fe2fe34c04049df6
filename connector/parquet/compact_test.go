package parquet

import (
	"errors"
	"testing"
)

// TestCompactSeesWhatCanNotBe goes through values that say more than there is.
func TestCompactSeesWhatCanNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		bytes string
		typ   byte
		want  error
	}{
		"a struct of all":              {"\x11\x12\x13\x7f\x15\x80\x01\x16\x02\x1701234567\x18\x03abc\x19\x25\x02\x04\x1a\x11\x01\x1b\x01\x35\x05\x06\x1c\x00\x1d0123456789abcdef\x00", thriftStruct, nil},
		"ids that are written out":     {"\x05\xd0\x0f\x02\x00", thriftStruct, nil},
		"a struct without an end":      {"\x15\x02", thriftStruct, errShort},
		"an id without an end":         {"\x05\x80", thriftStruct, errShort},
		"a text that is too short":     {"\x05abcd", thriftBinary, errShort},
		"a list that is too short":     {"\xf5\xff\xff\xff\xff\x0f\x02", thriftList, errShort},
		"a small list that is short":   {"\x95\x02", thriftList, errShort},
		"a map that is too short":      {"\xff\xff\xff\x0f\x55\x02", thriftMap, errShort},
		"a map without types":          {"\x01", thriftMap, errShort},
		"an empty map":                 {"\x00", thriftMap, nil},
		"a number of too many bytes":   {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", thriftI64, errNumber},
		"a double that is too short":   {"1234567", thriftDouble, errShort},
		"lists in lists without end":   {string(make([]byte, 0)) + repeated("\x19", 200), thriftList, errTooDeep},
		"structs in structs":           {repeated("\x1c", 200), thriftStruct, errTooDeep},
		"nothing at all":               {"", thriftByte, errShort},
		"a list of nothing":            {"", thriftSet, errShort},
		"a length without its end":     {"\x80", thriftBinary, errShort},
		"a number that just fits":      {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", thriftI64, nil},
		"a list of bools, a byte each": {"\x21\x01\x00", thriftList, nil},
	} {
		d := &compact{b: []byte(c.bytes)}
		err := d.skip(c.typ, false, 0)
		if !errors.Is(err, c.want) || c.want == nil && d.at != len(c.bytes) {
			t.Errorf("%s: %v, want %v; at %d of %d", name, err, c.want, d.at, len(c.bytes))
		}
	}
	if err := (&compact{b: []byte("\x1e")}).skip(thriftStruct, false, 0); err == nil {
		t.Error("a value of type 14 is taken")
	}
}

func repeated(s string, n int) (all string) {
	for range n {
		all += s
	}
	return all
}

// TestTreesOfColumnsThatCanNotBe checks schemas: lists of elements, each with the number of its children (field 5).
func TestTreesOfColumnsThatCanNotBe(t *testing.T) {
	const leaf, node1, node2 = "\x00", "\x55\x02\x00", "\x55\x04\x00"
	element := func(n byte, s string) string { return "\x29" + string([]byte{n<<4 | thriftStruct}) + s + "\x00" }
	many := func(n byte, s string) string { return "\x29\xfc" + string([]byte{n}) + s + "\x00" }
	for name, c := range map[string]struct {
		bytes string
		want  error
	}{
		"a root with two leaves":        {element(3, node2+leaf+leaf), nil},
		"groups in groups":              {element(4, node1+node1+node1+leaf), nil},
		"more than the tree has":        {element(3, node1+leaf+leaf), nil},
		"a group of more than there is": {element(2, "\x55\x88\x01\x00"+leaf), errTooDeep},
		"too deep":                      {many(100, repeated(node1, 99)+leaf), errTooDeep},
		"an element without an end":     {"\x29\x1c\x55", errShort},
		"another list":                  {"\x29\x25\x02\x02\x00", nil},
		"no list":                       {"\x25\x02\x00", nil},
		"a list that is too short":      {"\x29\xfc\xff\xff\x03", errShort},
	} {
		if err := checkMetadata([]byte(c.bytes)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
