package streaming_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// windowBench drives a windowed operator without a task: the elements between two control steps in runs that the way cuts.
type windowBench[T any] struct {
	t    *testing.T
	op   operator.Operator
	rt   *operator.Runtime
	host *benchHost
	typ  *frame.Type
	main *benchOutput
	side map[string]*benchOutput
	way  conformance.Way
	held []benchElement[T]

	open   func(rt *operator.Runtime)
	tables map[string]interface{ Len() int }
}

type benchElement[T any] struct {
	value T
	ts    int64
}

// newWindowBench opens an operator whose clock stands at now. sides are the side outputs that it has.
func newWindowBench[T any](t *testing.T, fresh func() operator.Operator, w conformance.Way, now int64, sides ...string) *windowBench[T] {
	t.Helper()
	b := &windowBench[T]{t: t, typ: operatortest.TypeOf[T](t), way: w}
	b.open = func(rt *operator.Runtime) {
		b.op, b.rt = fresh(), rt
		b.start(now, sides)
	}
	b.open(operatortest.Runtime())
	t.Cleanup(func() { operatortest.Must(t, b.op.Close()) })
	return b
}

// start opens the operator.
func (b *windowBench[T]) start(now int64, sides []string) {
	b.t.Helper()
	b.side, b.tables = map[string]*benchOutput{}, map[string]interface{ Len() int }{}
	b.host = &benchHost{Host: b.rt.Host}
	b.rt.Host, b.rt.Now = b.host, now
	open := b.rt.OpenState
	b.rt.OpenState = func(o statebackend.Options) (statebackend.Store, error) {
		s, err := open(o)
		return &countedStore{s, b.tables}, err
	}
	b.main = connectBench(b.t, b.op, "", b.rt)
	for _, tag := range sides {
		b.side[tag] = connectBench(b.t, b.op, tag, b.rt)
	}
	operatortest.Must(b.t, b.op.Open(b.rt))
}

// restart takes a snapshot and goes on with a new operator that begins with it.
func (b *windowBench[T]) restart(step int) {
	b.t.Helper()
	b.must(step)
	taken := operatortest.Take(b.t, b.op)
	operatortest.Must(b.t, b.op.Close())
	rt := operatortest.Runtime()
	rt.Restored = taken.Restored()
	b.open(rt)
}

// add holds an element back until the next control step.
func (b *windowBench[T]) add(x T, ts int64) { b.held = append(b.held, benchElement[T]{x, ts}) }

// flush hands over the elements that were held back.
func (b *windowBench[T]) flush() error {
	held := b.held
	b.held = nil
	for _, n := range b.way.Cut(len(held)) {
		c := frame.NewColumn(b.typ, n)
		for _, e := range held[:n] {
			frame.Add(c, e.value, e.ts)
		}
		r := c.Run()
		r.Shared = b.way.Seed%2 == 1
		if err := b.op.Inputs()[0].Push(&r); err != nil {
			return err
		}
		if b.host.reported != nil {
			return b.host.reported
		}
		held = held[n:]
	}
	return nil
}

// must flushes and fails the test at an error.
func (b *windowBench[T]) must(step int) {
	b.t.Helper()
	if err := b.flush(); err != nil {
		b.t.Fatalf("step %d: %v", step, err)
	}
}

func (b *windowBench[T]) watermark(step int, ms int64) {
	b.t.Helper()
	b.must(step)
	if err := b.op.Inputs()[0].Mark(operatortest.Watermark(ms)); err != nil {
		b.t.Fatalf("step %d: %v", step, err)
	}
}

// clock sets processing time and fires what is due then, as the harness of the vectors does: a timer of time t at t.
func (b *windowBench[T]) clock(step int, ms int64) {
	b.t.Helper()
	b.must(step)
	b.rt.Now = ms
	if err := b.rt.Timers.Run(ms); err != nil {
		b.t.Fatalf("step %d: %v", step, err)
	}
}

// timers is the number of timers of a domain.
func (b *windowBench[T]) timers(d process.Domain) int {
	return b.op.(interface{ Timers(process.Domain) int }).Timers(d)
}

// cells is the number of cells of state that are not empty: one for each window with contents and each with state of the
// trigger or the function, and one for each key with windows that merge. Some are kept in several tables.
func (b *windowBench[T]) cells() int {
	n := 0
	for name, table := range b.tables {
		switch name {
		case "window arrivals", "window accumulators", "window pending elements", "many merging windows": // part of another cell
		default:
			n += table.Len()
		}
	}
	return n
}

