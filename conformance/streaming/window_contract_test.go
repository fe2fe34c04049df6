package streaming_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

type contractCase struct {
	conformance.Head
	Merging     bool           `json:"merging"`
	EventTime   bool           `json:"assigner_is_event_time"`
	TimerDomain string         `json:"timer_domain"`
	Lateness    int64          `json:"allowed_lateness_ms"`
	LateSide    bool           `json:"late_side_output"`
	WindowState string         `json:"window_state"`
	Steps       []contractStep `json:"steps"`
}

type contractStep struct {
	// scripts
	Assign      *[]windowSpan   `json:"assign"`
	OnElement   *scriptedAnswer `json:"on_element"`
	OnTime      *scriptedAnswer `json:"on_time"`
	OnClear     *scriptedClear  `json:"on_clear"`
	OnMerge     *scriptedAnswer `json:"on_merge"`
	MergeScript *mergeScript    `json:"merge_script"`
	Function    *functionScript `json:"function"`
	// driving
	Element         *int64              `json:"element"`
	TS              conformance.Millis  `json:"ts"`
	ExpectError     json.RawMessage     `json:"expect_error"`
	Advance         *conformance.Millis `json:"advance"`
	Watermark       *conformance.Millis `json:"watermark"`
	SnapshotRestore bool                `json:"snapshot_restore"`
	Reset           bool                `json:"reset_scripts_and_counters"`
	Expect          *contractExpect     `json:"expect"`
}

// scriptedAnswer is what a trigger does when it is called.
type scriptedAnswer struct {
	Result   string     `json:"result"`
	Register *timeOrEnd `json:"register_timer"`
	Delete   *timeOrEnd `json:"delete_timer"`
	SetState bool       `json:"set_state"`
	OnlyAt   *timeOrEnd `json:"only_at"`
}

type scriptedClear struct {
	Delete     *timeOrEnd `json:"delete_timer"`
	ClearState bool       `json:"clear_state"`
}

// timeOrEnd is a time, or the end of the window.
type timeOrEnd struct {
	ms  int64
	end bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *timeOrEnd) UnmarshalJSON(b []byte) error {
	if string(b) == `"window_end"` {
		t.end = true
		return nil
	}
	var ms conformance.Millis
	err := ms.UnmarshalJSON(b)
	t.ms = int64(ms)
	return err
}

func (t *timeOrEnd) of(w windowSpan) int64 {
	if t.end {
		return w.End
	}
	return t.ms
}

// mergeScript is how windows are merged: those in Merge become Result.
type mergeScript struct {
	Input  []windowSpan `json:"expect_input"`
	Merge  []windowSpan `json:"merge"`
	Result windowSpan   `json:"result"`
}

type functionScript struct {
	Emit       []json.RawMessage `json:"emit"`
	SideTags   []string          `json:"side_output_first_element_to"`
	SetState   bool              `json:"set_window_state"`
	ClearState bool              `json:"clear_window_state_on_clear"`
	RecordTime bool              `json:"record_current_time"`
}

// timedValue is an element of an expected output.
type timedValue struct {
	Value json.RawMessage    `json:"value"`
	TS    conformance.Millis `json:"ts"`
}

func (v timedValue) String() string { return conformance.Entry{Record: v.Value, TS: &v.TS}.String() }

type elementCall struct {
	Value  int64              `json:"value"`
	TS     conformance.Millis `json:"ts"`
	Window *windowSpan        `json:"window"`
}

func (c elementCall) String() string {
	if c.Window == nil {
		return fmt.Sprintf("%d@%d", c.Value, c.TS)
	}
	return fmt.Sprintf("%d@%d in %v", c.Value, c.TS, *c.Window)
}

type processCall struct {
	Key      int64           `json:"key"`
	Window   windowSpan      `json:"window"`
	Contents json.RawMessage `json:"contents"`
}

func (c processCall) String() string {
	return fmt.Sprintf("%d %v %s", c.Key, c.Window, conformance.Canonical(c.Contents))
}

