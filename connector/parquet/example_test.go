package parquet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/connector/parquet"
	"github.com/flott-dev/flott/stream"
)

type Measurement struct {
	Sensor  string   `parquet:"sensor,dict"`
	Celsius float64  `parquet:"celsius"`
	Comment *string  `parquet:"comment"` // may be null, or missing in a file
	Labels  []string `parquet:"labels,list"`
}

func Example() {
	dir, err := os.MkdirTemp("", "parquet")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	env := stream.NewEnv().SetParallelism(1)
	note := "new battery"
	sink := filesink.NewBulk(dir, parquet.Encoding[Measurement](parquet.Compression(parquet.Zstd))).NoBuckets()
	env.FromElements(
		Measurement{Sensor: "attic", Celsius: 21.5, Comment: &note},
		Measurement{Sensor: "cellar", Celsius: 9, Labels: []string{"cold", "wet"}},
	).CommitTo(sink)
	if _, err := env.Execute(context.Background(), "write"); err != nil {
		fmt.Println(err)
	}

	type Warm struct { // only these columns are read
		Sensor  string  `parquet:"sensor"`
		Celsius float64 `parquet:"celsius"`
	}
	env.ReadFile(parquet.Format[Warm](), filepath.Join(dir, "*.parquet")).
		Filter(func(m Warm) bool { return m.Celsius > 20 }).
		Print()
	if _, err := env.Execute(context.Background(), "read"); err != nil {
		fmt.Println(err)
	}
	// Output: {attic 21.5}
}
