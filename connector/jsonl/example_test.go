package jsonl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flott-dev/flott/connector/jsonl"
	"github.com/flott-dev/flott/stream"
)

// Lines of JSON, filtered into another file.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	if err := os.WriteFile(in, []byte("{\"user\":\"ada\",\"clicks\":3}\n{\"user\":\"bob\"}\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	type visit struct {
		User   string `json:"user"`
		Clicks int    `json:"clicks"`
	}
	env := stream.NewEnv().SetParallelism(1)
	env.FromSource(jsonl.Source[visit](in), "visits").
		Filter(func(v visit) bool { return v.Clicks > 0 }).
		SinkTo(jsonl.Sink[visit](out))
	if _, err := env.Execute(context.Background(), "visits"); err != nil {
		fmt.Println(err)
		return
	}
	text, err := os.ReadFile(out)
	fmt.Print(string(text), err)
	// Output:
	// {"user":"ada","clicks":3}
	// <nil>
}
