package stream_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/stream"
)

func TestTargetIsInspectedBeforeTheJobWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := stream.NewEnv().SetParallelism(2)
	env.FromSequence(1, 10).SinkTo(file.TextSink[int64](path)).Parallelism(1)
	_, err := env.Execute(context.Background(), "overwrite")
	if !errors.Is(err, file.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "kept" {
		t.Errorf("the target was changed to %q", b)
	}
}

func TestConnectorMistakesAreFoundWhenTheGraphIsBuilt(t *testing.T) {
	env := stream.NewEnv()
	env.FromSource(file.Lines("x").SplitSize(0), "lines").Discard()
	if _, err := env.Execute(context.Background(), "bad"); err == nil || !strings.Contains(err.Error(), "sink_test.go:") {
		t.Errorf("got %v, want an error with the caller's line", err)
	}
}
