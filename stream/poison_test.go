package stream_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// dose is an element of the tests of poison records.
type dose struct {
	ID   int64
	Drug string
	At   int64 // ms
}

// The poison record is one of a thousand, in a run whose length is not known.
const poisonID = 613

const poisonText = `element {ID:613 Drug:"s4" At:6130}`

var errPoison = errors.New("too much of it")

func doses() []dose {
	all := make([]dose, 1000)
	for i := range all {
		all[i] = dose{ID: int64(i), Drug: fmt.Sprint("s", i%7), At: int64(i) * 10}
	}
	return all
}

// try gives an error for the poison record, swallow panics.
func try(d dose) error {
	if d.ID == poisonID {
		return errPoison
	}
	return nil
}

func swallow(d dose) dose {
	if err := try(d); err != nil {
		panic(err)
	}
	return d
}

// keep is swallow for those who look at two.
func keep(_, d dose) dose { return swallow(d) }

func drug(d dose) string { return d.Drug }

func doseTime(d dose) time.Time { return time.UnixMilli(d.At) }

// weigher aggregates; any of its methods may be given something to swallow.
type weigher struct {
	add    func(dose) dose
	result func(int64)
}

func (weigher) Create() int64 { return 0 }
func (w weigher) Add(acc *int64, d dose) {
	if w.add != nil {
		w.add(d)
	}
	*acc += d.ID
}
func (weigher) Merge(acc, other *int64) { *acc += *other }
func (w weigher) Result(acc *int64) int64 {
	if w.result != nil {
		w.result(*acc)
	}
	return *acc
}

// taster fails as a process function of any kind.
type taster struct{}

func (taster) ProcessElement(_ *process.Context, d dose, out *process.Collector[dose]) error {
	out.Collect(d)
	return try(d)
}

func newTaster(*process.Runtime) taster { return taster{} }

// keyedTaster sets a timer for each element if it is late, else it fails at the element itself.
type keyedTaster struct{ late bool }

func (k keyedTaster) ProcessElement(ctx *process.KeyedContext[string], d dose, out *process.Collector[dose]) error {
	out.Collect(d)
	if k.late {
		ctx.RegisterTimer(process.EventTime, d.At+5)
		return nil
	}
	return try(d)
}

func (k keyedTaster) OnTimer(_ *process.KeyedContext[string], timer process.Timer, _ *process.Collector[dose]) error {
	if timer.Millis == poisonID*10+5 {
		return errPoison
	}
	return nil
}

// coTaster takes the poison on either input.
type coTaster struct{}

func (coTaster) ProcessElement1(_ *process.Context, d dose, _ *process.Collector[dose]) error {
	return try(d)
}

func (coTaster) ProcessElement2(_ *process.Context, d dose, _ *process.Collector[dose]) error {
	return try(d)
}

// pourer is a sink that fails at an element.
type pourer struct{}

func (pourer) Writer(connector.WriterContext) (connector.Writer[dose], error) { return pourer{}, nil }
func (pourer) Write(d dose, _ connector.ElementContext) error                 { return try(d) }
func (pourer) Flush(bool) error                                               { return nil }
func (pourer) Close() error                                                   { return nil }

// judge looks at windows when they fire.
type judge struct{}

func (judge) Process(_ *window.Context[string, window.Time], ds []dose, _ *process.Collector[dose]) error {
	for _, d := range ds {
		if err := try(d); err != nil {
			return err
		}
	}
	return nil
}

