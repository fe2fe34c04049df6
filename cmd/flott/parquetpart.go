package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/serde"
)

// parquetPart is how the values of a schema stand in a Parquet file: a struct is a group of columns, an array or slice a LIST, a
// map a MAP, a pointer what it points to or NULL, a scalar a column of its type, and all else (a closed set, what contains itself,
// complex numbers, structs without fields) JSON text.
type parquetPart struct {
	kind     partKind
	optional bool          // it may be NULL
	schema   *serde.Schema // of a leaf; nil: bytes
	text     bool          // a leaf: JSON
	column   int           // of a leaf
	names    []string      // of the fields of a struct
	parts    []*parquetPart
}

type partKind uint8

const (
	leafPart partKind = iota
	structPart
	listPart // the item
	mapPart  // key and value
)

func textPart() *parquetPart { return &parquetPart{text: true} }

// partOf is that of values of a schema.
func partOf(s *serde.Schema) *parquetPart {
	if s == nil {
		return &parquetPart{}
	}
	switch s.Kind {
	case serde.Pointer:
		p := partOf(s.Elem)
		p.optional = true
		return p
	case serde.Struct:
		if len(s.Fields) == 0 {
			return textPart()
		}
		p := &parquetPart{kind: structPart}
		for _, f := range s.Fields {
			p.names, p.parts = append(p.names, f.Name), append(p.parts, partOf(f.Schema))
		}
		return p
	case serde.Slice:
		if s.Elem.Kind == serde.Uint8 {
			return &parquetPart{optional: true, schema: s}
		}
		return &parquetPart{kind: listPart, optional: true, parts: []*parquetPart{partOf(s.Elem)}}
	case serde.Array:
		return &parquetPart{kind: listPart, parts: []*parquetPart{partOf(s.Elem)}}
	case serde.Map:
		return &parquetPart{kind: mapPart, optional: true, parts: []*parquetPart{partOf(s.Key), partOf(s.Elem)}}
	case serde.Interface, serde.Recursion:
		return &parquetPart{text: true, optional: true}
	}
	if parquetLeaf(s) == nil {
		return textPart()
	}
	return &parquetPart{schema: s}
}

// node is the part in the schema of the file.
func (p *parquetPart) node() parquet.Node {
	var n parquet.Node
	switch p.kind {
	case structPart:
		group := parquet.Group{}
		for i, name := range p.names {
			group[name] = p.parts[i].node()
		}
		n = group
	case listPart:
		n = parquet.List(p.parts[0].node())
	case mapPart:
		n = parquet.Map(p.parts[0].node(), p.parts[1].node())
	default:
		if n = parquetLeaf(p.schema); p.text {
			n = parquet.Leaf(bounded{parquet.JSON().Type()})
		}
	}
	if p.optional {
		n = parquet.Optional(n)
	}
	return n
}

// find notes the columns of the part, which stands at path in the schema.
func (p *parquetPart) find(schema *parquet.Schema, path []string) error {
	below := func(i int, names ...string) error {
		return p.parts[i].find(schema, append(path[:len(path):len(path)], names...))
	}
	switch p.kind {
	case structPart:
		for i, name := range p.names {
			if err := below(i, name); err != nil {
				return err
			}
		}
		return nil
	case listPart:
		return below(0, "list", "element")
	case mapPart:
		if err := below(0, "key_value", "key"); err != nil {
			return err
		}
		return below(1, "key_value", "value")
	}
	leaf, ok := schema.Lookup(path...)
	if !ok {
		return fmt.Errorf("make a Parquet column of %q", path)
	}
	p.column = leaf.ColumnIndex
	return nil
}

// parquetLeaf is the type of the column for a scalar; nil if it is none.
func parquetLeaf(s *serde.Schema) parquet.Node {
	if s == nil {
		return parquet.Leaf(bounded{parquet.ByteArrayType})
	}
	switch s.Kind {
	case serde.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case serde.Int8, serde.Int16, serde.Int32, serde.Int64:
		return parquet.Int(8 << (s.Kind - serde.Int8))
	case serde.Uint8, serde.Uint16, serde.Uint32, serde.Uint64:
		return parquet.Uint(8 << (s.Kind - serde.Uint8))
	case serde.Float32:
		return parquet.Leaf(parquet.FloatType)
	case serde.Float64:
		return parquet.Leaf(parquet.DoubleType)
	case serde.String:
		return parquet.Leaf(bounded{parquet.String().Type()})
	case serde.Time:
		return parquet.Timestamp(parquet.Microsecond)
	case serde.Custom:
		return parquet.Leaf(bounded{parquet.ByteArrayType})
	case serde.Slice:
		if s.Elem.Kind == serde.Uint8 {
			return parquet.Leaf(bounded{parquet.ByteArrayType})
		}
	}
	return nil
}

