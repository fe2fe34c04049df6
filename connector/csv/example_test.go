package csv_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/stream"
)

// Rows of a file with a header; bad ones are told about and skipped.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "readings.csv")
	text := "room,sensor,celsius\nkitchen,a1,21.5\ncellar,a2,warm\n\"the \"\"lab\"\"\",a3,19\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	type reading struct {
		Sensor  string  `csv:"sensor"`
		Celsius float64 `csv:"celsius"`
		Room    string  `csv:"room"`
	}
	readings := file.New(csv.Format[reading](csv.Header()), path).OnBad(func(b file.Bad) {
		fmt.Printf("line %d is bad: %s\n", b.Line, b.Record)
	})
	env := stream.NewEnv().SetParallelism(1)
	env.FromSource(readings, "readings").ForEach(func(r reading) { fmt.Println(r.Sensor, r.Celsius, r.Room) })
	if _, err := env.Execute(context.Background(), "readings"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// a1 21.5 kitchen
	// line 3 is bad: cellar,a2,warm
	// a3 19 the "lab"
}
