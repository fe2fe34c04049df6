package guide

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/stream"
)

func Example_filesExactlyOnce() {
	dir, err := os.MkdirTemp("", "guide")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	env := stream.NewEnv().SetParallelism(1)
	readings := env.FromElements(Reading{"attic", 21.5}, Reading{"cellar", 9}, Reading{"attic", 22})

	env.EnableCheckpointing(time.Second)
	sink := filesink.New(dir, csv.Encoding[Reading](csv.Header())).
		BucketBy(func(r Reading) string { return r.Sensor }).
		RolloverInterval(10 * time.Minute).
		PartSuffix(".csv")
	readings.CommitTo(sink)

	if _, err := env.Execute(context.Background(), "readings"); err != nil {
		fmt.Println(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		fmt.Println(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		fmt.Printf("%s: %q %v\n", name[len(dir)+1:], text, err)
	}
	// Output:
	// attic/part-0-0.csv: "sensor,celsius\nattic,21.5\nattic,22\n" <nil>
	// cellar/part-0-1.csv: "sensor,celsius\ncellar,9\n" <nil>
}
