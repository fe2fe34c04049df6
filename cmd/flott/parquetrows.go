package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/flott-dev/flott/serde"
)

// parquetRows writes a Parquet file: the rows of one state, with the types of keys and values: see parquetPart.
type parquetRows struct {
	to     io.Writer
	w      *parquet.GenericWriter[any] // nil: not begun
	fields []parquetField
	cells  [][]parquet.Value // by column: those of the row at hand
	rows   []parquet.Row     // WriteRows takes several
}

// parquetField is a part of a record.
type parquetField struct {
	name string
	of   func(*record) []byte
	part *parquetPart
}

var errParquetStates = errors.New("a Parquet file has the rows of one state: say which by -state")

func (p *parquetRows) begin(s *shape) error {
	if p.w != nil {
		return errParquetStates
	}
	add := func(name string, part *parquetPart, of func(*record) []byte) {
		p.fields = append(p.fields, parquetField{name, of, part})
	}
	if !s.list {
		add("key", partOf(s.key), func(r *record) []byte { return r.key })
	}
	if s.namespace != nil {
		add("namespace", partOf(s.namespace), func(r *record) []byte { return r.namespace })
	}
	if s.mapKey != nil {
		add("mapKey", partOf(s.mapKey), func(r *record) []byte { return r.mapKey })
	}
	switch of := func(r *record) []byte { return r.value }; {
	case s.engine:
		add("value", textPart(), of)
	case s.value == nil && s.list:
		add("value", &parquetPart{}, of) // bytes
	case s.value != nil:
		add("value", partOf(s.value), of)
	case !s.bare:
		add("value", &parquetPart{optional: true}, of)
	}
	if s.stamped {
		add("time", partOf(&serde.Schema{Kind: serde.Time}), func(r *record) []byte { return r.time })
	}
	return p.open()
}

// open begins the file.
func (p *parquetRows) open() error {
	group := parquet.Group{}
	for i := range p.fields {
		group[p.fields[i].name] = p.fields[i].part.node()
	}
	schema := parquet.NewSchema("state", group)
	for i := range p.fields {
		if err := p.fields[i].part.find(schema, []string{p.fields[i].name}); err != nil {
			return err
		}
	}
	p.cells = make([][]parquet.Value, len(schema.Columns()))
	p.rows = make([]parquet.Row, 1)
	p.w = parquet.NewGenericWriter[any](p.to, schema, parquet.Compression(&parquet.Zstd),
		parquet.ColumnIndexSizeLimit(func([]string) int { return boundBytes }))
	return nil
}

func (p *parquetRows) write(r *record) error {
	for i := range p.cells {
		p.cells[i] = p.cells[i][:0]
	}
	for i := range p.fields {
		f := &p.fields[i]
		v, err := f.part.decode(f.of(r))
		if err == nil {
			err = p.put(f.part, v, levels{})
		}
		if err != nil {
			return fmt.Errorf("make the Parquet column %q: %w", f.name, err)
		}
	}
	p.rows[0] = p.rows[0][:0]
	for _, cells := range p.cells {
		p.rows[0] = append(p.rows[0], cells...)
	}
	_, err := p.w.WriteRows(p.rows)
	return err
}

func (p *parquetRows) end() error {
	if p.w == nil {
		return nil
	}
	return p.w.Close()
}

// levels are where a value stands in its column, in Parquet's way: how much of what may be missing is there, in how many lists
// it lies, and which of them goes on with it (0: a new row).
type levels struct{ defined, lists, repeated int }

// item is the place of an item of a list that stands at l.
func (l levels) item(first bool) levels {
	in := levels{defined: l.defined + 1, lists: l.lists + 1, repeated: l.repeated}
	if !first {
		in.repeated = in.lists
	}
	return in
}

// put adds a value to the columns of a part.
func (p *parquetRows) put(part *parquetPart, v any, at levels) error {
	if part.optional {
		if v == nil {
			p.missing(part, at)
			return nil
		}
		at.defined++
	}
	switch part.kind {
	case structPart:
		fields, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%v is no struct", v)
		}
		for i, name := range part.names {
			if err := p.put(part.parts[i], fields[name], at); err != nil {
				return fmt.Errorf("field %s: %w", name, err)
			}
		}
		return nil
	case listPart:
		return p.putList(part, v, at)
	case mapPart:
		return p.putMap(part, v, at)
	}
	cell, err := part.cell(v)
	p.cells[part.column] = append(p.cells[part.column], cell.Level(at.repeated, at.defined, part.column))
	return err
}

// missing adds a value that is not there.
func (p *parquetRows) missing(part *parquetPart, at levels) {
	if part.kind == leafPart {
		p.cells[part.column] = append(p.cells[part.column], parquet.NullValue().Level(at.repeated, at.defined, part.column))
	}
	for _, inner := range part.parts {
		p.missing(inner, at)
	}
}

func (p *parquetRows) putList(part *parquetPart, v any, at levels) error {
	items, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%v is no list", v)
	}
	if len(items) == 0 {
		p.missing(part, at)
	}
	for i, item := range items {
		if err := p.put(part.parts[0], item, at.item(i == 0)); err != nil {
			return err
		}
	}
	return nil
}

// putMap adds a map, which is an object in the order of its keys, or pairs.
func (p *parquetRows) putMap(part *parquetPart, v any, at levels) error {
	var pairs [][2]any
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			pairs = append(pairs, [2]any{part.parts[0].fromText(key), value})
		}
		slices.SortFunc(pairs, func(a, b [2]any) int { return compareKeys(a[0], b[0]) })
	case []any:
		for _, x := range v {
			pair, ok := x.([]any)
			if !ok || len(pair) != 2 {
				return fmt.Errorf("%v is no entry of a map", x)
			}
			pairs = append(pairs, [2]any{pair[0], pair[1]})
		}
	default:
		return fmt.Errorf("%v is no map", v)
	}
	if len(pairs) == 0 {
		p.missing(part, at)
	}
	for i, pair := range pairs {
		in := at.item(i == 0)
		if err := errors.Join(p.put(part.parts[0], pair[0], in), p.put(part.parts[1], pair[1], in)); err != nil {
			return err
		}
	}
	return nil
}

// compact is a value as JSON.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