// decode reads the JSON of a field; nothing is nil. What is JSON text as a whole stays so.
func (p *parquetPart) decode(field []byte) (v any, err error) {
	switch {
	case len(field) == 0:
		return nil, nil
	case p.text && p.optional && string(field) == "null":
		return nil, nil
	case p.text:
		return json.RawMessage(bytes.Clone(field)), nil
	}
	d := json.NewDecoder(bytes.NewReader(field))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// fromText is the key of a map that was the name of a field.
func (p *parquetPart) fromText(key string) any {
	switch {
	case p.schema != nil && p.schema.Kind == serde.Bool:
		return key == "true"
	case p.schema != nil && p.schema.Kind == serde.String:
		return nameText(key)
	}
	return json.Number(key)
}

// nameText is a text that checkpoint.TextAsName has made.
type nameText string

// compareKeys is the order of keys that were names of fields.
func compareKeys(a, b any) int {
	x, isNumber := a.(json.Number)
	y, areNumbers := b.(json.Number)
	if isNumber && areNumbers {
		i, _ := x.Float64()
		j, _ := y.Float64()
		return cmp.Or(cmp.Compare(i, j), cmp.Compare(x, y))
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

// cell is a value in a column.
func (p *parquetPart) cell(v any) (parquet.Value, error) {
	if p.text {
		b, err := compact(v)
		return parquet.ByteArrayValue(b), err
	}
	return scalarValue(p.schema, v)
}

// scalarValue is a decoded scalar as Parquet has it.
func scalarValue(s *serde.Schema, v any) (parquet.Value, error) {
	if b, ok := v.(bool); ok {
		return parquet.BooleanValue(b), nil
	}
	if v == nil {
		v = "" // bytes that are nil
	}
	text := fmt.Sprint(v) // numbers are their text
	switch {
	case s == nil || s.Kind == serde.Custom || s.Kind == serde.Slice:
		b, err := base64.StdEncoding.DecodeString(text)
		return parquet.ByteArrayValue(b), err
	case s.Kind == serde.String:
		b, err := columnText(v)
		return parquet.ByteArrayValue(b), err
	case s.Kind == serde.Time:
		n, err := unixMicro(text)
		return parquet.Int64Value(n), err
	case s.Kind == serde.Float32:
		f, err := strconv.ParseFloat(text, 32)
		return parquet.FloatValue(float32(f)), err
	case s.Kind == serde.Float64:
		f, err := strconv.ParseFloat(text, 64)
		return parquet.DoubleValue(f), err
	case s.Kind == serde.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		return parquet.Int64Value(n), err
	case s.Kind == serde.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		return parquet.Int64Value(int64(n)), err
	case s.Kind == serde.Uint32:
		n, err := strconv.ParseUint(text, 10, 32)
		return parquet.Int32Value(int32(uint32(n))), err
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return parquet.Int32Value(int32(n)), err
}

// columnText is what a column of texts has of a decoded one, which is an object if it is no UTF-8.
func columnText(v any) ([]byte, error) {
	switch v := v.(type) {
	case nameText:
		return []byte(v), nil
	case string:
		return []byte(checkpoint.TextAsName(v)), nil
	}
	return compact(v)
}

// The calendar repeats itself: so many years, and seconds, later all days are as they were.
const (
	cycleYears   = 400
	cycleSeconds = 146_097 * 24 * 60 * 60
)

// unixMicro is the time of a text that package time has written as RFC 3339, in microseconds since 1970. Package time reads only
// the years from 0 to 9999 again: others are read as those of the cycle that begins with 2000.
func unixMicro(text string) (int64, error) {
	digits, sign := strings.CutPrefix(text, "-")
	at, rest, _ := strings.Cut(digits, "-")
	year, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the year of time %q: %w", text, err)
	}
	if sign {
		year = -year
	}
	within := 2000 + (year%cycleYears+cycleYears)%cycleYears
	t, err := time.Parse(time.RFC3339Nano, fmt.Sprintf("%d-%s", within, rest))
	if err != nil {
		return 0, err
	}
	seconds := t.Unix() + (year-within)/cycleYears*cycleSeconds
	const most = math.MaxInt64/1_000_000 - 1
	if seconds > most || seconds < -most {
		return 0, fmt.Errorf("time %s is beyond those of a Parquet file, which counts microseconds in 64 bits (years -290307 to 294246): dump it as jsonl or csv", text)
	}
	return seconds*1_000_000 + int64(t.Nanosecond())/1000, nil
}
