package streaming_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/internal/operator/source"
	"github.com/flott-dev/flott/internal/operator/valve"
	"github.com/flott-dev/flott/internal/operator/watermarks"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

func TestWatermarkVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "watermarks", Rules: watermarkRules(), Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{
			"valve": runValve, "periodic_operator": conformance.EachWay(runAssigner), "punctuated_operator": conformance.EachWay(runAssigner),
			"ascending_extractor": runExtractor, "bounded_extractor": runExtractor, "source_context": runSourceContext,
		},
	}
	s.Run(t)
}

type valveCase struct {
	conformance.Head
	Kind        string      `json:"kind"`
	NumChannels int         `json:"num_channels"`
	Steps       []valveStep `json:"steps"`
}

type valveStep struct {
	Watermark     *conformance.Millis  `json:"watermark"`
	Status        string               `json:"status"`
	Channel       int                  `json:"channel"`
	ExpectOutput  *[]conformance.Entry `json:"expect_output"`
	ExpectChannel *struct {
		Channel   int                 `json:"channel"`
		Watermark *conformance.Millis `json:"watermark"`
		Aligned   *bool               `json:"aligned"`
	} `json:"expect_channel"`
}

// runValve plays a case on the valve itself, and on a task with as many channels.
func runValve(t *testing.T, c conformance.Case) {
	var v valveCase
	c.Decode(t, &v)
	t.Run("valve", func(t *testing.T) { playValve(t, &v) })
	t.Run("task", func(t *testing.T) { playValveTask(t, &v) })
}

