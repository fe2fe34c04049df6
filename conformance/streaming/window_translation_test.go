package streaming_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

type translationCase struct {
	conformance.Head
	Keyed    bool   `json:"keyed"`
	Assigner string `json:"assigner"`
	Trigger  *struct {
		Kind     string `json:"kind"`
		MaxCount int64  `json:"max_count"`
	} `json:"trigger"`
	Evictor  string `json:"evictor"`
	Function struct {
		Call           string `json:"call"`
		Incremental    string `json:"incremental"`
		WindowFunction string `json:"window_function"`
	} `json:"function"`
	Expect struct {
		Trigger          string `json:"trigger"`
		State            string `json:"state"`
		Evictor          string `json:"evictor"`
		EvictingOperator bool   `json:"evicting_operator"`
	} `json:"expect"`
}

// named is an element of the translations: a key and a number.
type named struct {
	Name string
	N    int64
}

func TestWindowTranslationVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "window_translation", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{"": runTranslation},
	}
	s.Run(t)
}

// runTranslation looks at the plan, and at the result for one element once both times are over.
func runTranslation(t *testing.T, c conformance.Case) {
	var v translationCase
	c.Decode(t, &v)
	env := stream.NewEnv()
	v.build(t, withTimes(env.FromElements(named{}))).ForEach(func(string) {})
	text, err := env.Explain()
	if err != nil {
		t.Fatal(err)
	}
	v.check(t, text)
	for _, opts := range [][]stream.Option{nil, {stream.WithGeneralWindows()}} {
		h := flotttest.NewHarness(t, func(in *stream.Stream[named]) *stream.Stream[string] { return v.build(t, in) }, flotttest.WithEnv(opts...))
		h.ProcessElement(named{"hello", 1}, 0)
		h.ProcessWatermark(math.MaxInt64)
		h.SetProcessingTime(math.MaxInt64)
		if len(h.Elements()) == 0 {
			t.Errorf("no result, with %d options", len(opts))
		}
	}
}

// withTimes makes a stream one of event time.
func withTimes(s *stream.Stream[named]) *stream.Stream[named] {
	return s.AssignAscendingTimestamps(func(x named) time.Time { return time.UnixMilli(x.N) })
}

func (v *translationCase) check(t *testing.T, plan string) {
	t.Helper()
	attribute := func(name string) string {
		m := regexp.MustCompile(name + `: ([^,\n]*)`).FindStringSubmatch(plan)
		if m == nil {
			return ""
		}
		return strings.ToLower(m[1])
	}
	if got := attribute("window contents"); got != v.Expect.State {
		t.Errorf("windows keep %q, want %q, in\n%s", got, v.Expect.State, plan)
	}
	want := strings.ReplaceAll(v.Expect.Trigger, "_", "") + "trigger"
	if got := attribute("trigger"); !strings.HasPrefix(got, want) {
		t.Errorf("the trigger is %q, want %q", got, want)
	}
	if got := attribute("evictor"); v.Expect.EvictingOperator && !strings.HasPrefix(got, v.Expect.Evictor+"evictor") {
		t.Errorf("the evictor is %q, want %q", got, v.Expect.Evictor)
	}
}

func (v *translationCase) build(t *testing.T, in *stream.Stream[named]) *stream.Stream[string] {
	a := v.assigner(t)
	if !v.Keyed {
		s := in.WindowAll(a)
		if v.Trigger != nil {
			s = s.Trigger(window.CountTrigger(v.Trigger.MaxCount))
		}
		switch v.Evictor {
		case "count":
			s = s.Evictor(window.CountEvictor(100))
		case "time":
			s = s.Evictor(window.TimeEvictor(100 * time.Millisecond))
		}
		return v.all(t, s)
	}
	s := in.KeyBy(func(x named) string { return x.Name }).Window(a)
	if v.Trigger != nil {
		s = s.Trigger(window.CountTrigger(v.Trigger.MaxCount))
	}
	switch v.Evictor {
	case "count":
		s = s.Evictor(window.CountEvictor(100))
	case "time":
		s = s.Evictor(window.TimeEvictor(100 * time.Millisecond))
	}
	return v.perKey(t, s)
}

