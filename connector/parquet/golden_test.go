package parquet_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/parquet"
)

// TestFilesOfOthersAreRead reads a file that Apache Arrow wrote (C++, version 26): ten rows in groups of four, pages of
// version 1 with Zstandard, dictionaries, every column nullable.
func TestFilesOfOthersAreRead(t *testing.T) {
	type row struct {
		ID     int64                `parquet:"id"`
		Sensor *string              `parquet:"sensor"`
		Value  float64              `parquet:"value"`
		Small  int64                `parquet:"small"`
		OK     bool                 `parquet:"ok"`
		At     time.Time            `parquet:"at,timestamp(millisecond)"`
		Tags   []string             `parquet:"tags,list"`
		More   map[string]int64     `parquet:"more"`
		Place  struct{ X, Y int64 } `parquet:"place"`
		Raw    []byte               `parquet:"raw"`
	}
	for _, split := range []int64{500, 3000, 1 << 20} {
		got, err := filetest.Collect(parquet.Source[row]("testdata/arrow.parquet").SplitSize(split), 1, 3)
		if err != nil || len(got) != 10 {
			t.Fatalf("split size %d: %d rows, %v", split, len(got), err)
		}
		for i, g := range got {
			want := row{
				ID: int64(i), Value: float64(i) / 4, Small: int64(-i), OK: i%2 == 0,
				At:   time.Date(2020, 1, 1, 0, 0, i, 0, time.UTC),
				More: map[string]int64{"k": int64(i)}, Place: struct{ X, Y int64 }{int64(i), int64(-i)}, Raw: []byte{byte(i)},
				Tags: []string{},
			}
			for j := range i % 3 {
				want.Tags = append(want.Tags, fmt.Sprint(i, "-", j))
			}
			if sensor := fmt.Sprint("s", i%3); i%5 != 4 {
				want.Sensor = &sensor
			}
			if !reflect.DeepEqual(g, want) {
				t.Errorf("row %d: %+v, want %+v", i, g, want)
			}
		}
	}
}
