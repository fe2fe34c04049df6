package filesink_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// A folder for each day of event time, with CSV files that become visible once and whole.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	type reading struct {
		Sensor string
		At     time.Time
	}
	day := func(d int) time.Time { return time.Date(2016, 8, d, 12, 0, 0, 0, time.UTC) }
	sink := filesink.New(dir, csv.Encoding[reading](csv.Header())).
		BucketByEventTime("yyyy/MM/dd", time.UTC).
		PartSuffix(".csv")
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(reading{"attic", day(1)}, reading{"cellar", day(2)}, reading{"attic", day(2)}).
		AssignTimestampsAndWatermarks(watermark.Ascending(func(r reading) time.Time { return r.At })).
		CommitTo(sink)
	if _, err := env.Execute(context.Background(), "readings"); err != nil {
		fmt.Println(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "2016/08/*/*"))
	if err != nil {
		fmt.Println(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		fmt.Printf("%s %v\n%s", name[len(dir)+1:], err, text)
	}
	// Output:
	// 2016/08/01/part-0-0.csv <nil>
	// Sensor,At
	// attic,2016-08-01T12:00:00Z
	// 2016/08/02/part-0-1.csv <nil>
	// Sensor,At
	// cellar,2016-08-02T12:00:00Z
	// attic,2016-08-02T12:00:00Z
}

// What 100 checkpoints leave becomes one file, or earlier: when there are 64 MiB.
func ExampleSink_CompactAfter() {
	sink := filesink.New("out", csv.Encoding[struct{ A, B int }](csv.Header())).
		Compress(filesink.Zstd).
		CompactAfter(100).
		CompactSize(64 << 20)
	fmt.Println(sink.Check())
	// Output: <nil>
}

// A policy of one's own: files of 10,000 rows, and none that is open for longer than a day.
func ExampleSink_RollWhen() {
	sink := filesink.New("out", csv.Encoding[struct{ A, B int }]()).
		RollWhen(func(p filesink.Part) bool {
			return p.Elements >= 10_000 || p.Now-p.Created >= 24*time.Hour.Milliseconds()
		})
	fmt.Println(sink.Check())
	// Output: <nil>
}
