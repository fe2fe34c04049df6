package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/process"
)

// everything is a value with a column of each kind.
type everything struct {
	Yes   bool
	Small int8
	Big   int64
	Word  uint32
	Huge  uint64
	Half  float32
	Whole float64
	Name  string
	At    time.Time
	Raw   []byte
	Tags  []string
	Inner struct {
		N   int16
		Ptr *string
	}
}

// columns is the same as a reader of Parquet sees it.
type columns struct {
	Yes   bool
	Small int8
	Big   int64
	Word  uint32
	Huge  uint64
	Half  float32
	Whole float64
	Name  string
	At    int64
	Raw   *string
	Tags  []string `parquet:",list"`
	Inner struct {
		N   int16
		Ptr *string
	}
}

func TestParquetHasTheTypesOfTheState(t *testing.T) {
	at := filepath.ToSlash(filepath.Join(t.TempDir(), "savepoint"))
	value := everything{
		true, -8, -1 << 60, 1<<32 - 1, 1<<64 - 1, 0.5, 1e300, "café", time.UnixMicro(-5).UTC(),
		[]byte{1, 2},
		[]string{"x", "y"},
		struct {
			N   int16
			Ptr *string
		}{-300, nil},
	}
	draft := checkpoint.NewDraft("job")
	o := draft.Operator("all")
	if err := o.SetValues("values", maps.All(map[int64]everything{1: value, 2: {}})); err != nil {
		t.Fatal(err)
	}
	if err := o.SetMaps("maps", maps.All(map[string]map[string]float64{"k": {"a": 1.5}})); err != nil {
		t.Fatal(err)
	}
	if err := o.SetItems("items", checkpoint.Split, slices.Values([]uint16{7, 8})); err != nil {
		t.Fatal(err)
	}
	if err := draft.Write(t.Context(), nil, at); err != nil {
		t.Fatal(err)
	}

	rows := parquetOf[struct {
		Key   int64   `parquet:"key"`
		Value columns `parquet:"value"`
	}](t, at, "values")
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	slices.SortFunc(rows, func(a, b struct {
		Key   int64   `parquet:"key"`
		Value columns `parquet:"value"`
	},
	) int {
		return int(a.Key - b.Key)
	})
	raw := "\x01\x02"
	want := columns{
		true, -8, -1 << 60, 1<<32 - 1, 1<<64 - 1, 0.5, 1e300, "café", -5, &raw, []string{"x", "y"}, struct {
			N   int16
			Ptr *string
		}{-300, nil},
	}
	if !reflect.DeepEqual(rows[0].Value, want) {
		t.Errorf("got  %+v\nwant %+v", rows[0].Value, want)
	}
	if v := rows[1].Value; v.Raw != nil || len(v.Tags) != 0 {
		t.Errorf("got  %+v", v)
	}
	entries := parquetOf[struct {
		Key    string  `parquet:"key"`
		MapKey string  `parquet:"mapKey"`
		Value  float64 `parquet:"value"`
	}](t, at, "maps")
	if len(entries) != 1 || entries[0].MapKey != "a" || entries[0].Value != 1.5 {
		t.Errorf("got %+v", entries)
	}
	items := parquetOf[struct {
		Value uint16 `parquet:"value"`
	}](t, at, "items")
	if len(items) != 2 || items[1].Value != 8 {
		t.Errorf("got %+v", items)
	}
	_, stderr, code := call("savepoint", "dump", at, "-operator", "all", "-format", "parquet")
	if code == exitOK || !bytes.Contains([]byte(stderr), []byte("say which by -state")) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// deep is a value of lists and maps in each other; chain contains itself.
type (
	deep struct {
		Grid   [2][]int16
		Places map[string][]place
		ByID   map[int64]*place
		ByPart map[part]bool
		Opt    *int64
		Empty  map[string]struct{}
		Chain  *chain
		Z      complex64
	}
	place struct {
		Street string
		Zip    *int32
	}
	part struct {
		A int8
		B string
	}
	chain struct {
		N    int8
		Next *chain
	}
)

func TestParquetHasListsAndMaps(t *testing.T) {
	at := filepath.ToSlash(filepath.Join(t.TempDir(), "savepoint"))
	seven, zip := int64(7), int32(-5)
	full := deep{
		Grid: [2][]int16{{1, 2}, nil}, Places: map[string][]place{"a": {{"x", &zip}, {"<y>", nil}}, "b": nil, "c": {}},
		ByID: map[int64]*place{10: {"ten", nil}, 9: nil}, ByPart: map[part]bool{{1, "q"}: true}, Opt: &seven,
		Empty: map[string]struct{}{"e": {}}, Chain: &chain{1, &chain{2, nil}}, Z: complex(1, -2),
	}
	draft := checkpoint.NewDraft("job")
	o := draft.Operator("all")
	if err := o.SetValues("deep", maps.All(map[int64]deep{1: full, 2: {}})); err != nil {
		t.Fatal(err)
	}
	if err := o.SetValues("pointers", maps.All(map[int64]*place{1: {"x", &zip}, 2: nil})); err != nil {
		t.Fatal(err)
	}
	if err := o.SetTimers(func(yield func(int64, process.Timer) bool) { yield(3, process.Timer{Millis: 9}) }); err != nil {
		t.Fatal(err)
	}
	if err := draft.Write(t.Context(), nil, at); err != nil {
		t.Fatal(err)
	}
	// Values with their repetition and definition levels, which say where lists begin and what is missing.
	want := map[string]string{
		"key":                                  "1/0/0 2/0/0",
		"value.Grid.list.element.list.element": "1/0/3 2/2/3 null/1/1 null/0/1 null/1/1",
		"value.Places.key_value.key":           "a/0/2 b/1/2 c/1/2 null/0/0",
		"value.Places.key_value.value.list.element.Street": "x/0/4 <y>/2/4 null/1/2 null/1/3 null/0/0",
		"value.Places.key_value.value.list.element.Zip":    "-5/0/5 null/2/4 null/1/2 null/1/3 null/0/0",
		"value.ByID.key_value.key":                         "9/0/2 10/1/2 null/0/0",
		"value.ByID.key_value.value.Street":                "null/0/2 ten/1/3 null/0/0",
		"value.ByID.key_value.value.Zip":                   "null/0/2 null/1/3 null/0/0",
		"value.ByPart.key_value.key.A":                     "1/0/2 null/0/0",
		"value.ByPart.key_value.key.B":                     "q/0/2 null/0/0",
		"value.ByPart.key_value.value":                     "true/0/2 null/0/0",
		"value.Opt":                                        "7/0/1 null/0/0",
		"value.Empty.key_value.key":                        "e/0/2 null/0/0",
		"value.Empty.key_value.value":                      "{}/0/2 null/0/0",
		"value.Chain.N":                                    "1/0/1 null/0/0",
		"value.Chain.Next":                                 `{"N":2,"Next":null}/0/2 null/0/0`,
		"value.Z":                                          "[1,-2]/0/0 [0,0]/0/0",
	}
	got := parquetColumns(t, at, "deep")
	for column, values := range want {
		if got[column] != values {
			t.Errorf("column %s: %s, want %s", column, got[column], values)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d columns, want %d: %v", len(got), len(want), got)
	}
	pointers := parquetOf[struct {
		Key   int64  `parquet:"key"`
		Value *place `parquet:"value"`
	}](t, at, "pointers")
	for _, r := range pointers {
		if (r.Value == nil) != (r.Key == 2) {
			t.Errorf("got %+v", r)
		}
	}
	timers := parquetOf[struct {
		Key    int64 `parquet:"key"`
		MapKey int64 `parquet:"mapKey"`
	}](t, at, "timers/event")
	if len(timers) != 1 || timers[0].Key != 3 || timers[0].MapKey != 9 {
		t.Errorf("got %+v", timers)
	}
}

// parquetColumns dumps a state and gives the values of each column as value/repetition/definition, of rows in the order of keys.
func parquetColumns(t *testing.T, at, state string) map[string]string {
	t.Helper()
	text := must(t, "savepoint", "dump", at, "-operator", "all", "-state", state, "-format", "parquet")
	file, err := parquet.OpenFile(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	reader := parquet.NewReader(file)
	rows := make([]parquet.Row, 3)
	for i := range rows {
		rows[i] = parquet.Row{}
	}
	n, err := reader.ReadRows(rows)
	if n != 2 || err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("%d rows, %v", n, err)
	}
	columns := file.Schema().Columns()
	key := slices.IndexFunc(columns, func(path []string) bool { return path[0] == "key" })
	slices.SortFunc(rows[:n], func(a, b parquet.Row) int {
		of := func(r parquet.Row) int64 {
			return r[slices.IndexFunc(r, func(v parquet.Value) bool { return v.Column() == key })].Int64()
		}
		return cmp.Compare(of(a), of(b))
	})
	all := map[string][]string{}
	for _, row := range rows[:n] {
		for _, v := range row {
			name := strings.Join(columns[v.Column()], ".")
			value := v.String()
			if v.IsNull() {
				value = "null"
			}
			all[name] = append(all[name], fmt.Sprintf("%s/%d/%d", value, v.RepetitionLevel(), v.DefinitionLevel()))
		}
	}
	out := map[string]string{}
	for name, values := range all {
		out[name] = strings.Join(values, " ")
	}
	return out
}

// parquetOf dumps a state and reads it back.
func parquetOf[Row any](t *testing.T, at, state string) []Row {
	t.Helper()
	file := must(t, "savepoint", "dump", at, "-operator", "all", "-state", state, "-format", "parquet")
	rows, err := parquet.Read[Row](bytes.NewReader([]byte(file)), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