func playValve(t *testing.T, c *valveCase) {
	v, out := valve.New(c.NumChannels), &recording{}
	for i, s := range c.Steps {
		switch {
		case s.ExpectOutput != nil:
			compare(t, i, "output", out.take(), conformance.Texts(*s.ExpectOutput), false)
		case s.ExpectChannel != nil:
			e, got := s.ExpectChannel, v.Channel(s.ExpectChannel.Channel)
			if e.Watermark != nil && got.Watermark != int64(*e.Watermark) {
				t.Fatalf("step %d: channel %d at %d, want %d", i, e.Channel, got.Watermark, *e.Watermark)
			}
			if aligned := !got.Idle && !got.Behind; e.Aligned != nil && aligned != *e.Aligned {
				t.Fatalf("step %d: channel %d aligned: %v", i, e.Channel, aligned)
			}
		default:
			a := v.Step(s.Channel, s.mark(t, i))
			for _, m := range a.Marks() {
				if err := out.Mark(m); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func (s *valveStep) mark(t *testing.T, i int) frame.Mark {
	t.Helper()
	switch {
	case s.Watermark != nil:
		return frame.Mark{Kind: frame.Watermark, Value: int64(*s.Watermark)}
	case s.Status == "idle":
		return frame.Mark{Kind: frame.Idle}
	case s.Status == "active":
		return frame.Mark{Kind: frame.Active}
	}
	t.Fatalf("step %d is unknown", i)
	return frame.Mark{}
}

func playValveTask(t *testing.T, c *valveCase) {
	typ := typeOf[int64](t)
	b := newTaskBench(t, []*frame.Type{typ}, c.NumChannels, chained{"map", typ, func() operator.Operator {
		return element.Map(typ, typ, func(x int64) int64 { return x })
	}})
	at := 0
	err := b.run(func() bool {
		for ; at < len(c.Steps); at++ {
			s := &c.Steps[at]
			if s.ExpectChannel != nil {
				continue
			}
			if s.ExpectOutput == nil {
				break
			}
			compare(t, at, "output", b.out.take(), conformance.Texts(*s.ExpectOutput), false)
		}
		if at == len(c.Steps) {
			return false
		}
		s := &c.Steps[at]
		b.send(0, s.Channel, func(f *frame.Frame) { f.AddMark(s.mark(t, at)) })
		at++
		return true
	})
	if !errors.Is(err, exchange.ErrCancelled) || at != len(c.Steps) {
		t.Fatalf("the task ended at step %d: %v", at, err)
	}
}

// stamped is an element with a time in it; Tuple says that it was written with its flag.
type stamped struct {
	At    int64
	Flag  bool
	Tuple bool
}

func (x *stamped) UnmarshalJSON(b []byte) error {
	if x.Tuple = b[0] == '['; x.Tuple {
		var at conformance.Millis
		err := tuple(b, &at, &x.Flag)
		x.At = int64(at)
		return err
	}
	return (*conformance.Millis)(&x.At).UnmarshalJSON(b)
}

func (x stamped) MarshalJSON() ([]byte, error) {
	var at any = x.At
	switch x.At {
	case math.MinInt64:
		at = "min"
	case math.MaxInt64:
		at = "max"
	}
	if x.Tuple {
		return json.Marshal([]any{at, x.Flag})
	}
	return json.Marshal(at)
}

func atOf(x stamped) int64 { return x.At }

// behindOne proposes the last timestamp - 1 when asked.
type behindOne struct{ last int64 }

func (g *behindOne) OnEvent(_ *stamped, ms int64, _ *watermark.Emitter) { g.last = ms }
func (g *behindOne) OnPeriodic(out *watermark.Emitter)                  { out.Watermark(watermark.Add(g.last, -1)) }

type silent struct{}

func (silent) OnEvent(*stamped, int64, *watermark.Emitter) {}
func (silent) OnPeriodic(*watermark.Emitter)               {}

func assignerOf(t *testing.T, what string) watermark.Strategy[stamped] {
	t.Helper()
	var s watermark.Strategy[stamped]
	switch what {
	case "periodic_operator last_value_minus_one":
		s = watermark.Periodic(func() watermark.Generator[stamped] { return &behindOne{last: math.MinInt64} })
	case "periodic_operator value_never_watermark":
		s = watermark.Periodic(func() watermark.Generator[stamped] { return silent{} })
	case "punctuated_operator value_never_watermark":
		s = watermark.Punctuated(func(stamped, int64) (int64, bool) { return 0, false })
	case "punctuated_operator first_field_watermark_if_flag":
		s = watermark.Punctuated(func(x stamped, _ int64) (int64, bool) { return x.At, x.Flag })
	default:
		t.Fatalf("assigner %q is unknown", what)
	}
	return s.WithMillis(atOf)
}

func assigning(t *testing.T, s watermark.Strategy[stamped], interval time.Duration, opts ...flotttest.Option) *one[stamped, stamped] {
	t.Helper()
	opts = append(opts, flotttest.Configure(func(env *stream.Env) { env.SetAutoWatermarkInterval(interval) }))
	return newOne(t, opts, func(in *stream.Stream[stamped]) *stream.Stream[stamped] { return in.AssignTimestampsAndWatermarks(s) })
}

func runAssigner(t *testing.T, c conformance.Case, w conformance.Way) {
	var v struct {
		conformance.Head
		Kind     string `json:"kind"`
		Interval int64  `json:"auto_watermark_interval_ms"`
		Assigner string `json:"assigner"`
		Steps    []struct {
			Element        json.RawMessage      `json:"element"`
			TS             conformance.Millis   `json:"ts"`
			Watermark      *conformance.Millis  `json:"watermark"`
			ProcessingTime *conformance.Millis  `json:"processing_time"`
			ExpectOutput   *[]conformance.Entry `json:"expect_output"`
		} `json:"steps"`
	}
	c.Decode(t, &v)
	s := assigning(t, assignerOf(t, v.Kind+" "+v.Assigner), time.Duration(v.Interval)*time.Millisecond, wayOptions(w)...)
	held := pending{to: s, way: w, input: 1}
	for i, step := range v.Steps {
		if step.Element != nil {
			held.held = append(held.held, rawElement{step.Element, int64(step.TS)})
			continue
		}
		err := held.flush()
		switch {
		case err != nil:
		case step.Watermark != nil:
			err = s.watermark(1, int64(*step.Watermark))
		case step.ProcessingTime != nil:
			err = s.clock(int64(*step.ProcessingTime))
		case step.ExpectOutput != nil:
			compare(t, i, "output", s.output(), conformance.Texts(*step.ExpectOutput), false)
			s.clear()
		default:
			t.Fatalf("step %d is unknown", i)
		}
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

// runExtractor asks for the watermark by letting the auto watermark interval of 1 ms pass.
func runExtractor(t *testing.T, c conformance.Case) {
	var v struct {
		conformance.Head
		Kind           string `json:"kind"`
		Violation      string `json:"violation_handler"`
		OutOfOrderness int64  `json:"max_out_of_orderness_ms"`
		Steps          []struct {
			Extract          *conformance.Millis `json:"extract"`
			PreviousTS       conformance.Millis  `json:"previous_ts"`
			ExpectTS         *conformance.Millis `json:"expect_ts"`
			ExpectError      bool                `json:"expect_error"`
			CurrentWatermark bool                `json:"current_watermark"`
			Expect           *conformance.Millis `json:"expect"`
		} `json:"steps"`
	}
	c.Decode(t, &v)
	at := func(x stamped) time.Time { return time.UnixMilli(x.At) }
	s := watermark.AscendingTimestampExtractor(at)
	if v.Kind == "bounded_extractor" {
		s = watermark.BoundedOutOfOrdernessTimestampExtractor(time.Duration(v.OutOfOrderness)*time.Millisecond, at)
	}
	switch v.Violation {
	case "failing":
		s = s.OnViolation(watermark.FailOnViolation)
	case "ignoring":
		s = s.OnViolation(watermark.IgnoreViolations)
	case "logging":
		s = s.OnViolation(watermark.LogViolations)
	case "", "default":
	default:
		t.Fatalf("violation handler %q is unknown", v.Violation)
	}
	h := assigning(t, s.WithMillis(atOf), time.Millisecond)
	current := int64(flotttest.MinWatermark)
	for i, step := range v.Steps {
		switch {
		case step.Extract != nil:
			h.Clear()
			err := h.TryProcessElement(stamped{At: int64(*step.Extract)}, int64(step.PreviousTS))
			if (err != nil) != step.ExpectError {
				t.Fatalf("step %d: error %v", i, err)
			}
			if step.ExpectTS != nil && (len(h.Elements()) != 1 || h.Elements()[0].Time != int64(*step.ExpectTS)) {
				t.Fatalf("step %d: %v, want timestamp %d", i, h.Elements(), *step.ExpectTS)
			}
		case step.CurrentWatermark:
			h.Clear()
			h.Advance(time.Millisecond)
			for _, w := range h.Watermarks() {
				current = w
			}
			if step.Expect == nil || current != int64(*step.Expect) {
				t.Fatalf("step %d: watermark %d, want %v", i, current, step.Expect)
			}
		default:
			t.Fatalf("step %d is unknown", i)
		}
	}
}

type contextCase struct {
	conformance.Head
	Kind        string `json:"kind"`
	Context     string `json:"context"`
	IdleTimeout int64  `json:"idle_timeout_ms"`
	Interval    int64  `json:"watermark_interval_ms"`
	InitialTime int64  `json:"initial_time"`
	Steps       []struct {
		ProcessingTime *conformance.Millis  `json:"processing_time"`
		Emit           string               `json:"emit"`
		Value          json.RawMessage      `json:"value"`
		TS             conformance.Millis   `json:"ts"`
		ExpectStatus   string               `json:"expect_status"`
		ExpectOutput   *[]conformance.Entry `json:"expect_output"`
	} `json:"steps"`
}

// contextBench drives the rules of a source context.
type contextBench struct {
	t   *testing.T
	c   *watermarks.SourceContext
	now int64
	out []string
}

func runSourceContext(t *testing.T, c conformance.Case) {
	var v contextCase
	c.Decode(t, &v)
	b := &contextBench{t: t, now: v.InitialTime, out: []string{}}
	switch v.Context {
	case "manual_watermarks":
		b.c = watermarks.NewManual(b.now, v.IdleTimeout)
	case "automatic_ingestion_time":
		b.c = watermarks.NewIngestion(b.now, v.Interval, v.IdleTimeout)
	default:
		t.Fatalf("context %q is unknown", v.Context)
	}
	for i, s := range v.Steps {
		switch {
		case s.ProcessingTime != nil:
			b.advance(int64(*s.ProcessingTime))
		case s.Emit != "":
			b.emit(s.Emit, s.Value, int64(s.TS))
		case s.ExpectStatus != "":
			if status := map[bool]string{true: "idle", false: "active"}[b.c.IsIdle()]; status != s.ExpectStatus {
				t.Fatalf("step %d: %s, want %s", i, status, s.ExpectStatus)
			}
		case s.ExpectOutput != nil:
			compare(t, i, "output", b.out, conformance.Texts(*s.ExpectOutput), false)
			b.out = []string{}
		default:
			t.Fatalf("step %d is unknown", i)
		}
	}
}

// note keeps the watermarks of an emission; the vectors look at the status apart from the output.
func (b *contextBench) note(e watermarks.Emission) {
	for _, m := range e.Marks() {
		if m.Kind == frame.Watermark {
			b.out = append(b.out, fmt.Sprintf("watermark %d", m.Value))
		}
	}
}

func (b *contextBench) advance(to int64) {
	b.t.Helper()
	b.now = to
	if at, ok := b.c.Next(); ok && at <= to {
		b.note(b.c.Advance(to))
	}
	if at, ok := b.c.Next(); ok && at <= to {
		b.t.Fatalf("at %d something is still due at %d", to, at)
	}
}

func (b *contextBench) emit(what string, value json.RawMessage, ts int64) {
	b.t.Helper()
	switch what {
	case "emit_watermark":
		b.note(b.c.Emit(b.now, ts))
		return
	case "collect":
		ts = frame.NoTime
	case "collect_with_timestamp":
	default:
		b.t.Fatalf("emission %q is unknown", what)
	}
	stamp, before, after := b.c.Element(b.now, ts)
	b.note(before)
	b.out = append(b.out, fmt.Sprintf("%s@%d", conformance.Canonical(value), stamp))
	b.note(after)
}

// watermarkRules run a source function in a task.
func watermarkRules() map[string]func(*testing.T) {
	run := func(t *testing.T, cancelFirst bool, f stream.SourceFunction[string]) []string {
		t.Helper()
		typ := typeOf[string](t)
		b := newTaskBench(t, nil, 0, chained{"source", typ, func() operator.Operator { return source.Func(typ, f) }})
		b.park()
		if cancelFirst {
			b.task.Cancel()
		}
		if err := b.run(nil); err != nil && !errors.Is(err, exchange.ErrCancelled) {
			t.Fatal(err)
		}
		return b.out.take()
	}
	last := fmt.Sprintf("watermark %d", int64(math.MaxInt64))
	untilCancelled := func(ctx context.Context, _ *process.SourceContext[string]) error {
		<-ctx.Done()
		return ctx.Err()
	}
	return map[string]func(*testing.T){
		"rule/finite_source_max_watermark": func(t *testing.T) {
			got := run(t, false, func(context.Context, *process.SourceContext[string]) error { return nil })
			compare(t, 0, "output", got, []string{last, "end"}, false)
		},
		"rule/max_watermark_after_close_output": func(t *testing.T) {
			got := run(t, false, func(_ context.Context, out *process.SourceContext[string]) error {
				defer out.Collect("Hello")
				return nil
			})
			compare(t, 0, "output", got, []string{`"Hello"`, last, "end"}, false)
		},
		"rule/no_max_watermark_on_immediate_cancel": func(t *testing.T) {
			compare(t, 0, "output", run(t, true, untilCancelled), []string{}, false)
		},
		"rule/no_max_watermark_on_async_cancel": func(t *testing.T) {
			typ := typeOf[string](t)
			running := make(chan struct{})
			b := newTaskBench(t, nil, 0, chained{"source", typ, func() operator.Operator {
				return source.Func(typ, func(ctx context.Context, out *process.SourceContext[string]) error {
					close(running)
					return untilCancelled(ctx, out)
				})
			}})
			b.park()
			go func() {
				<-running
				b.cancel()
				b.task.Cancel()
			}()
			if err := b.run(nil); !errors.Is(err, exchange.ErrCancelled) {
				t.Fatal(err)
			}
			compare(t, 0, "output", b.out.take(), []string{}, false)
		},
	}
}
