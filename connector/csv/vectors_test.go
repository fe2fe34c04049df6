package csv

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

// vector is a case of csv.json of the kinds that are about rows and fields.
type vector struct {
	ID            string
	Kind          string
	Content       string
	ContentBase64 []byte `json:"content_base64"`
	FileName      string `json:"file_name"`
	Types         []string
	Type          string
	Pojo          *struct {
		Fields json.RawMessage
		Order  []*string
	}
	Options struct {
		FieldDelimiter string `json:"field_delimiter"`
		LineDelimiter  string `json:"line_delimiter"`
		Quote          string
		Comment        string `json:"comment_prefix"`
		SkipFirst      bool   `json:"ignore_first_line"`
		Lenient        bool   `json:"ignore_invalid_lines"`
		Charset        string
		Include        []bool
		Selected       []int
		EmptyAsNull    bool `json:"empty_column_as_null"`
	}
	Mask struct {
		Bools  []bool
		String string
		Long   *uint64
	}
	Valid   [][2]any
	Invalid []string
	Expect  struct {
		Rows     []any
		Records  []struct{ Line int64 }
		Included []bool
		Error    json.RawMessage `json:"expect_error"`
	}
}

// goType is the type of a field of a vector.
func goType(t *testing.T, name string) reflect.Type {
	t.Helper()
	switch name {
	case "string", "unquoted string", "quoted string":
		return reflect.TypeFor[string]()
	case "boolean":
		return reflect.TypeFor[bool]()
	case "byte":
		return reflect.TypeFor[int8]()
	case "short":
		return reflect.TypeFor[int16]()
	case "int":
		return reflect.TypeFor[int32]()
	case "long":
		return reflect.TypeFor[int64]()
	case "float":
		return reflect.TypeFor[float32]()
	case "double":
		return reflect.TypeFor[float64]()
	case "date", "time", "timestamp":
		return reflect.TypeFor[time.Time]()
	case "big integer":
		return reflect.TypeFor[big.Int]()
	case "big decimal":
		return reflect.TypeFor[big.Float]()
	}
	t.Fatalf("unknown type %q", name)
	return nil
}

// structOf makes a struct with the given columns.
func structOf(names []string, types []reflect.Type) reflect.Type {
	var fields []reflect.StructField
	for i := range types {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprint("F", i), Type: types[i], Tag: reflect.StructTag(fmt.Sprintf("csv:%q", names[i])),
		})
	}
	return reflect.StructOf(fields)
}

func (v *vector) text() string {
	if v.ContentBase64 != nil {
		return string(v.ContentBase64)
	}
	return v.Content
}

// opts are the options of a vector, with the quotes as Flink reads them.
func (v *vector) opts() []Option {
	opts := []Option{Quotes(Backslash), Quote(0), Comment(v.Options.Comment)}
	if v.Options.Quote != "" {
		opts = append(opts, Quote(v.Options.Quote[0]))
	}
	if v.Options.FieldDelimiter != "" {
		opts = append(opts, Comma(v.Options.FieldDelimiter))
	}
	if v.Options.LineDelimiter != "" {
		opts = append(opts, RowDelimiter(v.Options.LineDelimiter))
	}
	if v.Options.SkipFirst {
		opts = append(opts, SkipFirst())
	}
	if v.Options.Include != nil {
		opts = append(opts, Include(v.Options.Include...))
	}
	if v.Options.Selected != nil {
		opts = append(opts, Positions(v.Options.Selected...))
	}
	return opts
}

