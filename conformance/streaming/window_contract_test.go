package streaming_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
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

func (b *contractBench[T]) folding(rt *window.Runtime) window.Function[int64, T, windowSpan, string] {
	return &contractFunction[T, T]{
		b: b, rt: rt,
		contents: func(xs []T) any { return b.layout.to(xs[0]) },
		first:    func(xs []T) int64 { return b.layout.to(xs[0]) },
	}
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
