package stream_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// wordCensus counts words by their length.
type wordCensus struct {
	words   *process.LongCounter
	lengths *process.Histogram
	longest *process.Maximum[int64]
	seen    *process.MetricCounter
}

func newWordCensus(rt *process.Runtime) wordCensus {
	return wordCensus{
		process.NewLongCounter(rt, "words"), process.NewHistogram(rt, "lengths"), process.NewMaximum[int64](rt, "longest"),
		process.NewMetricCounter(rt, "seen"),
	}
}

func (c wordCensus) ProcessElement(_ *process.Context, w string, out *process.Collector[string]) error {
	c.words.Add(1)
	c.lengths.Add(int64(len(w)))
	c.longest.Add(int64(len(w)))
	c.seen.Inc(1)
	out.Collect(w)
	return nil
}

func TestAccumulatorsOfAllSubtasksAreInTheResult(t *testing.T) {
	env := stream.NewEnv().SetParallelism(3)
	env.FromElements("a", "bb", "cc", "ddd").Rebalance().Process(newWordCensus).Name("census").Discard()
	job, err := env.ExecuteAsync(context.Background(), "census")
	if err != nil {
		t.Fatal(err)
	}
	r, err := job.Wait()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"words": int64(4), "longest": int64(3), "lengths": map[int64]int64{1: 1, 2: 2, 3: 1}}
	if !reflect.DeepEqual(r.Accumulators, want) {
		t.Errorf("accumulators %v", r.Accumulators)
	}
	seen := int64(0)
	for _, m := range job.Metrics() {
		for _, v := range m.User["seen"] {
			seen += v.(int64)
		}
	}
	if seen != 4 {
		t.Errorf("metric says %d", seen)
	}
}

// muddled declares two accumulators of one name.
type muddled struct{ wordCensus }

func TestAccumulatorsOfTwoKindsFailTheJob(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a").Process(func(rt *process.Runtime) muddled {
		process.NewDoubleCounter(rt, "words")
		return muddled{newWordCensus(rt)}
	}).Name("muddled").Discard()
	executeFailing(t, env, "muddled", `"words"`)
}

// lineCounter is the processor of the example.
type lineCounter struct {
	lines *process.LongCounter
}

func (c *lineCounter) ProcessElement(_ *process.Context, line string, out *process.Collector[string]) error {
	c.lines.Add(1)
	out.Collect(line)
	return nil
}

func Example_accumulators() {
	env := stream.NewEnv()
	env.FromElements("to be", "or not").
		Process(func(rt *process.Runtime) *lineCounter {
			return &lineCounter{lines: process.NewLongCounter(rt, "lines")}
		}).
		Discard()
	result, err := env.Execute(context.Background(), "lines")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Accumulators["lines"])
	// Output: 2
}
