package watermarks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/watermark"
)

// event is an element with a timestamp in it, big enough not to be a mere number.
type event struct {
	At   int64
	Flag bool
	Name string
}

// sink notes what it gets as text: "v@ts", "watermark t", "idle".
type sink struct {
	t      *frame.Type
	format func(r *frame.Run, i int) string
	got    []string
	runs   int
}

func (s *sink) Type() *frame.Type { return s.t }

func (s *sink) Push(r *frame.Run) error {
	s.runs++
	for i := range r.N {
		s.got = append(s.got, s.format(r, i))
	}
	return nil
}

func (s *sink) Mark(m frame.Mark) error {
	text := m.Kind.String()
	if m.Kind == frame.Watermark || m.Kind == frame.Barrier {
		text = fmt.Sprintf("%s %d", text, m.Value)
	}
	s.got = append(s.got, text)
	return nil
}

func (s *sink) take() string {
	out := strings.Join(s.got, ", ")
	s.got = nil
	return out
}

// rig is an operator between a test and a sink, with a clock in the test's hand.
type rig struct {
	t    *testing.T
	op   driver
	typ  *frame.Type
	sink *sink
	rt   *operator.Runtime
}

// driver is an operator with one input, which it is itself.
type driver interface {
	operator.Operator
	operator.Input
}

func typeOf[T any](t testing.TB) *frame.Type {
	t.Helper()
	typ, err := frame.TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

func formatEvent(r *frame.Run, i int) string {
	if ts := r.Time(i); ts != frame.NoTime {
		return fmt.Sprintf("%d@%d", frame.Values[event](r)[i].At, ts)
	}
	return fmt.Sprint(frame.Values[event](r)[i].At)
}

func newRig[T any](t *testing.T, s watermark.Strategy[T], interval int64, format func(*frame.Run, int) string) *rig {
	t.Helper()
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	typ := typeOf[T](t)
	g := &rig{t: t, typ: typ, op: New(typ, s, nil), sink: &sink{t: typ, format: format}}
	g.open(interval)
	return g
}

func eventRig(t *testing.T, s watermark.Strategy[event], interval int64) *rig {
	return newRig(t, s, interval, formatEvent)
}

func (g *rig) open(interval int64) {
	g.t.Helper()
	g.rt = &operator.Runtime{Scope: &operator.Scope{Timers: &operator.Callbacks{}, AutoWatermarkInterval: interval}, Name: "watermarks"}
	if err := g.op.Output("").Connect(g.sink, nil); err != nil {
		g.t.Fatal(err)
	}
	if err := g.op.Open(g.rt); err != nil {
		g.t.Fatal(err)
	}
}

// clock moves the processing time as the task does: callbacks see it.
func (g *rig) clock(ms int64) {
	g.t.Helper()
	g.rt.Now = ms
	if err := g.rt.Timers.Run(ms); err != nil {
		g.t.Fatal(err)
	}
}

func column(typ *frame.Type, xs ...event) *frame.Column {
	c := frame.NewColumn(typ, max(1, len(xs)))
	for _, x := range xs {
		frame.Add(c, x, frame.NoTime)
	}
	return c
}

func events(at ...int64) []event {
	var xs []event
	for _, ms := range at {
		xs = append(xs, event{At: ms})
	}
	return xs
}

func (g *rig) push(at ...int64) {
	g.t.Helper()
	r := column(g.typ, events(at...)...).Run()
	if err := g.op.Push(&r); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) mark(kind frame.MarkKind, value int64) {
	g.t.Helper()
	if err := g.op.Mark(frame.Mark{Kind: kind, Value: value}); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) expect(want string) {
	g.t.Helper()
	if got := g.sink.take(); got != want {
		g.t.Errorf("got  %s\nwant %s", got, want)
	}
}

func bounded1s() watermark.Strategy[event] {
	return watermark.ForBoundedOutOfOrderness[event](time.Second).WithMillisPtr(func(x *event) int64 { return x.At })
}

// behindOne proposes the last timestamp - 1 when asked.
type behindOne struct{ last int64 }

func (g *behindOne) OnEvent(_ *event, ms int64, _ *watermark.Emitter) { g.last = ms }
func (g *behindOne) OnPeriodic(out *watermark.Emitter)                { out.Watermark(watermark.Add(g.last, -1)) }
