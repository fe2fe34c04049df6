package streaming_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/internal/operator/valve"
)

func TestTaskVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "task", Rules: taskRules(), Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{
			"one_input_task": conformance.EachWay(runTask), "two_input_task": conformance.EachWay(runTask),
			"lifecycle": runLifecycle, "rolling_aggregate": conformance.EachWay(runRolling), "end_of_input": runEndOfInput,
			"restore_chain": runRestoreChain, "two_phase_commit_sink": runTwoPhaseCommit,
			"selective_reading": conformance.EachWay(runSelection),
		},
	}
	s.Run(t)
}

type taskCase struct {
	conformance.Head
	Kind            string     `json:"kind"`
	Gates           int        `json:"gates"`
	ChannelsPerGate int        `json:"channels_per_gate"`
	Operator        string     `json:"operator"`
	Steps           []taskStep `json:"steps"`
}

type taskStep struct {
	Record         json.RawMessage      `json:"record"`
	TS             *conformance.Millis  `json:"ts"`
	Watermark      *conformance.Millis  `json:"watermark"`
	Status         string               `json:"status"`
	Barrier        *int64               `json:"barrier"`
	Cancel         *int64               `json:"cancel"`
	Gate           int                  `json:"gate"`
	Channel        int                  `json:"channel"`
	ExpectOutput   *[]conformance.Entry `json:"expect_output"`
	ExpectDeclined *[]declined          `json:"expect_declined"`
}

// declined is a checkpoint that the task takes no part in.
type declined struct {
	Checkpoint int64  `json:"checkpoint"`
	Reason     string `json:"reason"`
}

// put adds what arrives in a step to a frame.
func (s *taskStep) put(t *testing.T, f *frame.Frame) {
	t.Helper()
	ts := int64(frame.NoTime)
	if s.TS != nil {
		ts = int64(*s.TS)
	}
	switch {
	case s.Record != nil && f.Type.Same(typeOf[string](t)):
		var v string
		conformance.Strict(t, s.Record, &v)
		frame.Add(&f.Column, v, ts)
	case s.Record != nil:
		var v int64
		conformance.Strict(t, s.Record, &v)
		frame.Add(&f.Column, v, ts)
	case s.Watermark != nil:
		f.AddMark(frame.Mark{Kind: frame.Watermark, Value: int64(*s.Watermark)})
	case s.Status == "idle":
		f.AddMark(frame.Mark{Kind: frame.Idle})
	case s.Status == "active":
		f.AddMark(frame.Mark{Kind: frame.Active})
	case s.Barrier != nil: // a checkpoint's id is not 0 here
		f.AddMark(control.Barrier{ID: *s.Barrier + 1}.Mark())
	case s.Cancel != nil:
		f.AddMark(frame.Mark{Kind: frame.CancelBarrier, Value: *s.Cancel + 1})
	default:
		t.Fatal("a step without a known word")
	}
}

func taskOperator(t *testing.T, v *taskCase) (gates []*frame.Type, op chained) {
	t.Helper()
	text, numbers := typeOf[string](t), typeOf[int64](t)
	same := func(x string) string { return x }
	// The vectors were recorded before idle inputs released the others (FLINK-18934), hence the rule.
	inputs := co.Inputs{First: text, Second: numbers, Rule: valve.HoldIdle}
	switch v.Operator {
	case "identity_map":
		op = chained{"map", text, func() operator.Operator { return element.Map(text, text, same) }}
		for range v.Gates {
			gates = append(gates, text)
		}
		return gates, op
	case "to_string_co_map":
		return []*frame.Type{text, numbers}, chained{"co-map", text, func() operator.Operator { return co.Map(inputs, text, same, decimal) }}
	case "identity_co_map":
		inputs.Second = text
		return []*frame.Type{text, text}, chained{"co-map", text, func() operator.Operator { return co.Map(inputs, text, same, same) }}
	}
	t.Fatalf("operator %q is unknown", v.Operator)
	return nil, chained{}
}