type timeCalls struct {
	Time    conformance.Millis `json:"time"`
	Window  *windowSpan        `json:"window"`
	Count   *int               `json:"count"`
	AtLeast *int               `json:"at_least"`
}

type contractExpect struct {
	StateEntries      *int                     `json:"state_entries"`
	Timers            *int                     `json:"timers"`
	TimersOther       *int                     `json:"timers_other_domain"`
	EventTimers       *int                     `json:"event_timers"`
	ProcessingTimers  *int                     `json:"processing_timers"`
	Output            *[]timedValue            `json:"output"`
	Late              *[]timedValue            `json:"late"`
	SideOutput        *map[string][]timedValue `json:"side_output"`
	ProcessCalls      *[]processCall           `json:"process_calls"`
	ProcessCallsCount *int                     `json:"process_calls_count"`
	OnElementCalls    json.RawMessage          `json:"on_element_calls"`
	OnTimeCalls       *count                   `json:"on_time_calls"`
	OnTimeCallsAt     []timeCalls              `json:"on_time_calls_at"`
	ClearCalls        *count                   `json:"clear_calls"`
	OnMergeCalls      json.RawMessage          `json:"on_merge_calls"`
	AssignCalls       json.RawMessage          `json:"assign_calls"`
	MergeCallsCount   *int                     `json:"merge_windows_calls_count"`
	FirstMergeInput   *[]windowSpan            `json:"first_merge_windows_input"`
	FunctionClears    *int                     `json:"function_clear_calls"`
	SawInProcess      *[]conformance.Millis    `json:"function_saw_time_in_process"`
	SawInClear        *[]conformance.Millis    `json:"function_saw_time_in_clear"`
}

func TestWindowContractVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "window_contract", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{"": conformance.EachWay(runWindowContract)},
	}
	s.Run(t)
}

// runWindowContract runs a case once per layout of the contents, and with an evictor that evicts nothing.
func runWindowContract(t *testing.T, c conformance.Case, w conformance.Way) {
	var v contractCase
	c.Decode(t, &v)
	same := func(x int64) int64 { return x }
	each := func(t *testing.T, evicting bool) {
		t.Run("fixed", func(t *testing.T) { runContractLayout(t, &v, w, evicting, layoutOf[int64, int64]{same, same}) })
		t.Run("text", func(t *testing.T) { runContractLayout(t, &v, w, evicting, layoutOf[int64, string]{decimal, number}) })
		t.Run("encoded", func(t *testing.T) {
			runContractLayout(t, &v, w, evicting, layoutOf[int64, []int64]{
				of: func(x int64) []int64 { return []int64{x} },
				to: func(x []int64) int64 { return x[0] },
			})
		})
	}
	each(t, false)
	if v.WindowState == "list" {
		t.Run("with a count evictor", func(t *testing.T) { each(t, true) })
	}
}

func runContractLayout[T any](t *testing.T, v *contractCase, w conformance.Way, evicting bool, l layoutOf[int64, T]) {
	b := &contractBench[T]{t: t, v: v, layout: l, domain: process.EventTime}
	if v.TimerDomain == "processing" {
		b.domain = process.ProcessingTime
	}
	sides := map[string]*frame.Type{
		"late": operatortest.TypeOf[T](t), "int-out": operatortest.TypeOf[int32](t), "long-out": operatortest.TypeOf[int64](t),
	}
	spec := windows.Spec{
		In: sides["late"], Out: operatortest.TypeOf[string](t), Key: operatortest.KeyOf(t, l.to), Sides: sides,
		Lateness: v.Lateness, Place: v.ID,
	}
	if v.LateSide {
		spec.Late = "late"
	}
	d := windowing.Definition[T, windowSpan]{ElementAssigner: contractAssigner[T]{b}, ElementTrigger: contractTrigger[T]{b}}
	if v.Merging {
		d.ElementAssigner = mergingAssigner[T]{contractAssigner[T]{b}}
	}
	if evicting {
		d.Evictor = window.CountEvictor(100)
	}
	b.windowBench = newWindowBench[T](t, func() operator.Operator { return b.operator(spec, d) }, w, math.MinInt64, "late", "int-out", "long-out")
	for i, s := range v.Steps {
		b.step(i, s)
	}
	b.must(len(v.Steps))
}