// readRows reads all rows of a text into values of a type made at run time. Bad rows are skipped if lenient.
func readRows(typ reflect.Type, in *file.Input, lenient bool, opts ...Option) ([]reflect.Value, error) {
	o := newOptions(opts)
	targets, p, err := prepare(typ, o)
	if err != nil {
		return nil, err
	}
	r := newRows(o, p, in)
	if err := r.openHeader(targets); err != nil {
		return nil, err
	}
	var out []reflect.Value
	for err = r.header(); err == nil; {
		row := reflect.New(typ)
		err = r.read(row.UnsafePointer())
		var f *fault
		switch {
		case err == nil:
			out = append(out, row.Elem())
		case err == errSkip, lenient && errors.As(err, &f):
			err = nil
		default:
			err = r.report(err)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return out, err
}

// plainValue is a value as the vectors write it.
func plainValue(v reflect.Value, typ string) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Time:
		layout := map[string]string{"date": "2006-01-02", "time": "15:04:05"}[typ]
		if layout != "" {
			return x.Format(layout)
		}
		s := x.Format("2006-01-02 15:04:05.999999999")
		if x.Nanosecond() == 0 {
			s += ".0"
		}
		return s
	case big.Int:
		return x.String()
	case bool, string:
		return x
	case float32:
		return floatValue(float64(x), 32)
	case float64:
		return floatValue(x, 64)
	}
	return float64(v.Int())
}

func floatValue(x float64, bits int) any {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 0):
		return map[bool]string{true: "Infinity", false: "-Infinity"}[x > 0]
	case bits == 32:
		return float64(float32(x))
	}
	return x
}

func TestVectorsOfRows(t *testing.T) {
	for _, v := range filetest.Vectors[vector](t, "csv") {
		t.Run(v.ID, func(t *testing.T) {
			switch {
			case v.FileName != "":
				return // TestVectorsOfCompressedFiles
			case v.Pojo != nil:
				checkPojo(t, v)
				return
			}
			var names []string
			var types []reflect.Type
			for i, name := range v.Types {
				names, types = append(names, fmt.Sprint("f", i)), append(types, goType(t, name))
			}
			in := file.NewInput("f", file.Charset(v.Options.Charset).Reader(strings.NewReader(v.text())))
			got, err := readRows(structOf(names, types), in, v.Options.Lenient, v.opts()...)
			if v.Expect.Records != nil {
				var e *Error
				if !errors.As(err, &e) || !errors.Is(err, ErrAfterQuote) {
					t.Fatalf("got %v", err)
				}
				return
			}
			compareRows(t, got, err, v)
		})
	}
}

func compareRows(t *testing.T, got []reflect.Value, err error, v vector) {
	t.Helper()
	var rows []any
	for _, row := range got {
		var r []any
		for i := range row.NumField() {
			r = append(r, plainValue(row.Field(i), v.Types[i]))
		}
		rows = append(rows, r)
	}
	if err != nil || !reflect.DeepEqual(rows, v.Expect.Rows) {
		t.Errorf("got  %v, %v\nwant %v", rows, err, v.Expect.Rows)
	}
}

// pojoFields reads both forms in which vectors name fields: an object, or the text {name:type,...}.
func pojoFields(t *testing.T, raw json.RawMessage) (names []string, types []reflect.Type) {
	t.Helper()
	var fields map[string]string
	if json.Unmarshal(raw, &fields) != nil {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			t.Fatal(err)
		}
		fields = map[string]string{}
		for _, part := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune("{}, ", c) }) {
			name, typ, ok := strings.Cut(part, ":")
			if ok {
				fields[name] = typ
			} else if strings.HasPrefix(part, "f") {
				fields[name] = "string"
			}
		}
	}
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		types = append(types, goType(t, fields[name]))
	}
	return names, types
}

func checkPojo(t *testing.T, v vector) {
	t.Helper()
	names, types := pojoFields(t, v.Pojo.Fields)
	opts := v.opts()
	var order []string
	for _, name := range v.Pojo.Order {
		if name == nil {
			t.Skip("a Go string is never null")
		}
		order = append(order, *name)
	}
	if v.Pojo.Order == nil {
		t.Skip("no order at all is the order of the struct")
	}
	got, err := readRows(structOf(names, types), file.NewInput("f", strings.NewReader(v.text())), false, append(opts, Columns(order...))...)
	if v.Expect.Error != nil {
		if err == nil {
			t.Error("no error")
		}
		return
	}
	var rows []any
	for _, row := range got {
		r := map[string]any{}
		for i, name := range names {
			r[name] = plainValue(row.Field(i), "")
		}
		rows = append(rows, r)
	}
	if err != nil || !reflect.DeepEqual(rows, v.Expect.Rows) {
		t.Errorf("got  %v, %v\nwant %v", rows, err, v.Expect.Rows)
	}
}

