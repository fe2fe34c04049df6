package streaming_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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

type windowCase struct {
	conformance.Head
	Assigner windowAssignerSpec `json:"assigner"`
	Trigger  windowTriggerSpec  `json:"trigger"`
	Evictor  *windowEvictorSpec `json:"evictor"`
	Lateness int64              `json:"allowed_lateness_ms"`
	LateSide bool               `json:"late_side_output"`
	Keyed    *bool              `json:"keyed"`
	Function struct {
		State string `json:"state"`
		API   string `json:"api"`
		Emit  string `json:"emit"`
	} `json:"function"`
	Steps []windowStep `json:"steps"`
}

type windowStep struct {
	Element         *windowRecord        `json:"element"`
	TS              conformance.Millis   `json:"ts"`
	Watermark       *conformance.Millis  `json:"watermark"`
	ProcessingTime  *conformance.Millis  `json:"processing_time"`
	SnapshotRestore bool                 `json:"snapshot_restore"`
	ExpectOutput    *[]conformance.Entry `json:"expect_output"`
	ExpectRecords   *[]conformance.Entry `json:"expect_records"`
	ExpectLate      *[]conformance.Entry `json:"expect_late_total"`
}

// windowRecord is an element: its key is JSON, a text or a number.
type windowRecord struct {
	Key   string
	Value int64
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *windowRecord) UnmarshalJSON(b []byte) error {
	var key json.RawMessage
	err := tuple(b, &key, &r.Value)
	r.Key = string(key)
	return err
}

// String is the element's JSON.
func (r windowRecord) String() string { return fmt.Sprintf("[%s,%d]", r.Key, r.Value) }

// plainKey is the key without quotes.
func (r windowRecord) plainKey() string { return strings.Trim(r.Key, `"`) }

// windowPath makes the operator of a case on another path than the general one; nil: it does not take the case. The
// assigner is that of the case and k the kernels of its incremental function, nil if it has none.
type windowPath func(c *windowCase, spec windows.Spec, assigner any, k *windows.Incremental) operator.Operator

func TestWindowOperatorVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "window_operator", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{"": conformance.EachWay(runWindowOperator)},
	}
	s.Run(t)
}

// runWindowOperator runs a case on every path that takes it, in each layout of elements.
func runWindowOperator(t *testing.T, c conformance.Case, w conformance.Way) {
	var v windowCase
	c.Decode(t, &v)
	for name, path := range windowPaths() {
		t.Run(name, func(t *testing.T) {
			t.Run("fixed", func(t *testing.T) { runWindowLayout(t, &v, w, path, fixedWindowRecords()) })
			t.Run("text", func(t *testing.T) { runWindowLayout(t, &v, w, path, textWindowRecords()) })
			t.Run("encoded", func(t *testing.T) { runWindowLayout(t, &v, w, path, slicesOfWindowRecords()) })
		})
	}
}

// windowPaths are the paths that cases are run on: nil is the general one.
func windowPaths() map[string]windowPath { return map[string]windowPath{"general": nil} }

type fixedWindowRecord struct {
	Key   [40]byte
	Len   int64
	Value int64
}

func fixedWindowRecords() layoutOf[windowRecord, fixedWindowRecord] {
	return layoutOf[windowRecord, fixedWindowRecord]{
		of: func(r windowRecord) fixedWindowRecord {
			f := fixedWindowRecord{Len: int64(len(r.Key)), Value: r.Value}
			if copy(f.Key[:], r.Key) < len(r.Key) {
				panic("the key is too long: " + r.Key)
			}
			return f
		},
		to: func(f fixedWindowRecord) windowRecord { return windowRecord{string(f.Key[:f.Len]), f.Value} },
	}
}

func textWindowRecords() layoutOf[windowRecord, windowRecord] {
	same := func(r windowRecord) windowRecord { return r }
	return layoutOf[windowRecord, windowRecord]{same, same}
}

type encodedWindowRecord struct {
	Key    string
	Values []int64
}