// contractBench runs a case.
type contractBench[T any] struct {
	*windowBench[T]
	t      *testing.T
	v      *contractCase
	layout layoutOf[int64, T]
	domain process.Domain

	scripts
	counters
}

// scripts are what the parts of the operator do.
type scripts struct {
	assign            []windowSpan
	onElement, onTime *scriptedAnswer
	onMerge           *scriptedAnswer
	onClear           *scriptedClear
	merge             *mergeScript
	function          functionScript
}

// counters are what the parts were called for.
type counters struct {
	assigned            []string
	elements            []string
	times               []timeCalls
	clears              int
	merged              []string
	mergeInputs         [][]windowSpan
	processed           []string
	functionClears      int
	sawInProcess, sawIn []conformance.Millis
}

// operator makes the operator of the case's kind of window state.
func (b *contractBench[T]) operator(spec windows.Spec, d windowing.Definition[T, windowSpan]) operator.Operator {
	l := b.layout
	switch b.v.WindowState {
	case "list":
		return windowing.Process(spec, d, func(rt *window.Runtime) window.Function[int64, T, windowSpan, string] {
			return &contractFunction[T, T]{b: b, rt: rt, contents: func(xs []T) any {
				values := []int64{}
				for _, x := range xs {
					values = append(values, l.to(x))
				}
				return values
			}, first: func(xs []T) int64 { return l.to(xs[0]) }}
		})
	case "reducing_sum":
		return windowing.AggregateProcess(spec, d, sumKernels(b.t, summing[T]{l}, false, summing[T]{l}.first), summed[T], b.folding)
	case "folding_sum":
		return windowing.AggregateProcess(spec, d, sumKernels(b.t, summing[T]{l}, true, nil), summed[T], b.folding)
	}
	b.t.Fatalf("window state %q is unknown", b.v.WindowState)
	return nil
}

func summed[T any](acc *T) T { return *acc }

func (b *contractBench[T]) folding(rt *window.Runtime) window.Function[int64, T, windowSpan, string] {
	return &contractFunction[T, T]{
		b: b, rt: rt,
		contents: func(xs []T) any { return b.layout.to(xs[0]) },
		first:    func(xs []T) int64 { return b.layout.to(xs[0]) },
	}
}

// summing adds elements up in an accumulator of their own type.
type summing[T any] struct{ layoutOf[int64, T] }

func (s summing[T]) Create() T            { return s.of(0) }
func (s summing[T]) Add(acc *T, x T)      { *acc = s.of(s.to(*acc) + s.to(x)) }
func (s summing[T]) Merge(acc, other *T)  { s.Add(acc, *other) }
func (summing[T]) Result(acc *T) T        { return *acc }
func (summing[T]) first(acc *T, x *T)     { *acc = *x }
func (s summing[T]) emit(x *string, r *T) { *x = fmt.Sprint(s.to(*r)) }

func sumKernels[T any](t *testing.T, a summing[T], noMerge bool, first func(acc *T, x *T)) *windows.Incremental {
	t.Helper()
	h, err := serde.Of[T]()
	operatortest.Must(t, err)
	p := windows.Program[T, int64, windowSpan, T, T, string]{
		Aggregate: agg.Aggregate[T, T, T](a), NoMerge: noMerge, First: first,
		Emit: func(x *string, _ *window.Info[int64, windowSpan], r T) { a.emit(x, &r) },
	}
	return p.Incremental(h)
}

// contractAssigner is the scripted assigner.
type contractAssigner[T any] struct{ b *contractBench[T] }

func (a contractAssigner[T]) AssignElement(dst []windowSpan, x *T, ts, _ int64) ([]windowSpan, error) {
	a.b.assigned = append(a.b.assigned, elementCall{Value: a.b.layout.to(*x), TS: conformance.Millis(ts)}.String())
	return append(dst, a.b.assign...), nil
}

