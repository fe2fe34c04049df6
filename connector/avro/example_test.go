package avro_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flott-dev/flott/connector/avro"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/stream"
)

type Measurement struct {
	Sensor  string  `avro:"sensor"`
	Celsius float64 `avro:"celsius"`
	Comment *string `avro:"comment"`
}

const measurement = `{"type": "record", "name": "Measurement", "fields": [
	{"name": "sensor", "type": "string"},
	{"name": "celsius", "type": "double"},
	{"name": "comment", "type": ["null", "string"], "default": null}
]}`

func Example() {
	dir, err := os.MkdirTemp("", "avro")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	env := stream.NewEnv().SetParallelism(1)
	sink := filesink.NewBulk(dir, avro.Encoding[Measurement](measurement, avro.Compression(avro.Deflate))).NoBuckets()
	env.FromElements(Measurement{Sensor: "attic", Celsius: 21.5}, Measurement{Sensor: "cellar", Celsius: 9}).CommitTo(sink)
	if _, err := env.Execute(context.Background(), "write"); err != nil {
		fmt.Println(err)
	}

	env.ReadFile(avro.Format[Measurement](""), filepath.Join(dir, "*.avro")).
		Filter(func(m Measurement) bool { return m.Celsius > 20 }).
		Map(func(m Measurement) string { return fmt.Sprint(m.Sensor, " ", m.Celsius) }).
		Print()
	if _, err := env.Execute(context.Background(), "read"); err != nil {
		fmt.Println(err)
	}
	// Output: attic 21.5
}

// A file that was written before the unit was asked for gets it from the schema of the reader.
func ExampleFormat() {
	dir, err := os.MkdirTemp("", "avro")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(Measurement{Sensor: "attic", Celsius: 21.5}).
		CommitTo(filesink.NewBulk(dir, avro.Encoding[Measurement](measurement)).NoBuckets())
	if _, err := env.Execute(context.Background(), "write"); err != nil {
		fmt.Println(err)
	}

	type Reading struct {
		Place string  `avro:"place"`
		Value float64 `avro:"value"`
		Unit  string  `avro:"unit"`
	}
	reading := `{"type": "record", "name": "Reading", "aliases": ["Measurement"], "fields": [
		{"name": "place", "aliases": ["sensor"], "type": "string"},
		{"name": "value", "aliases": ["celsius"], "type": "double"},
		{"name": "unit", "type": "string", "default": "°C"}
	]}`
	env.ReadFile(avro.Format[Reading](reading), filepath.Join(dir, "*.avro")).Print()
	if _, err := env.Execute(context.Background(), "read"); err != nil {
		fmt.Println(err)
	}
	// Output: {attic 21.5 °C}
}
