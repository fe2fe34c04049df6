package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/flott-dev/flott/serde"
)

// parquetRows writes a Parquet file: the rows of one state, with a column for each scalar in them. Structs are groups; what has
// no type in common with Parquet (slices but of bytes, maps, pointers, closed sets) is JSON text.
type parquetRows struct {
	to     io.Writer
	w      *parquet.GenericWriter[any] // nil: not begun
	fields []parquetField
	row    parquet.Row
	rows   []parquet.Row // WriteRows takes several
}

// parquetField is a part of a record, with its columns.
type parquetField struct {
	of      func(*record) []byte
	columns []parquetColumn
}

// parquetColumn is a scalar inside of a field.
type parquetColumn struct {
	path   []string // of the struct fields that lead to it
	index  int
	schema *serde.Schema // nil: bytes
	text   bool          // as JSON
}

var errParquetStates = errors.New("a Parquet file has the rows of one state: say which by -state")

func (p *parquetRows) begin(s *shape) error {
	if p.w != nil {
		return errParquetStates
	}
	group := parquet.Group{}
	add := func(name string, schema *serde.Schema, text bool, of func(*record) []byte) {
		f := parquetField{of: of}
		group[name] = f.node(schema, text, []string{name})
		p.fields = append(p.fields, f)
	}
	if !s.list {
		add("key", s.key, false, func(r *record) []byte { return r.key })
	}
	if s.namespace != nil {
		add("namespace", s.namespace, false, func(r *record) []byte { return r.namespace })
	}
	if s.mapKey != nil {
		add("mapKey", s.mapKey, false, func(r *record) []byte { return r.mapKey })
	}
	add("value", s.value, s.engine, func(r *record) []byte { return r.value })
	if s.stamped {
		add("time", &serde.Schema{Kind: serde.Time}, false, func(r *record) []byte { return r.time })
	}
	schema := parquet.NewSchema("state", group)
	p.row = make(parquet.Row, len(schema.Columns()))
	p.rows = []parquet.Row{p.row}
	for i := range p.fields {
		for j := range p.fields[i].columns {
			c := &p.fields[i].columns[j]
			leaf, ok := schema.Lookup(c.path...)
			if !ok {
				return fmt.Errorf("make a Parquet column of %q", c.path)
			}
			c.index = leaf.ColumnIndex
			c.path = c.path[1:]
		}
	}
	p.w = parquet.NewGenericWriter[any](p.to, schema, parquet.Compression(&parquet.Zstd))
	return nil
}

// node makes the node of a value of a schema, and notes its columns.
func (f *parquetField) node(s *serde.Schema, text bool, path []string) parquet.Node {
	if s != nil && s.Kind == serde.Struct && len(s.Fields) > 0 && !text {
		group := parquet.Group{}
		for _, field := range s.Fields {
			group[field.Name] = f.node(field.Schema, false, append(path[:len(path):len(path)], field.Name))
		}
		return group
	}
	c := parquetColumn{path: path, schema: s}
	leaf := parquetLeaf(s)
	if c.text = text || leaf == nil; c.text {
		leaf = parquet.JSON()
	}
	f.columns = append(f.columns, c)
	return leaf
}

// parquetLeaf is the type of the column for a scalar; nil if it is none.
func parquetLeaf(s *serde.Schema) parquet.Node {
	if s == nil {
		return parquet.Leaf(parquet.ByteArrayType)
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
		return parquet.String()
	case serde.Time:
		return parquet.Timestamp(parquet.Microsecond)
	case serde.Custom:
		return parquet.Leaf(parquet.ByteArrayType)
	case serde.Slice:
		if s.Elem.Kind == serde.Uint8 {
			return parquet.Leaf(parquet.ByteArrayType)
		}
	}
	return nil
}

func (p *parquetRows) write(r *record) error {
	for i := range p.fields {
		f := &p.fields[i]
		field := f.of(r)
		if len(field) == 0 {
			field = []byte(`""`) // a value that the operator does not need
		}
		var whole any
		if len(f.columns) != 1 || !f.columns[0].text {
			d := json.NewDecoder(bytes.NewReader(field))
			d.UseNumber()
			if err := d.Decode(&whole); err != nil {
				return err
			}
		}
		for j := range f.columns {
			c := &f.columns[j]
			v, err := c.value(field, whole)
			if err != nil {
				return fmt.Errorf("column %q: %w", c.path, err)
			}
			p.row[c.index] = v.Level(0, 0, c.index)
		}
	}
	_, err := p.w.WriteRows(p.rows)
	return err
}

// value is what a record has for the column: in its field, which is JSON, and was decoded if that is not all text.
func (c *parquetColumn) value(field []byte, whole any) (parquet.Value, error) {
	if c.text && len(c.path) == 0 {
		return parquet.ByteArrayValue(bytes.Clone(field)), nil
	}
	for _, name := range c.path {
		fields, ok := whole.(map[string]any)
		if !ok {
			return parquet.Value{}, fmt.Errorf("%v is no struct", whole)
		}
		whole = fields[name]
	}
	if c.text {
		b, err := json.Marshal(whole)
		return parquet.ByteArrayValue(b), err
	}
	return scalarValue(c.schema, whole)
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
		return parquet.ByteArrayValue([]byte(text)), nil
	case s.Kind == serde.Time:
		t, err := time.Parse(time.RFC3339Nano, text)
		return parquet.Int64Value(t.UnixMicro()), err
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

func (p *parquetRows) end() error {
	if p.w == nil {
		return nil
	}
	return p.w.Close()
}
