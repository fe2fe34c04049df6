package streaming_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/async"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/internal/operator/operatortest"
)

// asyncItem is something that goes in or comes out: a record or a watermark.
type asyncItem struct {
	Record    *int64              `json:"record"`
	TS        *conformance.Millis `json:"ts"`
	Watermark *conformance.Millis `json:"watermark"`
	Handle    string              `json:"handle"`
}

func (i asyncItem) String() string {
	if i.Watermark != nil {
		return fmt.Sprintf("watermark %d", *i.Watermark)
	}
	return fmt.Sprintf("%d at %d", *i.Record, *i.TS)
}

type asyncFunction struct {
	Name      string `json:"name"`
	OnTimeout string `json:"on_timeout"`
}

type asyncStep struct {
	Put            *asyncItem   `json:"put"`
	ExpectRejected bool         `json:"expect_rejected"`
	Complete       string       `json:"complete"`
	Values         []int64      `json:"values"`
	PopCompleted   *[]asyncItem `json:"pop_completed"`
	SizeAfter      *int         `json:"size_after"`
	ExpectSize     *int         `json:"expect_size"`
	ExpectValues   *[]asyncItem `json:"expect_values_for_checkpoint"`

	Element        *int64              `json:"element"`
	TS             *conformance.Millis `json:"ts"`
	Watermark      *conformance.Millis `json:"watermark"`
	ProcessingTime *conformance.Millis `json:"processing_time"`
	Snapshot       bool                `json:"snapshot"`
	Restore        *struct {
		Function asyncFunction `json:"function"`
		Capacity int           `json:"capacity"`
	} `json:"restore"`
	Release       bool            `json:"release"`
	EndInput      bool            `json:"end_input"`
	Close         bool            `json:"close"`
	ExpectOutput  *[]asyncItem    `json:"expect_output"`
	Order         string          `json:"order"`
	ExpectFailure json.RawMessage `json:"expect_task_failure"`
}

type asyncLink struct {
	Async     string `json:"async"`
	Map       string `json:"map"`
	Mode      string `json:"mode"`
	Capacity  int    `json:"capacity"`
	TimeoutMS int64  `json:"timeout_ms"`
}

type asyncCase struct {
	ID        string         `json:"id"`
	Source    string         `json:"source"`
	Note      string         `json:"note"`
	Kind      string         `json:"kind"`
	Mode      string         `json:"mode"`
	Capacity  int            `json:"capacity"`
	TimeoutMS int64          `json:"timeout_ms"`
	Function  *asyncFunction `json:"function"`
	OnTimeout string         `json:"on_timeout"`
	Chain     []asyncLink    `json:"chain"`
	Steps     []asyncStep    `json:"steps"`
	Given     string         `json:"given"`
	When      string         `json:"when"`
	Then      string         `json:"then"`
}

func TestAsyncWaitVectors(t *testing.T) {
	operators := conformance.EachWay(func(t *testing.T, c conformance.Case, w conformance.Way) {
		var v asyncCase
		c.Decode(t, &v)
		runAsyncOperator(t, &v, w.Next)
	})
	s := conformance.Suite{
		Folder: "streaming", Family: "async_wait", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{
			"async_queue": func(t *testing.T, c conformance.Case) {
				var v asyncCase
				c.Decode(t, &v)
				runAsyncQueue(t, &v)
			},
			"async_operator": operators, "async_chain": operators,
		},
	}
	s.Run(t)
}

func asyncOrder(t *testing.T, mode string) async.Order {
	t.Helper()
	switch mode {
	case "ordered":
		return async.Ordered
	case "unordered":
		return async.Unordered
	}
	t.Fatalf("unknown mode %q", mode)
	return 0
}

// asyncSlot is an element in a queue case.
type asyncSlot struct {
	value, ts conformance.Millis
	results   []int64
	to        *[]asyncItem
}

func (s *asyncSlot) Emit() {
	for _, r := range s.results {
		*s.to = append(*s.to, asyncItem{Record: &r, TS: &s.ts})
	}
}

func (s *asyncSlot) Lend() *frame.Run { panic("not asked by queue cases") }