func (v *translationCase) assigner(t *testing.T) window.Assigner[window.Time] {
	switch v.Assigner {
	case "tumbling_event_time":
		return window.Tumbling(time.Second)
	case "tumbling_processing_time":
		return window.TumblingProcessingTime(time.Second)
	case "sliding_event_time":
		return window.Sliding(time.Second, 100*time.Millisecond)
	case "sliding_processing_time":
		return window.SlidingProcessingTime(time.Second, 100*time.Millisecond)
	case "session_event_time":
		return window.Session(5 * time.Second)
	}
	t.Fatalf("assigner %q is unknown", v.Assigner)
	return nil
}

func printed[T any](s *stream.Stream[T]) *stream.Stream[string] {
	return s.Map(func(x T) string { return fmt.Sprint(x) })
}

// showing is a window function that prints what it gets.
type showing[K, E any] struct{}

func newShowing[K, E any](*window.Runtime) showing[K, E] { return showing[K, E]{} }

func (showing[K, E]) Process(ctx *window.Context[K, window.Time], xs []E, out *process.Collector[string]) error {
	out.Collect(fmt.Sprint(ctx.Key(), ctx.Window(), xs))
	return nil
}

func add(a, b named) named { return named{a.Name, a.N + b.N} }

func total(acc int64, x named) int64 { return acc + x.N }

func sum() agg.Aggregate[named, int64, int64] { return agg.Sum(func(x named) int64 { return x.N }) }

func (v *translationCase) perKey(t *testing.T, s *stream.WindowedStream[named, string, window.Time]) *stream.Stream[string] {
	switch f := v.Function; f.Incremental + " " + f.WindowFunction {
	case " apply":
		return s.Apply(func(i window.Info[string, window.Time], xs []named, emit func(string)) { emit(fmt.Sprint(i, xs)) })
	case " process":
		return s.Process(newShowing[string, named])
	case "reduce ":
		return printed(s.Reduce(add))
	case "reduce apply":
		return s.ReduceWith(add, func(i window.Info[string, window.Time], x named) string { return fmt.Sprint(i, x) })
	case "reduce process":
		return s.ReduceProcess(add, newShowing[string, named])
	case "aggregate ":
		return printed(s.Aggregate(sum()))
	case "aggregate apply":
		return s.AggregateWith(sum(), func(i window.Info[string, window.Time], n int64) string { return fmt.Sprint(i, n) })
	case "aggregate process":
		return s.AggregateProcess(sum(), newShowing[string, int64])
	case "fold ":
		return printed(s.Fold(0, total))
	case "fold apply":
		return s.FoldWith(0, total, func(i window.Info[string, window.Time], n int64) string { return fmt.Sprint(i, n) })
	case "fold process":
		return s.FoldProcess(0, total, newShowing[string, int64])
	}
	t.Fatalf("function %+v is unknown", v.Function)
	return nil
}

func (v *translationCase) all(t *testing.T, s *stream.AllWindowedStream[named, window.Time]) *stream.Stream[string] {
	switch f := v.Function; f.Incremental + " " + f.WindowFunction {
	case " apply":
		return s.Apply(func(w window.Time, xs []named, emit func(string)) { emit(fmt.Sprint(w, xs)) })
	case " process":
		return s.Process(newShowing[window.All, named])
	case "reduce ":
		return printed(s.Reduce(add))
	case "reduce apply":
		return s.ReduceWith(add, func(w window.Time, x named) string { return fmt.Sprint(w, x) })
	case "reduce process":
		return s.ReduceProcess(add, newShowing[window.All, named])
	case "aggregate ":
		return printed(s.Aggregate(sum()))
	case "aggregate apply":
		return s.AggregateWith(sum(), func(w window.Time, n int64) string { return fmt.Sprint(w, n) })
	case "aggregate process":
		return s.AggregateProcess(sum(), newShowing[window.All, int64])
	case "fold ":
		return printed(s.Fold(0, total))
	case "fold apply":
		return s.FoldWith(0, total, func(w window.Time, n int64) string { return fmt.Sprint(w, n) })
	case "fold process":
		return s.FoldProcess(0, total, newShowing[window.All, int64])
	}
	t.Fatalf("function %+v is unknown", v.Function)
	return nil
}
