package stream_test

import (
	"context"
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// divert sends every tenth element to a side output.
type divert struct{ tag process.OutputTag[int64] }

func (d *divert) ProcessElement(ctx *process.Context, x int64, out *process.Collector[int64]) error {
	if x%10 == 0 {
		ctx.Emit(d.tag, x)
	} else {
		out.Collect(x)
	}
	return nil
}

// Trap B071: counts are logical, however operators are chained and however many consumers an output has.
func TestMetricsCountElementsLogically(t *testing.T) {
	tag := process.NewOutputTag[int64]("tens")
	for _, c := range []struct {
		name      string
		chained   bool
		consumers int
	}{{"chained", true, 1}, {"unchained", false, 1}, {"two consumers", true, 2}, {"two consumers, unchained", false, 2}} {
		t.Run(c.name, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(2)
			if !c.chained {
				env.DisableOperatorChaining()
			}
			s := env.FromSequence(1, 1000).Process(func(*process.Runtime) *divert { return &divert{tag} }).Name("divert")
			for range c.consumers {
				s.Map(func(x int64) int64 { return x }).Name("main").Discard()
			}
			s.SideOutput(tag).Map(func(x int64) int64 { return x }).Name("side").Discard()
			job, err := env.ExecuteAsync(context.Background(), "metrics")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := job.Wait(); err != nil {
				t.Fatal(err)
			}
			for _, m := range job.Metrics() {
				var in, out, side int64
				switch m.Name {
				case "divert":
					in, out, side = 1000, 900, 100
				case "main":
					in, out = 900, 900
				case "side":
					in, out = 100, 100
				default:
					continue
				}
				if m.RecordsIn != in || m.RecordsOut != out || m.SideOut[tag.Name()] != side {
					t.Errorf("%s: in %d, out %d, side %d; want %d, %d, %d", m.Name, m.RecordsIn, m.RecordsOut, m.SideOut[tag.Name()], in, out, side)
				}
			}
		})
	}
}