func asyncMark(e *async.Entry) asyncItem {
	w := conformance.Millis(e.Mark.Value)
	return asyncItem{Watermark: &w}
}

func runAsyncQueue(t *testing.T, c *asyncCase) {
	q := async.NewQueue(asyncOrder(t, c.Mode), c.Capacity)
	handles := map[string]*async.Entry{}
	var popped []asyncItem
	for i, s := range c.Steps {
		switch {
		case s.Put != nil:
			e := &async.Entry{}
			if s.Put.Watermark != nil {
				e.Mark = frame.Mark{Kind: frame.Watermark, Value: int64(*s.Put.Watermark)}
			} else {
				e.Call = &asyncSlot{value: conformance.Millis(*s.Put.Record), ts: *s.Put.TS, to: &popped}
			}
			if ok := q.TryPut(e); ok == s.ExpectRejected {
				t.Fatalf("step %d: put answered %v", i, ok)
			}
			handles[s.Put.Handle] = e
		case s.Complete != "":
			e := handles[s.Complete]
			e.Call.(*asyncSlot).results = s.Values
			q.Complete(e)
		case s.PopCompleted != nil:
			popped = nil
			for e := q.Pop(); e != nil; e = q.Pop() {
				if e.Call == nil {
					popped = append(popped, asyncMark(e))
					continue
				}
				e.Call.Emit()
			}
			compareAsync(t, i, popped, *s.PopCompleted, "exact")
			if s.SizeAfter != nil && q.Len() != *s.SizeAfter {
				t.Fatalf("step %d: size %d, want %d", i, q.Len(), *s.SizeAfter)
			}
		case s.ExpectSize != nil:
			if q.Len() != *s.ExpectSize {
				t.Fatalf("step %d: size %d, want %d", i, q.Len(), *s.ExpectSize)
			}
		case s.ExpectValues != nil:
			var got []asyncItem
			_ = q.Each(func(e *async.Entry) error {
				if e.Call == nil {
					got = append(got, asyncMark(e))
					return nil
				}
				slot := e.Call.(*asyncSlot)
				v := int64(slot.value)
				got = append(got, asyncItem{Record: &v, TS: &slot.ts})
				return nil
			})
			compareAsync(t, i, got, *s.ExpectValues, "exact")
		default:
			t.Fatalf("step %d is not for a queue", i)
		}
	}
}

// compareAsync compares outputs; the order among records is free as the vector says.
func compareAsync(t *testing.T, step int, got, want []asyncItem, order string) {
	t.Helper()
	texts := func(items []asyncItem) []string {
		var out []string
		from := 0
		sortFrom := func() { slices.Sort(out[from:]) }
		for _, i := range items {
			if i.Watermark != nil && order == "any_between_watermarks" {
				sortFrom()
				out = append(out, i.String())
				from = len(out)
				continue
			}
			out = append(out, i.String())
		}
		if order == "any" || order == "any_between_watermarks" {
			sortFrom()
		}
		return out
	}
	switch order {
	case "exact", "any", "any_between_watermarks":
	default:
		t.Fatalf("step %d: unknown order %q", step, order)
	}
	if g, w := texts(got), texts(want); !slices.Equal(g, w) {
		t.Fatalf("step %d: got %q, want %q", step, g, w)
	}
}

var errAsyncUser = errors.New("the function's own error")

// asyncBench drives one operator, or a chain, as a task does.
type asyncBench struct {
	t       *testing.T
	c       *asyncCase
	typ     *frame.Type
	clock   *clock.Manual
	scope   *operator.Scope
	cancel  context.CancelFunc
	spawn   *host.Spawner
	release chan struct{}
	ops     []operator.Operator
	rts     []*operator.Runtime
	out     asyncSink
	pending *frame.Column // elements not yet pushed
	cut     func(int) int
	saved   *operatortest.Taken
	failure error
}

// asyncSink is the end of the chain.
type asyncSink struct{ items []asyncItem }

func (s *asyncSink) Type() *frame.Type { return nil }

