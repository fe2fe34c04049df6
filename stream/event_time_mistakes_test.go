package stream_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// eventTimeOver is an interval join, which works in event time, of a stream of numbers with a stream that has timestamps.
// It returns the place that a mistake must name.
func eventTimeOver(env *stream.Env, s *stream.Stream[int64]) string {
	timed := env.FromFunc("timed", func(context.Context, *stream.SourceContext[int64]) error { return nil })
	key := func(x int64) int64 { return x }
	s.KeyBy(key).IntervalJoin(timed.KeyBy(key)).Between(0, time.Second).
		Join(func(a, b int64) int64 { return a + b }).Name("pairs").Discard()
	return above(1)
}

func millis(x int64) int64 { return x }

func longer(x string) int64 { return int64(len(x)) }

func TestEventTimeOverStreamsWithoutTimestampsIsAMistake(t *testing.T) {
	for name, c := range map[string]struct {
		source string // as the error names it
		build  func(env *stream.Env) *stream.Stream[int64]
	}{
		"elements":          {"Collection Source", func(env *stream.Env) *stream.Stream[int64] { return env.FromElements[int64](1, 2) }},
		"parallel elements": {"Parallel Collection Source", func(env *stream.Env) *stream.Stream[int64] { return env.FromParallelSlice([]int64{1}) }},
		"sequence":          {"Sequence Source", func(env *stream.Env) *stream.Stream[int64] { return env.FromSequence(1, 2) }},
		"generator": {"Data Generator Source", func(env *stream.Env) *stream.Stream[int64] {
			return env.FromGenerator(1, func(i int64) int64 { return i }, 0)
		}},
		"file":   {"Text File Source", func(env *stream.Env) *stream.Stream[int64] { return env.ReadTextFile("absent").Map(longer) }},
		"socket": {"Socket Stream", func(env *stream.Env) *stream.Stream[int64] { return env.SocketTextStream("localhost", 1).Map(longer) }},
		"a way through": {"Sequence Source", func(env *stream.Env) *stream.Stream[int64] {
			s := env.FromSequence(1, 2).Map(func(x int64) int64 { return x }).Rebalance()
			return s.Union(s.Filter(func(int64) bool { return true })).KeyBy(func(x int64) int64 { return x }).Reduce(func(a, _ int64) int64 { return a })
		}},
		"a strategy that keeps timestamps": {"Sequence Source", func(env *stream.Env) *stream.Stream[int64] {
			return env.FromSequence(1, 2).AssignTimestampsAndWatermarks(watermark.ForMonotonousTimestamps[int64]())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(2)
			place := eventTimeOver(env, c.build(env))
			_, err := env.Execute(context.Background(), "untimed")
			if err == nil {
				t.Fatal("the program was accepted")
			}
			for _, w := range []string{place + ": ", `"pairs"`, "no element", "timestamp", c.source, "AssignTimestampsAndWatermarks"} {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not mention %q", err, w)
				}
			}
		})
	}
}

// timerTimes emits the time of an event-time timer: its results have timestamps though its input has none.
type timerTimes struct{}

func (timerTimes) ProcessElement(ctx *process.KeyedContext[int64], _ int64, _ *process.Collector[int64]) error {
	ctx.RegisterTimer(process.EventTime, 5)
	return nil
}

func (timerTimes) OnTimer(_ *process.KeyedContext[int64], timer process.Timer, out *process.Collector[int64]) error {
	out.Collect(timer.Millis)
	return nil
}

func TestEventTimeIsAcceptedWhereTimestampsMayBe(t *testing.T) {
	sequence := func(env *stream.Env) *stream.Stream[int64] { return env.FromSequence(1, 2) }
	for name, build := range map[string]func(env *stream.Env) *stream.Stream[int64]{
		"assigned": func(env *stream.Env) *stream.Stream[int64] {
			return sequence(env).AssignTimestampsAndWatermarks(watermark.ForMonotonousTimestamps[int64]().WithMillis(millis))
		},
		"assigned, far away": func(env *stream.Env) *stream.Stream[int64] {
			return sequence(env).AssignTimestampsAndWatermarks(watermark.NoWatermarks[int64]().WithMillis(millis)).Rebalance().Map(millis)
		},
		"no elements": func(env *stream.Env) *stream.Stream[int64] { return env.FromElements[int64]() },
		"function source": func(env *stream.Env) *stream.Stream[int64] {
			return env.FromFunc("f", func(context.Context, *stream.SourceContext[int64]) error { return nil })
		},
		"ingestion time": func(env *stream.Env) *stream.Stream[int64] {
			s := sequence(env.SetStreamTimeCharacteristic(stream.IngestionTime))
			env.SetStreamTimeCharacteristic(stream.EventTime)
			return s
		},
		"timers": func(env *stream.Env) *stream.Stream[int64] {
			return sequence(env).KeyBy(millis).Process(func(*process.Runtime) timerTimes { return timerTimes{} })
		},
		"side output": func(env *stream.Env) *stream.Stream[int64] {
			s := sequence(env).Process(func(*process.Runtime) giveTime { return giveTime{} })
			return s.SideOutput(withTime)
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(2)
			eventTimeOver(env, build(env))
			execute(t, env)
		})
	}
}

var withTime = process.NewOutputTag[int64]("withTime")

// giveTime gives what it emits to its side output a timestamp.
type giveTime struct{}

func (giveTime) ProcessElement(ctx *process.Context, x int64, _ *process.Collector[int64]) error {
	ctx.EmitAt(withTime, x, x)
	return nil
}

// TestMistakesOfCallsAndOfTheGraphComeTogether: one run is enough to see all.
func TestMistakesOfCallsAndOfTheGraphComeTogether(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	place := eventTimeOver(env, env.FromSequence(1, 2))
	env.FromElements(1).Map(id).Parallelism(-1).Discard()
	call := above(1)
	env.ReadTextFile(filepath.Join("no", "file")).UID("twice").Map(longer).UID("twice").Discard()
	twice := above(1)
	_, err := env.Execute(context.Background(), "wrong")
	if err == nil {
		t.Fatal("the program was accepted")
	}
	for _, w := range []string{place, call, twice} {
		if strings.Count(err.Error(), w+": ") != 1 {
			t.Errorf("error %q does not name %s once", err, w)
		}
	}
}