// poisonings are jobs whose function fails at the poison record, with what the error must say of it.
func poisonings(t *testing.T) map[string]struct {
	build func(s *stream.Stream[dose])
	want  string
} {
	const key = `key "s4", `
	keyed := func(s *stream.Stream[dose]) *stream.KeyedStream[dose, string] { return s.KeyBy(drug) }
	second := func(s *stream.Stream[dose]) *stream.ConnectedStreams[dose, dose] {
		return s.Filter(func(dose) bool { return false }).Connect(s)
	}
	return map[string]struct {
		build func(s *stream.Stream[dose])
		want  string
	}{
		"map":     {func(s *stream.Stream[dose]) { s.Map(swallow).Name("x").Discard() }, poisonText},
		"map ptr": {func(s *stream.Stream[dose]) { s.MapPtr(func(d *dose) dose { return swallow(*d) }).Name("x").Discard() }, poisonText},
		"try map": {func(s *stream.Stream[dose]) {
			s.TryMap(func(_ context.Context, d dose) (dose, error) { return d, try(d) }).Name("x").Discard()
		}, poisonText},
		"filter": {func(s *stream.Stream[dose]) {
			s.Filter(func(d dose) bool { return swallow(d).ID%3 == 1 }).Name("x").Discard()
		}, poisonText},
		"filter ptr": {func(s *stream.Stream[dose]) {
			s.Filter(func(d *dose) bool { return swallow(*d).ID%3 == 1 }).Name("x").Discard()
		}, poisonText},
		"update": {func(s *stream.Stream[dose]) { s.Update(func(d *dose) { swallow(*d) }).Name("x").Discard() }, poisonText},
		"flat map": {func(s *stream.Stream[dose]) {
			s.FlatMap(func(d dose, emit func(dose)) { emit(d); emit(swallow(d)) }).Name("x").Discard()
		}, poisonText},
		"flat map seq": {func(s *stream.Stream[dose]) {
			s.FlatMapSeq(func(d dose) iter.Seq[dose] {
				return func(yield func(dose) bool) { yield(swallow(d)) }
			}).Name("x").Discard()
		}, poisonText},
		"try flat map": {func(s *stream.Stream[dose]) {
			s.TryFlatMap(func(_ context.Context, d dose, emit func(dose)) error { emit(d); return try(d) }).Name("x").Discard()
		}, poisonText},
		"process": {func(s *stream.Stream[dose]) { s.Process(newTaster).Name("x").Discard() }, poisonText},
		"split": {func(s *stream.Stream[dose]) {
			s.Map(func(d dose) dose { return d }).Split(func(d dose) []string { return []string{swallow(d).Drug} }).Select("s1").Discard()
		}, poisonText},
		"second input of a map": {func(s *stream.Stream[dose]) {
			second(s).Map(swallow, swallow).Name("x").Discard()
		}, poisonText},
		"second input of a flat map": {func(s *stream.Stream[dose]) {
			second(s).FlatMap(func(dose, func(dose)) {}, func(d dose, _ func(dose)) { swallow(d) }).Name("x").Discard()
		}, poisonText},
		"second input of a function": {func(s *stream.Stream[dose]) {
			second(s).Process(func(*process.Runtime) coTaster { return coTaster{} }).Name("x").Discard()
		}, poisonText},
		"async": {func(s *stream.Stream[dose]) {
			s.AsyncUnordered(func(_ context.Context, d dose) ([]dose, error) { return nil, try(d) }, stream.AsyncOptions[dose, dose]{}).Name("x").Discard()
		}, poisonText},
		"for each":     {func(s *stream.Stream[dose]) { s.ForEach(func(d dose) { swallow(d) }).Name("x") }, poisonText},
		"for each ptr": {func(s *stream.Stream[dose]) { s.ForEach(func(d *dose) { swallow(*d) }).Name("x") }, poisonText},
		"sink function": {func(s *stream.Stream[dose]) {
			s.AddSink(func(_ context.Context, d dose, _ connector.ElementContext) error { return try(d) }).Name("x")
		}, poisonText},
		"writer": {func(s *stream.Stream[dose]) { s.SinkTo(pourer{}).Name("x") }, poisonText},
		"file": {func(s *stream.Stream[dose]) {
			encode := func(dst []byte, d dose) ([]byte, error) { return dst, try(d) }
			s.WriteToFiles(t.TempDir()+"/x", file.Encoding[dose]{Open: func() func([]byte, dose) ([]byte, error) { return encode }}).Name("x")
		}, poisonText},
		"key of an exchange": {func(s *stream.Stream[dose]) {
			s.Map(func(d dose) dose { return d }).Name("x").KeyBy(func(d dose) string { return swallow(d).Drug }).Count().Parallelism(2).Discard()
		}, poisonText},
		"custom partition": {func(s *stream.Stream[dose]) {
			s.Map(func(d dose) dose { return d }).Name("x").PartitionCustom(func(string, int) int { return 0 }, func(d dose) string { return swallow(d).Drug }).
				Map(func(d dose) dose { return d }).Parallelism(2).Discard()
		}, poisonText},
		"timestamp": {func(s *stream.Stream[dose]) {
			s.AssignAscendingTimestamps(func(d dose) time.Time { return doseTime(swallow(d)) }).Name("x").Discard()
		}, poisonText},
		"keyed process": {func(s *stream.Stream[dose]) {
			keyed(s).Process(func(*process.Runtime) keyedTaster { return keyedTaster{} }).Name("x").Discard()
		}, key + poisonText},
		"timer": {func(s *stream.Stream[dose]) {
			keyed(s.AssignAscendingTimestamps(doseTime)).Process(func(*process.Runtime) keyedTaster { return keyedTaster{late: true} }).Name("x").Discard()
		}, `key "s4", event time timer 6135: `},
		"reduce": {func(s *stream.Stream[dose]) { keyed(s).Reduce(keep).Name("x").Discard() }, key + poisonText},
		"fold": {func(s *stream.Stream[dose]) {
			keyed(s).Fold(int64(0), func(acc int64, d dose) int64 { return acc + swallow(d).ID }).Name("x").Discard()
		}, key + poisonText},
		"fold of a map": {func(s *stream.Stream[dose]) {
			keyed(s).Fold(map[int64]bool{}, func(acc map[int64]bool, d dose) map[int64]bool { swallow(d); return acc }).Name("x").Discard()
		}, key + poisonText},
		"aggregate": {func(s *stream.Stream[dose]) { keyed(s).Aggregate(weigher{add: swallow}).Name("x").Discard() }, key + poisonText},
		"sum": {func(s *stream.Stream[dose]) {
			keyed(s).Sum(func(d dose) int64 { return swallow(d).ID }).Name("x").Discard()
		}, key + poisonText},
		"max": {func(s *stream.Stream[dose]) {
			keyed(s).Max(func(d dose) int64 { return swallow(d).ID }).Name("x").Discard()
		}, key + poisonText},
		"max by": {func(s *stream.Stream[dose]) {
			keyed(s).MaxBy(func(d dose) int64 { return swallow(d).ID }).Name("x").Discard()
		}, key + poisonText},
		"window's aggregate": {func(s *stream.Stream[dose]) {
			keyed(s.AssignAscendingTimestamps(doseTime)).TimeWindow(time.Second).Aggregate(weigher{add: swallow}).Name("x").Discard()
		}, key + poisonText},
		"window's reduce": {func(s *stream.Stream[dose]) {
			keyed(s.AssignAscendingTimestamps(doseTime)).TimeWindow(time.Second).Reduce(keep).Name("x").Discard()
		}, key + poisonText},
		"result of a window": {func(s *stream.Stream[dose]) {
			keyed(s.AssignAscendingTimestamps(doseTime)).TimeWindow(time.Second).AggregateWith(weigher{}, func(i window.Info[string, window.Time], _ int64) int64 {
				if i.Key == "s4" && i.Window.Start == 6000 {
					panic(errPoison)
				}
				return 0
			}).Name("x").Discard()
		}, `at key "s4", window [6000,7000): `},
		"session's aggregate": {func(s *stream.Stream[dose]) {
			keyed(s.AssignAscendingTimestamps(doseTime)).Window(window.Session(time.Second)).Aggregate(weigher{add: swallow}).Name("x").Discard()
		}, key + poisonText},
		"session's gap": {func(s *stream.Stream[dose]) {
			keyed(s.AssignAscendingTimestamps(doseTime)).WindowBy(window.SessionBy(func(d dose) time.Duration { swallow(d); return time.Second })).Count().Name("x").Discard()
		}, "at " + poisonText},
		"result of a session": {func(s *stream.Stream[dose]) {
			keyed(s.AssignAscendingTimestamps(doseTime)).Window(window.Session(50*time.Millisecond)).AggregateWith(weigher{}, func(i window.Info[string, window.Time], sum int64) int64 {
				if sum == poisonID {
					panic(errPoison)
				}
				return 0
			}).Name("x").Discard()
		}, `at key "s4", window [6130,6180): `},
		"window function": {func(s *stream.Stream[dose]) {
			keyed(s.AssignAscendingTimestamps(doseTime)).TimeWindow(time.Second).Process(func(*window.Runtime) judge { return judge{} }).Name("x").Discard()
		}, `at key "s4", window [6000,7000), event time timer 6999: `},
		"window's aggregate with a trigger": {func(s *stream.Stream[dose]) {
			keyed(s.AssignAscendingTimestamps(doseTime)).TimeWindow(time.Second).Trigger(window.CountTrigger(1)).Aggregate(weigher{add: swallow}).Name("x").Discard()
		}, `at key "s4", window [6000,7000), ` + poisonText},
		"window over all": {func(s *stream.Stream[dose]) {
			s.AssignAscendingTimestamps(doseTime).TimeWindowAll(time.Second).Aggregate(weigher{add: swallow}).Name("x").Discard()
		}, "at " + poisonText},
		"window's aggregate of the library": {func(s *stream.Stream[dose]) {
			keyed(s.AssignAscendingTimestamps(doseTime)).TimeWindow(time.Second).Aggregate(agg.Sum(func(d dose) int64 { return swallow(d).ID })).Name("x").Discard()
		}, "in a run of "},
		"interval join": {func(s *stream.Stream[dose]) {
			timed := keyed(s.AssignAscendingTimestamps(doseTime))
			timed.IntervalJoin(timed).Between(0, 0).Join(func(a, b dose) dose { return swallow(a) }).Name("x").Discard()
		}, `at key "s4", left ` + poisonText + ", right " + poisonText},
		"generator": {func(s *stream.Stream[dose]) {
			s.Env().FromGenerator(1000, func(i int64) int64 { swallow(dose{ID: i}); return i }, 0).Name("x").Discard()
		}, "at number 613: "},
	}
}