func TestVectorsOfNullableRows(t *testing.T) {
	for _, v := range filetest.Vectors[vector](t, "row_csv") {
		t.Run(v.ID, func(t *testing.T) {
			var names []string
			var types []reflect.Type
			for i, name := range v.Types {
				names, types = append(names, fmt.Sprint("f", i)), append(types, reflect.PointerTo(goType(t, name)))
			}
			opts := v.opts()
			in := strings.NewReader(v.text())
			if v.Options.Lenient {
				opts = append(opts, NilBad())
			}
			got, err := readRows(structOf(names, types), file.NewInput("f", in), v.Options.Lenient, opts...)
			compareRows(t, got, err, v)
		})
	}
}

func TestVectorsOfFields(t *testing.T) {
	for _, v := range filetest.Vectors[vector](t, "field") {
		t.Run(v.ID, func(t *testing.T) {
			if v.Type == "big decimal" {
				t.Skip("the standard library has no decimal; a user's type brings UnmarshalText")
			}
			typ := structOf([]string{"f"}, []reflect.Type{goType(t, v.Type)})
			quotes := []Option{Quotes(DoubledInLine), Quote(0)}
			if v.Type == "quoted string" {
				quotes[1] = Quote('"')
			}
			read := func(text string) ([]reflect.Value, error) {
				return readRows(typ, file.NewInput("f", strings.NewReader(text+"\n")), false, quotes...)
			}
			for _, c := range v.Valid {
				got, err := read(c[0].(string))
				if err != nil || len(got) != 1 {
					t.Errorf("%q: %v, %v", c[0], got, err)
					continue
				}
				want := c[1]
				if f, ok := want.(float64); ok && v.Type == "float" {
					want = float64(float32(f))
				}
				if x := plainValue(got[0].Field(0), v.Type); x != want {
					t.Errorf("%q: got %v, want %v", c[0], x, want)
				}
			}
			for _, text := range v.Invalid {
				if got, err := read(text); err == nil {
					t.Errorf("%q: %v, no error", text, got)
				}
			}
		})
	}
}

func TestVectorsOfMasks(t *testing.T) {
	for _, v := range filetest.Vectors[vector](t, "include_mask") {
		t.Run(v.ID, func(t *testing.T) {
			var got []bool
			var err error
			switch {
			case v.Mask.Long != nil:
				got, err = MaskOf(*v.Mask.Long)
			case v.Mask.Bools != nil:
				got, err = CutMask(v.Mask.Bools)
			default:
				got, err = ParseMask(v.Mask.String)
			}
			if !slices.Equal(got, v.Expect.Included) || (err != nil) != (v.Expect.Error != nil) {
				t.Errorf("got %v, %v, want %v", got, err, v.Expect.Included)
			}
		})
	}
}

func TestVectorsOfCompressedFiles(t *testing.T) {
	type row struct{ A, B, C, D, E int32 }
	for _, v := range filetest.Vectors[vector](t, "csv") {
		if v.FileName == "" {
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			m := vfs.NewMem()
			if err := vfs.WriteFile(m, v.FileName, v.ContentBase64); err != nil {
				t.Fatal(err)
			}
			got, err := filetest.Collect(file.New(Format[row](v.opts()...), v.FileName).On(m), 2, 8)
			var values []reflect.Value
			for _, r := range got {
				values = append(values, reflect.ValueOf(r))
			}
			compareRows(t, values, err, v)
		})
	}
}
