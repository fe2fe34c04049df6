package stream_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// tattler reports a mistake when its constructor has long returned.
type tattler struct {
	rt  *process.Runtime
	err error
}

func (f *tattler) ProcessElement(_ *process.Context, x int64, _ *process.Collector[int64]) error {
	if x == 10 {
		f.rt.Report(f.err)
	}
	return nil
}

func TestMistakeReportedLateFailsTheTask(t *testing.T) {
	late := errors.New("found out too late")
	env := stream.NewEnv().SetParallelism(1)
	forever(env).Process(func(rt *process.Runtime) *tattler { return &tattler{rt, late} }).Name("tattler").Discard()
	_, err := env.Execute(context.Background(), "late")
	if !errors.Is(err, late) || !strings.Contains(err.Error(), "tattler") {
		t.Errorf("got %v, want the mistake with the operator's name", err)
	}
}