func (a contractAssigner[T]) Domain() process.Domain {
	if a.b.v.EventTime {
		return process.EventTime
	}
	return process.ProcessingTime
}

func (contractAssigner[T]) DefaultTrigger() window.Trigger { return window.NeverTrigger() }

type mergingAssigner[T any] struct{ contractAssigner[T] }

func (a mergingAssigner[T]) Merge(spans []windowSpan, merged func(windowSpan, []windowSpan)) {
	b := a.b
	b.mergeInputs = append(b.mergeInputs, slices.Clone(spans))
	if b.merge == nil {
		return
	}
	if b.merge.Input != nil {
		compare(b.t, 0, "windows to merge", texts(spans), texts(b.merge.Input), true)
	}
	merged(b.merge.Result, b.merge.Merge)
}

// contractTrigger is the scripted trigger.
type contractTrigger[T any] struct{ b *contractBench[T] }

func (tr contractTrigger[T]) New(rt *process.Runtime) window.ElementTriggerFunction[T] {
	return &contractTriggerFunction[T]{tr.b, cells(fixedNumber())(rt)}
}

func (contractTrigger[T]) CanMerge() bool { return true }

type contractTriggerFunction[T any] struct {
	b     *contractBench[T]
	state cell
}

func (f *contractTriggerFunction[T]) OnElement(ctx *window.TriggerContext, x *T, ts int64) (window.TriggerResult, error) {
	w := ctx.Window[windowSpan]()
	f.b.elements = append(f.b.elements, elementCall{f.b.layout.to(*x), conformance.Millis(ts), &w}.String())
	return f.act(ctx, f.b.onElement, w)
}

// act does what a script says.
func (f *contractTriggerFunction[T]) act(ctx *window.TriggerContext, a *scriptedAnswer, w windowSpan) (window.TriggerResult, error) {
	if a == nil {
		return window.Continue, nil
	}
	if a.Register != nil {
		if at := a.Register.of(w); f.b.domain == process.EventTime {
			ctx.RegisterEventTimeTimer(at)
		} else {
			ctx.RegisterProcessingTimeTimer(at)
		}
	}
	f.deleteTimer(ctx, a.Delete, w)
	if a.SetState {
		f.state.set(1)
	}
	if a.Result == "" {
		return window.Continue, nil
	}
	return triggerResult(a.Result)
}

func triggerResult(text string) (window.TriggerResult, error) {
	for r := range window.FireAndPurge + 1 {
		if r.String() == text {
			return r, nil
		}
	}
	return 0, fmt.Errorf("answer %q is unknown", text)
}

func (f *contractTriggerFunction[T]) deleteTimer(ctx *window.TriggerContext, at *timeOrEnd, w windowSpan) {
	switch {
	case at == nil:
	case f.b.domain == process.EventTime:
		ctx.DeleteEventTimeTimer(at.of(w))
	default:
		ctx.DeleteProcessingTimeTimer(at.of(w))
	}
}

func (f *contractTriggerFunction[T]) OnEventTime(ctx *window.TriggerContext, at int64) (window.TriggerResult, error) {
	return f.timer(process.EventTime, ctx, at)
}

func (f *contractTriggerFunction[T]) OnProcessingTime(ctx *window.TriggerContext, at int64) (window.TriggerResult, error) {
	return f.timer(process.ProcessingTime, ctx, at)
}

func (f *contractTriggerFunction[T]) timer(d process.Domain, ctx *window.TriggerContext, at int64) (window.TriggerResult, error) {
	if d != f.b.domain {
		return window.Continue, nil
	}
	w := ctx.Window[windowSpan]()
	f.b.times = append(f.b.times, timeCalls{Time: conformance.Millis(at), Window: &w})
	a := f.b.onTime
	if a != nil && a.OnlyAt != nil && a.OnlyAt.of(w) != at {
		return window.Continue, nil
	}
	return f.act(ctx, a, w)
}

func (f *contractTriggerFunction[T]) OnMerge(ctx *window.MergeContext) error {
	w := ctx.Window[windowSpan]()
	f.b.merged = append(f.b.merged, w.String())
	_, err := f.act(&ctx.TriggerContext, f.b.onMerge, w)
	return err
}