// The error of a poison record names it, wherever in a run it is, and nothing else.
func TestErrorsNameThePoisonRecord(t *testing.T) {
	for name, c := range poisonings(t) {
		for _, isolated := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " isolated ", isolated), func(t *testing.T) {
				var opts []stream.Option
				if isolated {
					opts = append(opts, stream.WithIsolation())
				}
				env := stream.NewEnv(opts...).SetParallelism(1)
				c.build(env.FromSlice(doses()))
				_, err := env.Execute(t.Context(), "poisoned")
				operator := `operator "x" (`
				if name == "split" { // takes no name
					operator = `operator "Split" (`
				}
				if !errors.Is(err, errPoison) || !strings.Contains(err.Error(), operator) || !strings.Contains(err.Error(), ", subtask 1, ") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%.400v; want %s", err, c.want)
				}
			})
		}
	}
}

// A poison record ends the job as soon as the strategy has had enough of it, and the error says so.
func TestPoisonRecordDoesNotSpin(t *testing.T) {
	for name, c := range map[string]struct {
		strategy stream.RestartStrategy
		calls    int
		want     string
	}{
		"none":        {stream.NoRestart(), 1, `operator "x" (`},
		"fixed delay": {stream.FixedDelayRestart(3, time.Second), 4, "the job was restarted 3 times, and the same failure came 4 times in a row, at the same record each time: "},
		"rate":        {stream.FailureRateRestart(2, time.Hour, time.Second), 3, "the job was restarted 2 times, and the same failure came 3 times in a row, at the same record each time: "},
		"exponential": {
			stream.ExponentialDelayRestart(time.Second, time.Minute, time.Hour, 2, stream.RestartAttempts(5)), 6,
			"the job was restarted 5 times, and the same failure came 6 times in a row, at the same record each time: ",
		},
	} {
		for _, panics := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				env := stream.NewEnv(stream.WithRestartStrategy(c.strategy)).SetParallelism(1)
				calls := 0
				env.FromSlice(doses()).TryMap(func(_ context.Context, d dose) (dose, error) {
					if d.ID == poisonID {
						calls++
					}
					if panics {
						swallow(d)
					}
					return d, try(d)
				}).Name("x").Discard()
				_, err := env.Execute(t.Context(), "poisoned")
				if !errors.Is(err, errPoison) || calls != c.calls {
					t.Fatalf("%s, panic %v: after %d calls %.300v", name, panics, calls, err)
				}
				text := err.Error()
				if !strings.Contains(text, c.want) || !strings.Contains(text, ", subtask 1, at "+poisonText+": ") {
					t.Errorf("%s, panic %v: %.400s; want %s", name, panics, text, c.want)
				}
				if panics != strings.Contains(text, "panic: too much of it (stream/poison_test.go:") {
					t.Errorf("%s, panic %v: %.400s", name, panics, text)
				}
			})
		}
	}
}

// A function that ends its goroutine, as t.Fatal does, is found out in the same way.
func TestEndedGoroutinesNameTheRecord(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(doses()).Map(func(d dose) dose {
		if d.ID == poisonID {
			runtime.Goexit()
		}
		return d
	}).Name("x").ForEach(func(dose) {})
	if _, err := env.Execute(t.Context(), "poisoned"); err == nil || !strings.Contains(err.Error(), `operator "x" (`) || !strings.Contains(err.Error(), ", at "+poisonText+": ") {
		t.Errorf("got %v", err)
	}
}
