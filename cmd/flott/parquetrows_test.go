package main

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/flott-dev/flott/checkpoint"
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
	Raw   string
	Tags  string
	Inner struct {
		N   int16
		Ptr string
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
	want := columns{
		true, -8, -1 << 60, 1<<32 - 1, 1<<64 - 1, 0.5, 1e300, "café", -5, "\x01\x02", `["x","y"]`, struct {
			N   int16
			Ptr string
		}{-300, "null"},
	}
	if rows[0].Value != want {
		t.Errorf("got  %+v\nwant %+v", rows[0].Value, want)
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