func (f *contractTriggerFunction[T]) Clear(ctx *window.TriggerContext) error {
	f.b.clears++
	if c := f.b.onClear; c != nil {
		f.deleteTimer(ctx, c.Delete, ctx.Window[windowSpan]())
		if c.ClearState {
			f.state.clear()
		}
	}
	return nil
}

// contractFunction is the scripted window function.
type contractFunction[T, E any] struct {
	b        *contractBench[T]
	rt       *window.Runtime
	contents func([]E) any
	first    func([]E) int64
	state    cell
}

func (f *contractFunction[T, E]) Process(ctx *window.Context[int64, windowSpan], xs []E, out *process.Collector[string]) error {
	contents, err := json.Marshal(f.contents(xs))
	if err != nil {
		return err
	}
	f.b.processed = append(f.b.processed, processCall{ctx.Key(), ctx.Window(), contents}.String())
	script := &f.b.function
	for _, v := range script.Emit {
		out.Collect(conformance.Canonical(v))
	}
	for _, tag := range script.SideTags {
		switch tag {
		case "int-out":
			ctx.Emit(intOut(), int32(f.first(xs)))
		case "long-out":
			ctx.Emit(longOut(), f.first(xs))
		default:
			return fmt.Errorf("side output %q is unknown", tag)
		}
	}
	if script.SetState {
		f.windowState().set(1)
	}
	if script.RecordTime {
		f.b.sawInProcess = append(f.b.sawInProcess, f.now(ctx))
	}
	return nil
}

// windowState declares the state at its first use, as the script comes after the function.
func (f *contractFunction[T, E]) windowState() cell {
	if f.state == nil {
		f.state = perWindowNumber(f.rt)
	}
	return f.state
}

func (f *contractFunction[T, E]) now(ctx *window.Context[int64, windowSpan]) conformance.Millis {
	return conformance.Millis(now(ctx, f.b.domain))
}

func (f *contractFunction[T, E]) Clear(ctx *window.Context[int64, windowSpan]) error {
	f.b.functionClears++
	if f.b.function.ClearState {
		f.windowState().clear()
	}
	if f.b.function.RecordTime {
		f.b.sawIn = append(f.b.sawIn, f.now(ctx))
	}
	return nil
}

func (b *contractBench[T]) step(i int, s contractStep) {
	b.t.Helper()
	if s.Element == nil || len(s.ExpectError) != 0 {
		b.must(i)
	}
	switch {
	case s.Element != nil:
		b.add(b.layout.of(*s.Element), int64(s.TS))
		if len(s.ExpectError) == 0 {
			return
		}
		if err := b.flush(); err == nil {
			b.t.Fatalf("step %d: no error, want %s", i, s.ExpectError)
		}
	case s.Advance != nil && b.domain == process.EventTime:
		b.watermark(i, int64(*s.Advance))
	case s.Advance != nil:
		b.clock(i, int64(*s.Advance))
	case s.Watermark != nil:
		b.watermark(i, int64(*s.Watermark))
	case s.SnapshotRestore:
		b.restart(i)
		if s.Reset {
			b.scripts, b.counters = scripts{}, counters{}
		}
	case s.Expect != nil:
		b.expect(i, s.Expect)
	default:
		b.script(i, s)
	}
}

func (b *contractBench[T]) script(i int, s contractStep) {
	b.t.Helper()
	switch {
	case s.Assign != nil:
		b.assign = *s.Assign
	case s.OnElement != nil:
		b.onElement = s.OnElement
	case s.OnTime != nil:
		b.onTime = s.OnTime
	case s.OnClear != nil:
		b.onClear = s.OnClear
	case s.OnMerge != nil:
		b.onMerge = s.OnMerge
	case s.MergeScript != nil:
		b.merge = s.MergeScript
	case s.Function != nil:
		b.function = *s.Function
	default:
		b.t.Fatalf("step %d is unknown", i)
	}
}