func (s *asyncSink) Push(r *frame.Run) error {
	for i, v := range frame.Values[int64](r) {
		ts := conformance.Millis(r.Time(i))
		s.items = append(s.items, asyncItem{Record: &v, TS: &ts})
	}
	return nil
}

func (s *asyncSink) Mark(m frame.Mark) error {
	if m.Kind == frame.Watermark {
		w := conformance.Millis(m.Value)
		s.items = append(s.items, asyncItem{Watermark: &w})
	}
	return nil
}

func runAsyncOperator(t *testing.T, c *asyncCase, cut func(int) int) {
	typ, err := frame.TypeOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	b := &asyncBench{t: t, c: c, typ: typ, cut: cut, pending: frame.NewColumn(typ, frame.MaxLen)}
	links := c.Chain
	if c.Kind == "async_operator" {
		links = []asyncLink{{Async: c.Function.Name, Mode: c.Mode, Capacity: c.Capacity, TimeoutMS: c.TimeoutMS}}
	}
	b.start(links, c.Function)
	defer func() { b.stop() }()
	for i := range c.Steps {
		b.step(i, &c.Steps[i])
	}
}

// start builds and opens the chain.
func (b *asyncBench) start(links []asyncLink, f *asyncFunction) {
	ctx, cancel := context.WithCancel(context.Background())
	b.clock, b.cancel, b.spawn = clock.NewManual(0), cancel, &host.Spawner{}
	b.release = make(chan struct{})
	waiter := host.NewParker(b.clock)
	b.scope = &operator.Scope{
		Ctx: ctx, Clock: b.clock, Mailbox: host.NewMailbox(waiter), Waiter: waiter, Spawn: b.spawn,
		Timers: &operator.Callbacks{}, Parallelism: 1,
	}
	b.ops, b.rts, b.out, b.failure = nil, nil, asyncSink{}, nil
	for _, l := range links {
		b.ops = append(b.ops, b.operator(l, f))
		rt := &operator.Runtime{Scope: b.scope, Name: l.Async + l.Map}
		if b.saved != nil {
			rt.Restored = b.saved.Restored()
		}
		b.rts = append(b.rts, rt)
	}
	for i := len(b.ops) - 1; i >= 0; i-- {
		var down operator.Input = &b.out
		at := b.rts[i]
		if i+1 < len(b.ops) {
			down, at = b.ops[i+1].Inputs()[0], b.rts[i+1]
		}
		if err := b.ops[i].Output("").Connect(down, at); err != nil {
			b.t.Fatal(err)
		}
		if err := b.ops[i].Open(b.rts[i]); err != nil {
			b.t.Fatal(err)
		}
	}
	b.scope.At = b.rts[0]
}

// onTimeout is where the vector says what happens then: at the function or at the case.
func (b *asyncBench) onTimeout(f *asyncFunction) string {
	if f != nil && f.OnTimeout != "" {
		return f.OnTimeout
	}
	return b.c.OnTimeout
}

func (b *asyncBench) operator(l asyncLink, f *asyncFunction) operator.Operator {
	if l.Map != "" {
		if l.Map != "plus_one" {
			b.t.Fatalf("unknown map %q", l.Map)
		}
		return element.Map(b.typ, b.typ, func(x int64) int64 { return x + 1 })
	}
	opt := async.Options[int64, int64]{Order: asyncOrder(b.t, l.Mode), Capacity: l.Capacity, Timeout: l.TimeoutMS}
	if what := b.onTimeout(f); what != "" {
		if what != "emit_three_times_input" {
			b.t.Fatalf("unknown on_timeout %q", what)
		}
		opt.OnTimeout = func(x int64) ([]int64, error) { return []int64{3 * x}, nil }
	}
	return async.New(b.typ, b.typ, b.function(l.Async), opt)
}