func slicesOfWindowRecords() layoutOf[windowRecord, encodedWindowRecord] {
	return layoutOf[windowRecord, encodedWindowRecord]{
		of: func(r windowRecord) encodedWindowRecord { return encodedWindowRecord{r.Key, []int64{r.Value}} },
		to: func(e encodedWindowRecord) windowRecord { return windowRecord{e.Key, e.Values[0]} },
	}
}

func runWindowLayout[T any](t *testing.T, v *windowCase, w conformance.Way, path windowPath, l layoutOf[windowRecord, T]) {
	if v.Assigner.Kind == "global" {
		runWindowKeys(t, v, w, path, l, windowing.Definition[T, window.Global]{Assigner: window.GlobalWindows()})
		return
	}
	runWindowKeys(t, v, w, path, l, timeWindows(t, v, l))
}

func runWindowKeys[T any, W window.Window](t *testing.T, v *windowCase, w conformance.Way, path windowPath, l layoutOf[windowRecord, T], d windowing.Definition[T, W]) {
	d = withTriggerAndEvictor(t, v, l, d)
	if v.Keyed != nil && !*v.Keyed {
		runWindowCase(t, v, w, path, l, d, func(T) window.All { return window.All{} })
		return
	}
	runWindowCase(t, v, w, path, l, d, func(x T) string { return l.to(x).Key })
}

func runWindowCase[T, K any, W window.Window](t *testing.T, v *windowCase, w conformance.Way, path windowPath, l layoutOf[windowRecord, T], d windowing.Definition[T, W], key func(T) K) {
	in := operatortest.TypeOf[T](t)
	spec := windows.Spec{
		In: in, Out: operatortest.TypeOf[string](t), Key: operatortest.KeyOf(t, key),
		Sides: map[string]*frame.Type{"late": in}, Lateness: v.Lateness, Place: v.ID,
	}
	if v.LateSide {
		spec.Late = "late"
	}
	p := windowProgram[T, K, W]{t: t, v: v, layout: l}
	k := p.kernels()
	fresh := func() operator.Operator {
		if path == nil {
			return p.general(spec, d, k)
		}
		op := path(v, spec, windowsAssigner(d), k)
		if op == nil {
			t.Fatal("the path takes no such windows")
		}
		return op
	}
	b := &windowCaseBench[T]{newWindowBench[T](t, fresh, w, 0, "late"), l}
	for i, s := range v.Steps {
		b.step(i, s)
	}
	b.must(len(v.Steps))
}

func windowsAssigner[T any, W window.Window](d windowing.Definition[T, W]) any {
	if d.Assigner != nil {
		return d.Assigner
	}
	return d.ElementAssigner
}

// windowProgram is the window function of a case.
type windowProgram[T, K any, W window.Window] struct {
	t      *testing.T
	v      *windowCase
	layout layoutOf[windowRecord, T]
}

// kernels are those of the case's incremental function; nil if it has none.
func (p *windowProgram[T, K, W]) kernels() *windows.Incremental {
	program := windows.Program[T, K, W, T, T, string]{
		Emit: func(x *string, info *window.Info[K, W], r T) { *x = p.texts(info.Window, []T{r})[0] },
	}
	switch p.v.Function.State {
	case "list", "evicting_list":
		return nil
	case "reducing":
		a := reducingRecords[T]{p.layout}
		program.Aggregate, program.First = a, a.first
	case "folding":
		program.Aggregate, program.NoMerge = foldingRecords[T]{p.layout}, true
	default:
		p.t.Fatalf("state %q is unknown", p.v.Function.State)
	}
	h, err := serde.Of[T]()
	operatortest.Must(p.t, err)
	return program.Incremental(h)
}

func (p *windowProgram[T, K, W]) general(spec windows.Spec, d windowing.Definition[T, W], k *windows.Incremental) operator.Operator {
	construct := func(*window.Runtime) window.Function[K, T, W, string] { return p }
	switch {
	case k == nil:
		return windowing.Process(spec, d, construct)
	case p.v.Function.API == "process":
		return windowing.AggregateProcess(spec, d, k, summed[T], construct)
	}
	return windowing.Aggregate(spec, d, k)
}

// Process implements window.Function.
func (p *windowProgram[T, K, W]) Process(ctx *window.Context[K, W], xs []T, out *process.Collector[string]) error {
	for _, text := range p.texts(ctx.Window(), xs) {
		out.Collect(text)
	}
	return nil
}