func (b *contractBench[T]) expect(i int, e *contractExpect) {
	b.t.Helper()
	other := process.EventTime + process.ProcessingTime - b.domain
	b.number(i, "state entries", e.StateEntries, b.cells())
	b.number(i, "timers", e.Timers, b.timers(b.domain))
	b.number(i, "timers of the other domain", e.TimersOther, b.timers(other))
	b.number(i, "event timers", e.EventTimers, b.timers(process.EventTime))
	b.number(i, "processing timers", e.ProcessingTimers, b.timers(process.ProcessingTime))
	b.number(i, "calls of process", e.ProcessCallsCount, len(b.processed))
	b.number(i, "calls on time", (*int)(e.OnTimeCalls), len(b.times))
	b.number(i, "calls of clear", (*int)(e.ClearCalls), b.clears)
	b.number(i, "calls of the function's clear", e.FunctionClears, b.functionClears)
	b.number(i, "calls of merge windows", e.MergeCallsCount, len(b.mergeInputs))
	if e.Output != nil {
		compare(b.t, i, "output", b.main.records(), texts(*e.Output), false)
	}
	if e.Late != nil {
		compare(b.t, i, "late elements", b.late(), texts(*e.Late), false)
	}
	if e.SideOutput != nil {
		for tag, want := range *e.SideOutput {
			compare(b.t, i, tag, b.side[tag].records(), texts(want), false)
		}
	}
	if e.ProcessCalls != nil {
		compare(b.t, i, "calls of process", b.processed, texts(*e.ProcessCalls), true)
	}
	expectCalls[elementCall](b.t, i, "calls on element", e.OnElementCalls, b.elements)
	expectCalls[elementCall](b.t, i, "calls of assign", e.AssignCalls, b.assigned)
	expectCalls[windowSpan](b.t, i, "calls on merge", e.OnMergeCalls, b.merged)
	b.expectTimes(i, e)
}

// expectCalls compares calls with a list of them, or with their number.
func expectCalls[C fmt.Stringer](t *testing.T, step int, what string, want json.RawMessage, got []string) {
	t.Helper()
	if len(want) == 0 {
		return
	}
	var calls []C
	if json.Unmarshal(want, &calls) == nil {
		compare(t, step, what, got, texts(calls), false)
		return
	}
	var n int
	conformance.Strict(t, want, &n)
	if n != len(got) {
		t.Fatalf("step %d: %s: %d, want %d", step, what, len(got), n)
	}
}

func (b *contractBench[T]) number(step int, what string, want *int, got int) {
	b.t.Helper()
	if want != nil && *want != got {
		b.t.Fatalf("step %d: %d %s, want %d", step, got, what, *want)
	}
}

// late are the late elements as numbers.
func (b *contractBench[T]) late() []string {
	out := []string{}
	for _, e := range b.side["late"].elements {
		ts := conformance.Millis(e.ts)
		out = append(out, conformance.Entry{Record: []byte(fmt.Sprint(b.layout.to(e.value.(T)))), TS: &ts}.String())
	}
	return out
}

func (b *contractBench[T]) expectTimes(step int, e *contractExpect) {
	b.t.Helper()
	for _, want := range e.OnTimeCallsAt {
		n := 0
		for _, c := range b.times {
			if c.Time == want.Time && (want.Window == nil || *want.Window == *c.Window) {
				n++
			}
		}
		if want.Count != nil && n != *want.Count || want.AtLeast != nil && n < *want.AtLeast {
			b.t.Fatalf("step %d: %d calls at %d", step, n, want.Time)
		}
	}
	if e.FirstMergeInput != nil {
		if len(b.mergeInputs) == 0 {
			b.t.Fatalf("step %d: nothing was merged", step)
		}
		compare(b.t, step, "windows merged first", texts(b.mergeInputs[0]), texts(*e.FirstMergeInput), true)
	}
	if e.SawInProcess != nil {
		compare(b.t, step, "times seen in process", texts(b.sawInProcess), texts(*e.SawInProcess), false)
	}
	if e.SawInClear != nil {
		compare(b.t, step, "times seen in clear", texts(b.sawIn), texts(*e.SawInClear), false)
	}
}
