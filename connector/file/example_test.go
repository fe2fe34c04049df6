package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/stream"
)

// The lines of the files in a folder, with their numbers of words, written to a file.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{"a.txt": "to be or not\n", "b.txt": "to be\n", "c.log": "no text\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	env := stream.NewEnv().SetParallelism(1)
	env.FromSource(file.Lines(filepath.Join(dir, "*.txt")), "texts").
		Map(func(line string) string { return fmt.Sprint(len(line), " ", line) }).
		SinkTo(file.TextSink[string](filepath.Join(dir, "out")))
	if _, err := env.Execute(context.Background(), "lengths"); err != nil {
		fmt.Println(err)
		return
	}
	out, err := os.ReadFile(filepath.Join(dir, "out"))
	fmt.Print(string(out), err)
	// Output:
	// 12 to be or not
	// 5 to be
	// <nil>
}
