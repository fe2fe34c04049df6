package avro_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/avro"
	"github.com/flott-dev/flott/connector/file/filetest"
)

// TestFilesOfOthersAreRead reads files that fastavro wrote (Python, version 1.13): ten records in a few blocks, with each
// codec.
func TestFilesOfOthersAreRead(t *testing.T) {
	type row struct {
		ID     int64            `avro:"id"`
		Sensor *string          `avro:"sensor"`
		Value  float64          `avro:"value"`
		At     time.Time        `avro:"at"`
		Tags   []string         `avro:"tags"`
		More   map[string]int64 `avro:"more"`
		Kind   string           `avro:"kind"`
		Hash   [4]byte          `avro:"hash"` // what they have in extra is skipped
	}
	for _, codec := range []string{"null", "deflate", "snappy", "zstandard", "bzip2"} {
		for _, split := range []int64{100, 1 << 20} {
			got, err := filetest.Collect(avro.Source[row]("testdata/fastavro-"+codec+".avro").SplitSize(split), 1, 3)
			if err != nil || len(got) != 10 {
				t.Fatalf("%s, split size %d: %d rows, %v", codec, split, len(got), err)
			}
			for i, g := range got {
				want := row{
					ID: int64(i), Value: float64(i) / 4, At: time.Date(2020, 1, 1, 0, 0, i, 0, time.UTC), Tags: []string{},
					More: map[string]int64{"k": int64(i)}, Kind: []string{"COLD", "HOT"}[i%2], Hash: [4]byte{byte(i), 0, 0, 1},
				}
				for j := range i % 3 {
					want.Tags = append(want.Tags, fmt.Sprint(i, "-", j))
				}
				if sensor := fmt.Sprint("s", i%3); i%5 != 4 {
					want.Sensor = &sensor
				}
				if !reflect.DeepEqual(g, want) {
					t.Errorf("%s, row %d: %+v, want %+v", codec, i, g, want)
				}
			}
		}
	}
}