func (b *asyncBench) function(name string) func(context.Context, int64) ([]int64, error) {
	release := b.release
	switch name {
	case "double_later":
		return func(_ context.Context, x int64) ([]int64, error) { return []int64{2 * x}, nil }
	case "identity_immediately":
		return func(_ context.Context, x int64) ([]int64, error) { return []int64{x}, nil }
	case "identity_when_released":
		return func(ctx context.Context, x int64) ([]int64, error) {
			select {
			case <-release:
				return []int64{x}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	case "complete_exceptionally":
		return func(context.Context, int64) ([]int64, error) { return nil, errAsyncUser }
	case "never_completes":
		return func(ctx context.Context, _ int64) ([]int64, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	b.t.Fatalf("unknown function %q", name)
	return nil
}

// stop cancels what is left and waits for all goroutines.
func (b *asyncBench) stop() {
	b.cancel()
	for _, op := range b.ops {
		if err := op.Close(); err != nil {
			b.t.Fatal(err)
		}
	}
	b.spawn.Wait()
}

// do runs a part of the task's work unless the task has failed.
func (b *asyncBench) do(f func(in operator.Input) error) {
	if b.failure == nil {
		b.failure = f(b.ops[0].Inputs()[0])
	}
}

func (b *asyncBench) push() {
	all := b.pending.Run()
	for from := 0; from < all.N; {
		n := b.cut(all.N - from)
		r := all.Slice(from, from+n)
		b.do(func(in operator.Input) error { return in.Push(&r) })
		from += n
	}
	b.pending.Reset()
}

func (b *asyncBench) mark(m frame.Mark) {
	b.do(func(in operator.Input) error { return in.Mark(m) })
}

func (b *asyncBench) step(i int, s *asyncStep) {
	if s.Element != nil {
		frame.Add(b.pending, *s.Element, int64(*s.TS))
		return
	}
	b.push()
	switch {
	case s.Watermark != nil:
		b.mark(frame.Mark{Kind: frame.Watermark, Value: int64(*s.Watermark)})
	case s.ProcessingTime != nil:
		b.clock.Set(int64(*s.ProcessingTime))
		b.scope.Now = int64(*s.ProcessingTime)
		b.do(func(operator.Input) error { return b.scope.Timers.Run(b.scope.Now) })
	case s.Snapshot:
		b.snapshot()
	case s.Restore != nil:
		b.restore(s)
	case s.Release:
		close(b.release)
	case s.EndInput, s.Close:
		b.mark(frame.Mark{Kind: frame.End})
	case s.ExpectOutput != nil:
		b.until(func() bool { return len(b.out.items) >= len(*s.ExpectOutput) })
		if b.failure == nil { // a task that has failed emits nothing more
			compareAsync(b.t, i, b.out.items, *s.ExpectOutput, s.Order)
		}
	case s.ExpectFailure != nil:
		if string(s.ExpectFailure) != "null" {
			b.until(func() bool { return false })
		}
		b.expectFailure(i, string(s.ExpectFailure))
	default:
		b.t.Fatalf("step %d is not for an operator", i)
	}
}

// until does what the task does while it has no input, until done or the task has failed.
func (b *asyncBench) until(done func() bool) {
	for b.failure == nil && !done() {
		b.scope.Waiter.Wait(host.Idle, host.Forever)
		for _, letter := range b.scope.Mailbox.Take() {
			b.do(func(operator.Input) error { return letter() })
		}
	}
}

func (b *asyncBench) expectFailure(i int, want string) {
	ok := false
	switch want {
	case "null":
		ok = b.failure == nil
	case `"timeout"`:
		ok = errors.Is(b.failure, async.ErrTimeout)
	case `"user_exception"`:
		ok = errors.Is(b.failure, errAsyncUser)
	default:
		b.t.Fatalf("step %d: unknown failure %s", i, want)
	}
	if !ok {
		b.t.Fatalf("step %d: failure %v, want %s", i, b.failure, want)
	}
}

// snapshot keeps what is under way.
func (b *asyncBench) snapshot() { b.saved = operatortest.Take(b.t, b.ops[0]) }

func (b *asyncBench) restore(s *asyncStep) {
	b.stop()
	f := s.Restore.Function
	b.start([]asyncLink{{Async: f.Name, Mode: b.c.Mode, Capacity: s.Restore.Capacity, TimeoutMS: b.c.TimeoutMS}}, &f)
}
