package streaming_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

type rollingCase struct {
	conformance.Head
	Kind      string            `json:"kind"`
	Aggregate string            `json:"aggregate"`
	First     bool              `json:"first"`
	KeyField  int               `json:"key_field"`
	Field     int               `json:"field"`
	Input     []json.RawMessage `json:"input"`
	Expect    []json.RawMessage `json:"expect"`
}

// triple is a tuple of up to three numbers; Rest makes its layout that of R.
type triple[R any] struct {
	F0, F1, F2 int64
	N          int // fields that count
	Rest       R
}

func (x *triple[R]) UnmarshalJSON(b []byte) error {
	var fields []int64
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	to := []*int64{&x.F0, &x.F1, &x.F2}
	if x.N = len(fields); x.N > len(to) {
		return fmt.Errorf("read a tuple of %d fields", x.N)
	}
	for i, f := range fields {
		*to[i] = f
	}
	return nil
}

func (x triple[R]) MarshalJSON() ([]byte, error) {
	return json.Marshal([]int64{x.F0, x.F1, x.F2}[:x.N])
}

func (x triple[R]) field(i int) int64 { return []int64{x.F0, x.F1, x.F2}[i] }

// runRolling runs a rolling aggregate by selector and by field, with elements of each layout.
func runRolling(t *testing.T, c conformance.Case, w conformance.Way) {
	var v rollingCase
	c.Decode(t, &v)
	t.Run("fixed", func(t *testing.T) { rolling[struct{}](t, &v, w) })
	t.Run("text", func(t *testing.T) { rolling[string](t, &v, w) })
	t.Run("encoded", func(t *testing.T) { rolling[[]byte](t, &v, w) })
}

func rolling[R any](t *testing.T, v *rollingCase, w conformance.Way) {
	t.Helper()
	tie := stream.KeepLast
	if v.First {
		tie = stream.KeepFirst
	}
	path := fmt.Sprintf("F%d", v.Field)
	forms := map[string]func(in *stream.KeyedStream[triple[R], int64]) *stream.Stream[triple[R]]{}
	type keyedStream = *stream.KeyedStream[triple[R], int64]
	type elements = *stream.Stream[triple[R]]
	sel := func(x triple[R]) int64 { return x.field(v.Field) }
	switch v.Aggregate {
	case "sum":
		forms["field"] = func(in keyedStream) elements { return in.SumField(path) }
	case "min":
		forms["field"] = func(in keyedStream) elements { return in.MinField(path) }
	case "max":
		forms["field"] = func(in keyedStream) elements { return in.MaxField(path) }
	case "min_by":
		forms["field"] = func(in keyedStream) elements { return in.MinByField(path, tie) }
		forms["selector"] = func(in keyedStream) elements { return in.MinBy(sel, tie) }
	case "max_by":
		forms["field"] = func(in keyedStream) elements { return in.MaxByField(path, tie) }
		forms["selector"] = func(in keyedStream) elements { return in.MaxBy(sel, tie) }
	default:
		t.Fatalf("aggregate %q is unknown", v.Aggregate)
	}
	if total := totalForm[R](v, sel); total != nil {
		forms["selector"] = total
	}
	for name, form := range forms {
		s := newOne(t, wayOptions(w), func(in *stream.Stream[triple[R]]) *stream.Stream[triple[R]] {
			return form(in.KeyByPositions[int64](v.KeyField))
		})
		held := pending{to: s, way: w, input: 1}
		for i, x := range v.Input {
			if err := held.add(1, rawElement{x, int64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := held.flush(); err != nil {
			t.Fatal(err)
		}
		var want []string
		for i, x := range v.Expect {
			want = append(want, fmt.Sprintf("%s@%d", conformance.Canonical(x), i))
		}
		compare(t, len(want), "output by "+name, s.output(), want, false)
	}
}

// totalForm is the aggregate that emits keys and numbers, for tuples of just these; nil for others.
func totalForm[R any](v *rollingCase, sel func(triple[R]) int64) func(*stream.KeyedStream[triple[R], int64]) *stream.Stream[triple[R]] {
	var pair [2]int64
	if v.KeyField != 0 || v.Field != 1 || len(v.Input) == 0 || tuple(v.Input[0], &pair[0], &pair[1]) != nil {
		return nil
	}
	type total = stream.KeyValue[int64, int64]
	return func(in *stream.KeyedStream[triple[R], int64]) *stream.Stream[triple[R]] {
		var out *stream.Stream[total]
		switch v.Aggregate {
		case "sum":
			out = in.Sum(sel)
		case "min":
			out = in.Min(sel)
		default:
			out = in.Max(sel)
		}
		return out.Map(func(x total) triple[R] { return triple[R]{F0: x.Key, F1: x.Value, N: 2} })
	}
}

type lifecycleCase struct {
	conformance.Head
	Kind     string   `json:"kind"`
	Scenario string   `json:"scenario"`
	Calls    []string `json:"expect_calls"`
}

// moments are the calls that Flink makes at each of the four moments of an operator's life here: Open, which calls the
// user's constructor, the first element, the end of the context, and Close.
func moments() map[string][]string {
	return map[string][]string{
		"open":   {"operator.setup", "udf.set_runtime_context", "operator.initialize_state", "operator.open", "udf.open"},
		"run":    {"operator.run", "udf.run"},
		"cancel": {"operator.cancel", "udf.cancel"},
		"close":  {"operator.dispose", "udf.close"},
	}
}

// runLifecycle cancels a running job.
func runLifecycle(t *testing.T, c conformance.Case) {
	var v lifecycleCase
	c.Decode(t, &v)
	if v.Scenario != "cancelled while running" {
		t.Fatalf("scenario %q is unknown", v.Scenario)
	}
	l := &lifecycle{running: make(chan struct{})}
	env := stream.NewEnv().SetParallelism(1)
	script := flotttest.NewScript[int64]().Emit(1).Pause("running").Emit(2)
	flotttest.FromScripts(env, script).Process(func(rt *process.Runtime) *lifecycle {
		l.rt = rt
		l.calls = append(l.calls, moments()["open"]...)
		return l
	}).Discard()
	job, err := env.ExecuteAsync(t.Context(), "lifecycle")
	if err != nil {
		t.Fatal(err)
	}
	<-l.running
	job.Cancel()
	if _, err := job.Wait(); err == nil {
		t.Error("a cancelled job has no error")
	}
	if got, want := strings.Join(l.calls, " "), strings.Join(v.Calls, " "); got != want {
		t.Errorf("calls:\n got %s\nwant %s", got, want)
	}
}

// lifecycle notes the moments of its life; it waits in the middle of an element until it is cancelled.
type lifecycle struct {
	rt      *process.Runtime
	running chan struct{}
	calls   []string
}

func (l *lifecycle) ProcessElement(*process.Context, int64, *process.Collector[int64]) error {
	l.calls = append(l.calls, moments()["run"]...)
	close(l.running)
	<-l.rt.Context().Done()
	l.calls = append(l.calls, moments()["cancel"]...)
	return l.rt.Context().Err()
}

func (l *lifecycle) Close() error {
	l.calls = append(l.calls, moments()["close"]...)
	return nil
}

// slowClose tells when it is being closed and closes when it is told to.
type slowClose struct{ closing, goOn chan struct{} }

func (slowClose) ProcessElement(*process.Context, int64, *process.Collector[int64]) error { return nil }

func (s slowClose) Close() error {
	close(s.closing)
	<-s.goOn
	return nil
}