// runTask plays a case. Steps that follow each other on one channel are cut into frames as the way says.
func runTask(t *testing.T, c conformance.Case, w conformance.Way) {
	var v taskCase
	c.Decode(t, &v)
	gates, op := taskOperator(t, &v)
	b := newTaskBench(t, gates, v.ChannelsPerGate, op)
	steps := v.Steps
	var cuts []int
	at := 0
	err := b.run(func() bool {
		for at < len(steps) && steps[at].expects() {
			steps[at].check(t, at, b)
			at++
		}
		if at == len(steps) {
			return false
		}
		if len(cuts) == 0 {
			cuts = w.Cut(sameChannel(steps[at:]))
		}
		first := &steps[at]
		b.send(first.Gate, first.Channel, func(f *frame.Frame) {
			for range cuts[0] {
				steps[at].put(t, f)
				at++
			}
		})
		cuts = cuts[1:]
		return true
	})
	if !errors.Is(err, exchange.ErrCancelled) {
		t.Fatal(err)
	}
	if at != len(steps) {
		t.Fatalf("the task ended at step %d", at)
	}
}

// sameChannel is how many steps arrive on the channel of the first one before anything else happens. What follows a
// barrier comes in a frame of its own.
func sameChannel(steps []taskStep) int {
	n := 1
	for n < len(steps) && !steps[n].expects() && steps[n].Gate == steps[0].Gate && steps[n].Channel == steps[0].Channel &&
		steps[n-1].Barrier == nil && steps[n-1].Cancel == nil {
		n++
	}
	return n
}

func (s *taskStep) expects() bool { return s.ExpectOutput != nil || s.ExpectDeclined != nil }

func (s *taskStep) check(t *testing.T, at int, b *taskBench) {
	t.Helper()
	if s.ExpectOutput != nil {
		compare(t, at, "output", b.out.take(), conformance.Texts(*s.ExpectOutput), false)
	}
	if s.ExpectDeclined == nil {
		return
	}
	var want []string
	for _, d := range *s.ExpectDeclined {
		want = append(want, fmt.Sprintf("%d: declined_on_%s", d.Checkpoint, d.Reason))
	}
	compare(t, at, "declined checkpoints", b.declined, want, false)
}

type endCase struct {
	conformance.Head
	Kind   string    `json:"kind"`
	Chain  []string  `json:"chain"`
	Steps  []endStep `json:"steps"`
	Expect []string  `json:"expect_values"`
}

type endStep struct {
	Record         json.RawMessage `json:"record"`
	Input          int             `json:"input"`
	EndInput       int             `json:"end_input"`
	SourceEmits    json.RawMessage `json:"source_emits"`
	SourceFinishes bool            `json:"source_finishes"`
	CancelTask     bool            `json:"cancel_task"`
}

// runEndOfInput runs a chain of operators in a task: what operators do at their close in Flink is done at the end of
// their input here, since nothing can be emitted at the close.
func runEndOfInput(t *testing.T, c conformance.Case) {
	var v endCase
	c.Decode(t, &v)
	text := typeOf[string](t)
	fired := false
	var chain []chained
	var gates []*frame.Type
	var src *endSource
	for i, spec := range v.Chain {
		kind, name, _ := strings.Cut(spec, ":")
		switch kind {
		case "one_input", "two_input":
			inputs := 1
			if kind == "two_input" {
				inputs = 2
			}
			if i == 0 {
				gates = slices.Repeat([]*frame.Type{text}, inputs)
			}
			chain = append(chain, chained{name, text, func() operator.Operator { return newEnder(text, name, inputs, &fired) }})
		case "source", "plain_source":
			src = &endSource{speaks: kind == "source", name: name, out: operator.NewOutput(text), col: frame.NewColumn(text, 8)}
			chain = append(chain, chained{name, text, func() operator.Operator { return src }})
		default:
			t.Fatalf("operator %q is unknown", spec)
		}
	}
	b := newTaskBench(t, gates, 1, chain...)
	if err := playEnd(t, b, src, v.Steps); err != nil && !errors.Is(err, exchange.ErrCancelled) {
		t.Fatal(err)
	}
	var got []string
	for _, s := range b.out.take() {
		if strings.HasPrefix(s, `"`) {
			got = append(got, s)
		}
	}
	compare(t, len(v.Steps), "values", got, quoted(v.Expect), false)
	if fired {
		t.Error("a timer that was set at the end has fired")
	}
}