// benchHost is the process.Host of the bench.
type benchHost struct {
	process.Host
	reported error
}

// Report implements process.Host.
func (h *benchHost) Report(err error) {
	if h.reported == nil {
		h.reported = err
	}
}

// countedStore notes the tables that are opened.
type countedStore struct {
	statebackend.Store
	tables map[string]interface{ Len() int }
}

func (s *countedStore) Table(spec statebackend.TableSpec) (statebackend.Table, error) {
	t, err := s.Store.Table(spec)
	if err == nil {
		s.tables[spec.Name] = t
	}
	return t, err
}

func (s *countedStore) List(spec statebackend.TableSpec) (statebackend.ListTable, error) {
	t, err := s.Store.List(spec)
	if err == nil {
		s.tables[spec.Name] = t
	}
	return t, err
}

// benchOutput writes down what an output emits in the texts of conformance.Entry. Elements that are texts are JSON already.
type benchOutput struct {
	typ      *frame.Type
	got      []string
	elements []benchElement[any]
}

func connectBench(t *testing.T, op operator.Operator, tag string, rt *operator.Runtime) *benchOutput {
	t.Helper()
	out := op.Output(tag)
	if out == nil {
		t.Fatalf("the operator has no output %q", tag)
	}
	o := &benchOutput{typ: out.Type}
	operatortest.Must(t, out.Connect(o, rt))
	return o
}

// Type implements operator.Input.
func (o *benchOutput) Type() *frame.Type { return o.typ }

// Push implements operator.Input.
func (o *benchOutput) Push(r *frame.Run) error {
	for i := range r.N {
		value := r.Type.Box(r.At(i))
		o.elements = append(o.elements, benchElement[any]{value, r.Time(i)})
		text, ok := value.(string)
		if !ok {
			text = conformance.Text(value)
		}
		if ts := r.Time(i); ts != frame.NoTime {
			text = fmt.Sprintf("%s@%d", text, ts)
		}
		o.got = append(o.got, text)
	}
	return nil
}

// Mark implements operator.Input.
func (o *benchOutput) Mark(m frame.Mark) error {
	if m.Kind == frame.Watermark {
		o.got = append(o.got, fmt.Sprintf("watermark %d", m.Value))
	}
	return nil
}

// records are the elements that were emitted.
func (o *benchOutput) records() []string {
	out := []string{}
	for _, text := range o.got {
		if !strings.HasPrefix(text, "watermark ") {
			out = append(out, text)
		}
	}
	return out
}

// stretches sorts the records between two watermarks, whose order is free.
func stretches(texts []string) []string {
	out := slices.Clone(texts)
	from := 0
	for i, text := range out {
		if strings.HasPrefix(text, "watermark ") {
			slices.Sort(out[from:i])
			from = i + 1
		}
	}
	slices.Sort(out[from:])
	return out
}

// windowSpan is a window of a vector: [start, end], or "global".
type windowSpan struct{ Start, End int64 }

func globalSpan() windowSpan { return windowSpan{math.MinInt64, math.MaxInt64} }

// MaxTimestamp implements window.Window.
func (w windowSpan) MaxTimestamp() int64 {
	if w == globalSpan() {
		return math.MaxInt64
	}
	return w.End - 1
}

// String is the window's JSON.
func (w windowSpan) String() string {
	if w == globalSpan() {
		return `"global"`
	}
	return fmt.Sprintf("[%d,%d]", w.Start, w.End)
}

// MarshalJSON implements json.Marshaler.
func (w windowSpan) MarshalJSON() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (w *windowSpan) UnmarshalJSON(b []byte) error {
	if string(b) == `"global"` {
		*w = globalSpan()
		return nil
	}
	var start, end conformance.Millis
	if err := tuple(b, &start, &end); err != nil {
		return err
	}
	*w = windowSpan{int64(start), int64(end)}
	return nil
}

// layoutOf makes elements of type T of what vectors hold; the types differ in their layout in tables.
type layoutOf[V, T any] struct {
	of func(V) T
	to func(T) V
}

// count is a number that is expected, or the length of a list.
type count int

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(b, &list) == nil {
		*c = count(len(list))
		return nil
	}
	return json.Unmarshal(b, (*int)(c))
}

// perWindowNumber declares a number per window.
func perWindowNumber(rt *window.Runtime) cell {
	return &stateCell[int64]{state.NewValue[int64](rt.PerWindow(), "state"), fixedNumber()}
}