// texts are the results for a window.
func (p *windowProgram[T, K, W]) texts(w W, xs []T) []string {
	records, sum := []windowRecord{}, int64(0)
	for _, x := range xs {
		r := p.layout.to(x)
		records, sum = append(records, r), sum+r.Value
	}
	switch p.v.Function.Emit {
	case "each_value":
		return texts(records)
	case "key_and_sum":
		return []string{windowRecord{records[0].Key, sum}.String()}
	case "label_and_window":
		span := any(w).(window.Time)
		label := fmt.Sprintf("%s-%d", records[0].plainKey(), sum)
		return []string{conformance.Text([]any{label, span.Start, span.End})}
	case "got_string":
		var parts []string
		for _, r := range records {
			parts = append(parts, fmt.Sprintf("(%s,%d)", r.plainKey(), r.Value))
		}
		return []string{conformance.Text("GOT: " + strings.Join(parts, ","))}
	case "fold_concat_sum":
		return []string{windowRecord{conformance.Text(records[0].Key), sum}.String()}
	}
	panic("emit " + p.v.Function.Emit + " is unknown")
}

// reducingRecords adds values up; the first element gives the key.
type reducingRecords[T any] struct{ layoutOf[windowRecord, T] }

func (reducingRecords[T]) Create() T          { panic("a reduce has no first accumulator") }
func (a reducingRecords[T]) Merge(acc, o *T)  { a.Add(acc, *o) }
func (reducingRecords[T]) Result(acc *T) T    { return *acc }
func (reducingRecords[T]) first(acc *T, x *T) { *acc = *x }
func (a reducingRecords[T]) Add(acc *T, x T) {
	sum := a.to(*acc)
	sum.Value += a.to(x).Value
	*acc = a.of(sum)
}

// foldingRecords concatenates keys and adds values up.
type foldingRecords[T any] struct{ layoutOf[windowRecord, T] }

func (a foldingRecords[T]) Create() T     { return a.of(windowRecord{"R:", 0}) }
func (foldingRecords[T]) Merge(_, _ *T)   { panic("a fold can't be merged") }
func (foldingRecords[T]) Result(acc *T) T { return *acc }
func (a foldingRecords[T]) Add(acc *T, x T) {
	r, sum := a.to(x), a.to(*acc)
	*acc = a.of(windowRecord{sum.Key + r.plainKey(), sum.Value + r.Value})
}

// windowCaseBench runs the steps of a case.
type windowCaseBench[T any] struct {
	*windowBench[T]
	layout layoutOf[windowRecord, T]
}

func (b *windowCaseBench[T]) step(i int, s windowStep) {
	b.t.Helper()
	if s.Element != nil {
		b.add(b.layout.of(*s.Element), int64(s.TS))
		return
	}
	b.must(i)
	switch {
	case s.Watermark != nil:
		b.watermark(i, int64(*s.Watermark))
	case s.ProcessingTime != nil:
		b.clock(i, int64(*s.ProcessingTime))
	case s.SnapshotRestore:
		before := b.main.got // some cases look at it afterwards
		b.restart(i)
		b.main.got = before
	case s.ExpectOutput != nil:
		compare(b.t, i, "output", stretches(b.main.got), stretches(conformance.Texts(*s.ExpectOutput)), false)
		b.main.got = nil
	case s.ExpectRecords != nil:
		compare(b.t, i, "records", b.main.records(), conformance.Texts(*s.ExpectRecords), true)
		b.main.got = nil
	case s.ExpectLate != nil:
		compare(b.t, i, "late elements", b.late(), conformance.Texts(*s.ExpectLate), true)
	default:
		b.t.Fatalf("step %d is unknown", i)
	}
}

// late are the late elements so far.
func (b *windowCaseBench[T]) late() []string {
	out := []string{}
	for _, e := range b.side["late"].elements {
		ts := conformance.Millis(e.ts)
		out = append(out, conformance.Entry{Record: []byte(b.layout.to(e.value.(T)).String()), TS: &ts}.String())
	}
	return out
}