func playEnd(t *testing.T, b *taskBench, src *endSource, steps []endStep) error {
	t.Helper()
	return b.run(func() bool {
		if len(steps) == 0 {
			t.Error("the task goes on after the last step")
			return false
		}
		s := steps[0]
		steps = steps[1:]
		switch {
		case s.Record != nil:
			b.send(s.Input-1, 0, func(f *frame.Frame) { (&taskStep{Record: s.Record}).put(t, f) })
		case s.EndInput > 0:
			b.send(s.EndInput-1, 0, func(f *frame.Frame) { f.AddMark(frame.Mark{Kind: frame.End}) })
		case s.SourceEmits != nil:
			var v string
			conformance.Strict(t, s.SourceEmits, &v)
			src.emits = append(src.emits, v)
		case s.SourceFinishes:
			src.done = true
		case s.CancelTask:
			return false
		default:
			t.Fatal("a step without a known word")
		}
		return true
	})
}

// ender is one_input and two_input: it forwards records and speaks at its ends.
type ender struct {
	name  string
	out   operator.Output
	sides []*enderSide
	open  int
	rt    *operator.Runtime
	col   *frame.Column
	run   frame.Run
	fired *bool
}

type enderSide struct {
	*ender
	number int
}

func newEnder(text *frame.Type, name string, inputs int, fired *bool) *ender {
	e := &ender{name: name, out: operator.NewOutput(text), open: inputs, col: frame.NewColumn(text, 8), fired: fired}
	for i := range inputs {
		e.sides = append(e.sides, &enderSide{e, i + 1})
	}
	return e
}

func (e *ender) Inputs() []operator.Input {
	var out []operator.Input
	for _, s := range e.sides {
		out = append(out, s)
	}
	return out
}

func (e *ender) Output(string) *operator.Output { return &e.out }

func (e *ender) Open(rt *operator.Runtime) error {
	e.rt = rt
	e.out.Bind(rt)
	return nil
}

func (e *ender) Close() error { return nil }

func (e *ender) say(text string) error {
	frame.Add(e.col, text, frame.NoTime)
	e.run = e.col.Run()
	err := e.out.Push(&e.run)
	e.col.Reset()
	return err
}

func (s *enderSide) Type() *frame.Type { return s.out.Type }

// title is how the operator calls itself: with the input's number if it has two.
func (s *enderSide) title() string {
	if len(s.sides) == 1 {
		return fmt.Sprintf("[%s]", s.name)
	}
	return fmt.Sprintf("[%s-%d]", s.name, s.number)
}

func (s *enderSide) Push(r *frame.Run) error {
	if len(s.sides) == 1 {
		return s.out.Push(r)
	}
	for _, v := range frame.Values[string](r) {
		if err := s.say(fmt.Sprintf("%s: %s", s.title(), v)); err != nil {
			return err
		}
	}
	return nil
}

func (s *enderSide) Mark(m frame.Mark) error {
	if m.Kind != frame.End {
		return s.out.Mark(m)
	}
	if err := s.say(s.title() + ": End of input"); err != nil {
		return err
	}
	if s.open--; s.open > 0 {
		return nil
	}
	s.rt.Timers.Schedule(s.rt.Now-1, func(int64) error {
		*s.fired = true
		return nil
	})
	if err := s.say(fmt.Sprintf("[%s]: Bye", s.name)); err != nil {
		return err
	}
	return s.out.Mark(m)
}

// endSource emits what it is told to.
type endSource struct {
	speaks bool
	name   string
	out    operator.Output
	col    *frame.Column
	run    frame.Run
	emits  []string
	done   bool
}

func (*endSource) Inputs() []operator.Input { return nil }

func (s *endSource) Output(string) *operator.Output { return &s.out }

func (s *endSource) Open(rt *operator.Runtime) error {
	s.out.Bind(rt)
	return nil
}

func (*endSource) Close() error { return nil }

func (s *endSource) say(texts ...string) error {
	for _, text := range texts {
		frame.Add(s.col, text, frame.NoTime)
	}
	s.run = s.col.Run()
	err := s.out.Push(&s.run)
	s.col.Reset()
	return err
}

// Poll implements operator.Source.
func (s *endSource) Poll() (operator.Status, error) {
	if len(s.emits) > 0 {
		err := s.say(s.emits...)
		s.emits = nil
		return operator.More, err
	}
	if s.done {
		return operator.Done, nil
	}
	return operator.Nothing, nil
}

// Finish implements operator.Finisher.
func (s *endSource) Finish() error {
	if !s.speaks {
		return nil
	}
	return s.say(fmt.Sprintf("[%s]: End of input", s.name), fmt.Sprintf("[%s]: Bye", s.name))
}
